"""What both API servers promise of rights: RBAC, impersonation, quota; and what they say of themselves."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.contracts.conftest import Door
from tests.contracts.test_objects import claim, claims, template, templates

RBAC = "/apis/rbac.authorization.k8s.io/v1"
API = {"apiVersion": "rbac.authorization.k8s.io/v1"}


def as_person(name: str, *groups: str) -> list[tuple[str, str]]:
    return [("Impersonate-User", name), *(("Impersonate-Group", group) for group in groups)]


def grant(door: Door, rules: Sequence[Mapping[str, Any]], subject: Mapping[str, str], name: str = "given") -> None:
    """A Role of the door's namespace, bound to one subject."""
    base = f"{RBAC}/namespaces/{door.namespace}"
    role = API | {"kind": "Role", "metadata": {"name": name}, "rules": list(rules)}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    binding = API | {"kind": "RoleBinding", "metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
    assert door.send("POST", f"{base}/roles", role).code == 201
    assert door.send("POST", f"{base}/rolebindings", binding).code == 201
    door.settle(lambda: is_allowed(door, subject, rules[0]))


def is_allowed(door: Door, subject: Mapping[str, str], given: Mapping[str, Any]) -> bool:
    """Whether the server has heard of a rule: it reads roles a moment after they are made."""
    resource, _, subresource = given["resources"][0].partition("/")
    asked = {"namespace": door.namespace, "verb": given["verbs"][0], "group": given["apiGroups"][0]}
    asked |= {"resource": resource, "subresource": subresource, "name": given.get("resourceNames", [""])[0]}
    account = f"system:serviceaccount:{door.namespace}:{subject['name']}"
    user = {"User": subject["name"], "ServiceAccount": account}.get(subject["kind"], "someone")
    groups = [subject["name"]] if subject["kind"] == "Group" else []
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "groups": groups, "resourceAttributes": asked},
    }
    reply = door.send("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body)
    # The simulator serves no reviews, and knows a rule at once.
    return reply.code == 404 or bool(reply.body["status"]["allowed"])


def group(name: str) -> dict[str, str]:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": name}


def rule(resource: str, *verbs: str, api_group: str = "resource.k8s.io", names: Sequence[str] = ()) -> dict[str, Any]:
    made: dict[str, Any] = {"apiGroups": [api_group], "resources": [resource], "verbs": list(verbs)}
    return made | ({"resourceNames": list(names)} if names else {})


def test_without_rights_everything_is_forbidden_in_these_words(door: Door) -> None:
    reply = door.send("GET", templates(door), headers=as_person("ann", "team-a"))
    assert (reply.code, reply.body["reason"]) == (403, "Forbidden")
    assert reply.body["message"] == (
        'resourceclaimtemplates.resource.k8s.io is forbidden: User "ann" cannot list resource '
        f'"resourceclaimtemplates" in API group "resource.k8s.io" in the namespace "{door.namespace}"'
    )
    named = door.send("GET", "/api/v1/nodes/n1", headers=as_person("ann"))
    assert named.body["message"] == (
        'nodes "n1" is forbidden: User "ann" cannot get resource "nodes" in API group "" at the cluster scope'
    )


def test_a_role_gives_its_verbs_in_its_namespace(door: Door) -> None:
    grant(door, [rule("resourceclaimtemplates", "create", "get")], group("team-a"))
    ann, bob = as_person("ann", "team-a"), as_person("bob", "team-b")
    assert door.send("POST", templates(door), template(), ann).code == 201
    assert door.send("GET", f"{templates(door)}/one", headers=ann).code == 200
    assert door.send("GET", templates(door), headers=ann).code == 403
    assert door.send("DELETE", f"{templates(door)}/one", headers=ann).code == 403
    assert door.send("GET", f"{templates(door)}/one", headers=bob).code == 403


def test_a_subresource_and_a_name_are_rights_of_their_own(door: Door) -> None:
    door.send("POST", claims(door), claim("mine"))
    door.send("POST", claims(door), claim("other"))
    grant(
        door,
        [rule("resourceclaims/status", "patch", "get", names=["mine"])],
        {"kind": "User", "name": "ann"} | {"apiGroup": "rbac.authorization.k8s.io"},
    )
    headers = [*as_person("ann"), ("Content-Type", "application/merge-patch+json")]
    patch: dict[str, Any] = {"status": {"allocation": {"devices": {}}}}
    refused = door.send("PATCH", f"{claims(door)}/other/status", patch, headers)
    assert 'cannot patch resource "resourceclaims/status"' in refused.body["message"]
    assert door.send("PATCH", f"{claims(door)}/mine", {"metadata": {}}, headers).code == 403
    assert door.send("GET", f"{claims(door)}/mine/status", headers=as_person("ann")).code == 200


def test_acting_as_someone_is_a_right(door: Door) -> None:
    """KEP-5284: as whom, and for which verbs on what."""
    user = door.account("web")
    refused = door.send("GET", claims(door), headers=as_person("ann", "team-a"), user=user)
    assert (refused.code, refused.body["reason"]) == (403, "Forbidden")
    assert f'User "system:serviceaccount:{door.namespace}:web" cannot impersonate' in refused.body["message"]
    grant(door, [rule("resourceclaims", "list")], group("team-a"), "team")
    account = {"kind": "ServiceAccount", "name": "web", "namespace": door.namespace}
    on = rule("resourceclaims", "impersonate-on:user-info:list")
    grant(door, [on], account, "on")
    with door.cluster_role(
        [rule("groups", "impersonate:user-info", api_group="authentication.k8s.io", names=["team-a"]),
         rule("users", "impersonate:user-info", api_group="authentication.k8s.io")], account,
    ):  # fmt: skip
        mine = as_person("ann", "team-a")
        door.settle(lambda: door.send("GET", claims(door), headers=mine, user=user).code == 200)
        assert door.send("GET", claims(door), headers=as_person("ann", "team-b"), user=user).code == 403
        assert door.send("GET", f"{claims(door)}/x", headers=as_person("ann", "team-a"), user=user).code == 403


def test_groups_without_a_user_are_a_bad_request(door: Door) -> None:
    reply = door.send("GET", claims(door), headers=[("Impersonate-Group", "team-a")])
    assert (reply.code, "without impersonating a user" in str(reply.body)) in {(400, True), (500, True)}


def test_an_unknown_token_is_unauthorized(door: Door) -> None:
    reply = door.send("GET", claims(door), headers=[("Authorization", "Bearer nobody-has-this")])
    assert (reply.code, reply.body["reason"], reply.body["message"]) == (401, "Unauthorized", "Unauthorized")


def quota(door: Door, **hard: str) -> None:
    body = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}}
    assert door.send("POST", f"/api/v1/namespaces/{door.namespace}/resourcequotas", body).code == 201
    door.settle(lambda: quota_used(door).keys() == hard.keys())


