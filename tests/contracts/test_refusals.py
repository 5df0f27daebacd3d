"""What the simulator does not do, it refuses with a code that clients know; what both refuse, they refuse alike."""

import pytest

from tests.contracts.conftest import Door, SimulatorDoor
from tests.contracts.test_objects import claim, claims


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/contract/configmaps",
        "/api/v1/namespaces/contract/secrets",
        "/apis/apps/v1/daemonsets",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "/apis/resource.k8s.io/v1beta1/resourceclaims",
    ],
)
def test_other_kinds_are_not_there(simulator_door: SimulatorDoor, path: str) -> None:
    reply = simulator_door.send("GET", path)
    assert (reply.code, reply.body["reason"]) == (404, "NotFound")
    assert reply.body["message"].startswith("the server could not find the requested resource: the simulator does not")


@pytest.mark.parametrize("subresource", ["eviction", "log", "exec", "ephemeralcontainers", "resize"])
def test_other_subresources_are_not_there(simulator_door: SimulatorDoor, subresource: str) -> None:
    path = f"/api/v1/namespaces/{simulator_door.namespace}/pods/p/{subresource}"
    reply = simulator_door.send("POST", path, {})
    assert (reply.code, reply.body["message"].endswith(f"does not serve pods/{subresource}")) == (404, True)


def test_other_encodings_are_refused(simulator_door: SimulatorDoor) -> None:
    door = simulator_door
    protobuf = "application/vnd.kubernetes.protobuf"
    assert door.send("GET", claims(door), headers={"Accept": protobuf}).code == 406
    assert (
        door.send("GET", claims(door), headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}).code == 406
    )
    assert door.send("GET", claims(door), headers={"Accept": f"{protobuf}, application/json"}).code == 200
    assert door.send("POST", claims(door), b"k8s\x00", {"Content-Type": protobuf}).code == 415


def test_other_deletions_are_refused(simulator_door: SimulatorDoor) -> None:
    door = simulator_door
    door.send("POST", claims(door), claim())
    for policy in ("Foreground", "Orphan"):
        reply = door.send("DELETE", f"{claims(door)}/one?propagationPolicy={policy}")
        assert (reply.code, f"propagationPolicy {policy} is not done" in reply.body["message"]) == (400, True)
    assert door.send("GET", f"{claims(door)}/one").code == 200


@pytest.mark.parametrize("media", ["application/json-patch+json", "application/strategic-merge-patch+json"])
def test_other_patches_are_refused(simulator_door: SimulatorDoor, media: str) -> None:
    door = simulator_door
    door.send("POST", claims(door), claim())
    reply = door.send("PATCH", f"{claims(door)}/one", {"metadata": {"labels": {"a": "b"}}}, {"Content-Type": media})
    assert (reply.code, "kubectl sends the latter with --server-side" in reply.body["message"]) == (415, True)


@pytest.mark.parametrize("path", ["/api/v1/namespaces/contract", "/api/v1/namespaces/contract/pods"])
def test_namespaces_and_collections_are_not_deleted(simulator_door: SimulatorDoor, path: str) -> None:
    reply = simulator_door.send("DELETE", path)
    assert (reply.code, reply.body["reason"]) == (405, "MethodNotAllowed")


@pytest.mark.parametrize("name", ["system:serviceaccount:contract:web", "system:node:n1"])
def test_accounts_and_nodes_are_not_impersonated(simulator_door: SimulatorDoor, name: str) -> None:
    reply = simulator_door.send("GET", claims(simulator_door), headers={"Impersonate-User": name}, user="web")
    assert (reply.code, "impersonates people" in reply.body["message"]) == (403, True)


@pytest.mark.parametrize("name", ["requests.cpu", "limits.memory", "services", "persistentvolumeclaims"])
def test_a_quota_that_would_not_hold_is_refused(simulator_door: SimulatorDoor, name: str) -> None:
    body = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {name: "1"}}}
    reply = simulator_door.send("POST", f"/api/v1/namespaces/{simulator_door.namespace}/resourcequotas", body)
    assert (reply.code, reply.body["details"]["causes"][0]["field"]) == (422, f"spec.hard[{name}]")


def test_lists_of_another_time_are_refused(simulator_door: SimulatorDoor) -> None:
    path = f"{claims(simulator_door)}?resourceVersion=1&resourceVersionMatch=Exact"
    reply = simulator_door.send("GET", path)
    assert (reply.code, "lists what there is now" in reply.body["message"]) == (400, True)


def test_yaml_bombs_are_refused(simulator_door: SimulatorDoor) -> None:
    bomb = b"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"
    reply = simulator_door.send("POST", claims(simulator_door), bomb, {"Content-Type": "application/yaml"})
    assert (reply.code, "aliases" in reply.body["message"]) == (400, True)


def test_a_body_over_three_mebibytes_is_refused(door: Door) -> None:
    assert door.send("POST", claims(door), b" " * (3 * 1024 * 1024 + 1)).code == 413


@pytest.mark.parametrize("body", [b"", b"[]", b"1", b"\xff", b'{"metadata": 1}'])
def test_what_is_no_object_is_a_bad_request(door: Door, body: bytes) -> None:
    assert door.send("POST", claims(door), body).code == 400


def test_a_namespace_that_is_missing_takes_nothing(door: Door) -> None:
    path = "/apis/resource.k8s.io/v1/namespaces/nowhere-at-all/resourceclaims"
    reply = door.send("POST", path, claim())
    assert (reply.code, reply.body["message"]) == (404, 'namespaces "nowhere-at-all" not found')


def test_a_built_in_kind_may_be_left_out(door: Door) -> None:
    body = {key: value for key, value in claim().items() if key not in {"apiVersion", "kind"}}
    assert door.send("POST", claims(door), body).body["kind"] == "ResourceClaim"
    assert door.send("POST", claims(door), b"null").code == 422