def quota_used(door: Door) -> dict[str, str]:
    reply = door.send("GET", f"/api/v1/namespaces/{door.namespace}/resourcequotas/q")
    used: dict[str, str] = reply.body.get("status", {}).get("used", {})
    return used


def test_quota_counts_devices_by_class_and_refuses_in_these_words(door: Door) -> None:
    key = "gpu.example.com.deviceclass.resource.k8s.io/devices"
    quota(door, **{key: "2"})
    assert door.send("POST", claims(door), claim("a")).code == 201
    door.settle(lambda: quota_used(door) == {key: "1"})
    wide = claim("b")
    wide["spec"]["devices"]["requests"][0]["exactly"]["count"] = 2
    refused = door.send("POST", claims(door), wide)
    assert (refused.code, refused.body["reason"]) == (403, "Forbidden")
    assert refused.body["message"] == (
        'resourceclaims.resource.k8s.io "b" is forbidden: exceeded quota: q, '
        f"requested: {key}=2, used: {key}=1, limited: {key}=2"
    )
    assert door.send("POST", f"{claims(door)}?dryRun=All", wide).code == 403
    door.send("DELETE", f"{claims(door)}/a")
    door.settle(lambda: quota_used(door) == {key: "0"})
    assert door.send("POST", claims(door), wide).code == 201


def test_discovery_names_the_kinds(door: Door) -> None:
    assert "v1" in door.send("GET", "/api").body["versions"]
    groups = {each["name"] for each in door.send("GET", "/apis").body["groups"]}
    assert {"apps", "batch", "resource.k8s.io", "rbac.authorization.k8s.io"} <= groups
    resources = {each["name"]: each for each in door.send("GET", "/apis/resource.k8s.io/v1").body["resources"]}
    assert resources["resourceclaims"]["namespaced"] is True
    assert resources["resourceclaims"]["kind"] == "ResourceClaim"
    assert resources["resourceclaims/status"]["verbs"] == ["get", "patch", "update"]
    assert resources["deviceclasses"]["namespaced"] is False
    assert door.send("GET", "/version").body["minor"] == "37"
    assert door.send("GET", "/readyz").code == 200


def test_openapi_says_that_the_server_validates(door: Door) -> None:
    """All that kubectl reads there before it leaves validation to the server (cli-runtime query_param_verifier_v3)."""

    def read(path: str) -> Any:
        found = door.send("GET", path, headers={"Accept": "application/json"}).body
        return json.loads(found) if isinstance(found, str) else found  # a real one calls its JSON plain text

    index = read("/openapi/v3")["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/resource.k8s.io/v1"} <= index.keys()
    paths = read(index["apis/apps/v1"]["serverRelativeURL"])["paths"].values()
    kind = {"group": "apps", "version": "v1", "kind": "Deployment"}
    patches = [path["patch"] for path in paths if "patch" in path]
    (patch, *_) = [each for each in patches if each["x-kubernetes-group-version-kind"] == kind]
    assert "fieldValidation" in {each.get("name") for each in patch["parameters"]}


def test_what_does_not_go_with_a_path_is_not_allowed(door: Door) -> None:
    assert door.send("POST", "/apis/resource.k8s.io/v1/resourceclaims", claim()).code == 405
    assert door.send("PUT", claims(door), claim()).code == 405
    assert door.send("GET", f"{claims(door)}/one/nothing").code == 404
