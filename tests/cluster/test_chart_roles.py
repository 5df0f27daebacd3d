"""What the chart's roles mean to a real API server; what binds the driver to its node is in test_chart_driver.py.

The rules themselves, word by word, are in tests/house/test_chart_rights.py. Here each subject is asked for every verb
on every resource that matters, so a right that comes in by another way is found too.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPSConnection
from typing import Any

import pytest

from tests.cluster.api import Answer
from tests.cluster.chart import ServiceAccounts, apply_roles, render
from tests.cluster.cluster import Cluster

DRIVER_NAME = "gpu.chart-test.dev"
TRAIN, SERVE, SEARCH = "chart-train", "chart-serve", "chart-search"
CORE = "/api/v1"
DRA = "/apis/resource.k8s.io/v1"

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "impersonate")
RESOURCES = (
    *(f"resource.k8s.io/{name}" for name in ("resourceslices", "deviceclasses", "devicetaintrules")),
    *(f"resource.k8s.io/{name}" for name in ("resourceclaims", "resourceclaims/status", "resourceclaims/binding")),
    *(f"resource.k8s.io/{name}" for name in ("resourceclaims/driver", "resourceclaimtemplates")),
    *(f"/{name}" for name in ("nodes", "namespaces", "pods", "pods/exec", "pods/log", "secrets", "configmaps")),
    *(f"/{name}" for name in ("events", "resourcequotas", "serviceaccounts", "serviceaccounts/token")),
    *(f"/{name}" for name in ("users", "groups")),
    *(f"rbac.authorization.k8s.io/{name}" for name in ("roles", "rolebindings", "clusterroles", "clusterrolebindings")),
    *(f"portico.dev/{name}" for name in ("gpuclasses", "physicalgpus", "physicalgpus/status")),
    "apps/deployments",
    "batch/jobs",
    "admissionregistration.k8s.io/validatingadmissionpolicies",
)

READ = "get list watch"
TEAM = {
    "resource.k8s.io/resourceclaimtemplates": f"{READ} create delete",
    "resource.k8s.io/resourceclaims": f"{READ} create delete",
    "/pods": f"{READ} create delete",
    "apps/deployments": f"{READ} create update patch delete",
    "batch/jobs": f"{READ} create update patch delete",
    "/events": "get list",
    "/resourcequotas": "get list",
}
FLEET = {
    "resource.k8s.io/resourceslices": READ,
    "resource.k8s.io/deviceclasses": READ,
    "resource.k8s.io/resourceclaims": READ,
    "resource.k8s.io/resourceclaimtemplates": READ,
    "/nodes": READ,
}
FOLLOWED = FLEET | {
    # Dry runs only: the chart's policy refuses all others (test_capabilities.py).
    "resource.k8s.io/resourceslices": f"{READ} create",
    "resource.k8s.io/deviceclasses": f"{READ} create",
    "resource.k8s.io/devicetaintrules": READ,
    "/pods": READ,
    "/namespaces": READ,
    "/events": READ,
    "/resourcequotas": READ,
    "portico.dev/gpuclasses": READ,
    "portico.dev/physicalgpus": READ,
}
OPERATED = FLEET | {
    "resource.k8s.io/deviceclasses": f"{READ} create patch delete",
    "portico.dev/gpuclasses": f"{READ} create patch delete",
    "portico.dev/physicalgpus": READ,
}
DRIVER = {
    "resource.k8s.io/resourceclaims": "get list watch",
    "resource.k8s.io/resourceclaims/status": "update patch",
    "resource.k8s.io/resourceslices": f"{READ} create update patch delete",
    "resource.k8s.io/deviceclasses": "list",
    "portico.dev/physicalgpus": "get list create patch delete",
    "portico.dev/physicalgpus/status": "patch",
    "/nodes": "get",
}


@dataclass(frozen=True, slots=True)
class Subject:
    """Who is asked about: a ServiceAccount of the release by its component, or a person with groups."""

    name: str
    groups: tuple[str, ...] = ()
    component: str = ""

    def user(self, accounts: ServiceAccounts) -> str:
        if not self.component:
            return self.name
        return f"system:serviceaccount:{accounts.namespace}:{getattr(accounts, self.component)}"


WEB = Subject("web", component="web")
WORKER = Subject("worker", component="worker")
NODE_DRIVER = Subject("driver", component="driver")
MPSD = Subject("mpsd", component="mpsd")
ALICE = Subject("portico:alice", ("portico:ml-team",))
CHARLIE = Subject("portico:charlie", ("portico:search",))
GUEST = Subject("portico:guest")
OPERATOR = Subject("portico:olga", ("portico:operators",))


@pytest.fixture(scope="module")
def accounts(cluster: Cluster) -> ServiceAccounts:
    return apply_roles(
        cluster,
        namespace="chart-system",
        teams={"ml-team": [TRAIN, SERVE], "search": [SEARCH]},
        driver_name=DRIVER_NAME,
        prefix="portico:",
    )


@pytest.mark.usefixtures("accounts")  # makes the team's namespace
def test_the_api_server_knows_every_field_of_every_object(cluster: Cluster) -> None:
    objects = render({"teams": [{"name": "ml-team", "namespaces": [TRAIN]}]}, namespace="default")
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    printed = cluster.kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-", "-o", "name", input=text)
    assert len(printed.split()) == len(objects)


# --- who may do what


def review(subject: Subject, accounts: ServiceAccounts, attributes: dict[str, str]) -> dict[str, Any]:
    spec = {
        "user": subject.user(accounts),
        "groups": [*subject.groups, "system:authenticated"],
        "resourceAttributes": attributes,
    }
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}


def rights(cluster: Cluster, accounts: ServiceAccounts, subject: Subject, namespace: str) -> dict[str, set[str]]:
    """Every verb on every resource that the API server allows; an empty namespace asks for the whole cluster."""
    found: dict[str, set[str]] = {}
    with cluster.api() as api:
        for entry in RESOURCES:
            group, _, path = entry.partition("/")
            resource, _, subresource = path.partition("/")
            for verb in VERBS:
                attributes = {"group": group, "resource": resource, "subresource": subresource}
                attributes |= {"verb": verb, "namespace": namespace}
                document = review(subject, accounts, attributes)
                if api.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", document)["status"][
                    "allowed"
                ]:
                    found.setdefault(entry, set()).add(verb)
    return found


@pytest.mark.parametrize(
    ("subject", "namespace", "expected"),
    [
        (WEB, "", {}),
        (WEB, TRAIN, {}),
        (MPSD, "", {}),
        (MPSD, "chart-system", {}),
        (WORKER, "", FOLLOWED),
        (WORKER, TRAIN, FOLLOWED),
        (WORKER, "chart-system", FOLLOWED | {"resource.k8s.io/resourceclaimtemplates": f"{READ} create"}),
        (NODE_DRIVER, "", DRIVER),
        (ALICE, TRAIN, TEAM),
        (ALICE, SERVE, TEAM),
        (ALICE, SEARCH, {}),
        (ALICE, "chart-system", {}),
        (ALICE, "", {}),
        (CHARLIE, SEARCH, TEAM),
        (CHARLIE, TRAIN, {}),
        (GUEST, TRAIN, {}),
        (OPERATOR, "", OPERATED),
    ],
    ids=lambda value: value.name if isinstance(value, Subject) else value if isinstance(value, str) else "",
)
def test_a_subject_has_these_rights_and_no_other(
    cluster: Cluster, accounts: ServiceAccounts, subject: Subject, namespace: str, expected: dict[str, str]
) -> None:
    assert rights(cluster, accounts, subject, namespace) == {
        resource: set(verbs.split()) for resource, verbs in expected.items()
    }


@pytest.mark.parametrize(
    ("verb", "name", "allowed"),
    [
        ("associated-node:update", DRIVER_NAME, True),
        ("associated-node:patch", DRIVER_NAME, True),
        ("associated-node:patch", "gpu.nvidia.com", False),
        ("arbitrary-node:patch", DRIVER_NAME, False),
    ],
)
def test_the_driver_writes_its_own_entries_in_statuses_of_its_node(
    cluster: Cluster, accounts: ServiceAccounts, verb: str, name: str, *, allowed: bool
) -> None:
    attributes = {"group": "resource.k8s.io", "resource": "resourceclaims", "subresource": "driver"}
    attributes |= {"verb": verb, "name": name, "namespace": TRAIN}
    document = review(NODE_DRIVER, accounts, attributes)
    answer = cluster.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", document)
    assert answer["status"]["allowed"] is allowed


# --- the portal as a person


def template(name: str) -> dict[str, Any]:
    device_request = {"name": "gpu", "exactly": {"deviceClassName": "any"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"spec": {"devices": {"requests": [device_request]}}},
    }


@dataclass(frozen=True, slots=True)
class Portal:
    """The portal's own account, speaking to the API server as somebody else (Impersonate-User, Impersonate-Group)."""

    cluster: Cluster
    account: str

    def send(self, person: str, groups: Sequence[str], line: str, document: dict[str, Any] | None = None) -> Answer:
        """`line` is method and path, as `GET /api/v1/…`."""
        access = self.cluster.access(self.account)
        connection = HTTPSConnection(access.host, access.port, timeout=30, context=access.tls())
        try:
            method, path = line.split(" ")
            connection.putrequest(method, path)
            headers = [*access.headers().items(), ("Impersonate-User", person)]
            for name, value in (*headers, *(("Impersonate-Group", group) for group in groups)):
                connection.putheader(name, value)
            body = json.dumps(document).encode() if document else b""
            connection.putheader("Content-Type", "application/json")
            connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            response = connection.getresponse()
            return Answer(response.status, response.read())
        finally:
            connection.close()


@pytest.fixture
def portal(cluster: Cluster, accounts: ServiceAccounts) -> Portal:
    cluster.service_account_kubeconfig(accounts.namespace, accounts.web)
    return Portal(cluster, f"system:serviceaccount:{accounts.namespace}:{accounts.web}")


def templates(namespace: str) -> str:
    return f"{DRA}/namespaces/{namespace}/resourceclaimtemplates"


def test_the_portal_makes_reads_and_deletes_a_template_as_alice(portal: Portal) -> None:
    alice = ("portico:alice", ["portico:ml-team"])
    dry_run = portal.send(*alice, f"POST {templates(TRAIN)}?dryRun=All&fieldValidation=Strict", template("mine"))
    assert dry_run.status == 201, dry_run.body
    assert portal.send(*alice, f"GET {templates(TRAIN)}/mine").status == 404
    assert portal.send(*alice, f"POST {templates(TRAIN)}", template("mine")).status == 201
    assert portal.send(*alice, f"GET {templates(TRAIN)}/mine").json()["metadata"]["name"] == "mine"
    names = [item["metadata"]["name"] for item in portal.send(*alice, f"GET {templates(TRAIN)}").json()["items"]]
    assert names == ["mine"]
    assert portal.send(*alice, f"DELETE {templates(TRAIN)}/mine").status == 200


@pytest.mark.parametrize("path", [f"{DRA}/namespaces/{TRAIN}/resourceclaims", f"{CORE}/namespaces/{TRAIN}/pods"])
def test_the_portal_reads_claims_and_pods_as_alice(portal: Portal, path: str) -> None:
    assert portal.send("portico:alice", ["portico:ml-team"], f"GET {path}").status == 200


def test_a_person_in_several_teams_acts_as_all_of_them(portal: Portal) -> None:
    groups = ["portico:ml-team", "portico:search", "portico:operators"]
    for namespace in (TRAIN, SEARCH):
        answer = portal.send("portico:dora", groups, f"POST {templates(namespace)}?dryRun=All", template("two"))
        assert answer.status == 201


def test_the_audit_log_names_the_portal_and_the_person(portal: Portal) -> None:
    portal.send("portico:alice", ["portico:ml-team"], f"POST {templates(SERVE)}?dryRun=All", template("audited"))
    (event,) = [
        event
        for event in portal.cluster.audit()
        if event["requestURI"].startswith(templates(SERVE)) and event["user"]["username"] == portal.account
    ]
    assert event["impersonatedUser"] == {
        "username": "portico:alice",
        "groups": ["portico:ml-team", "system:authenticated"],
    }
    assert event["authenticationMetadata"] == {"impersonationConstraint": "impersonate:user-info"}


ML_TEAM = ["portico:ml-team"]


@pytest.mark.parametrize(
    ("person", "groups", "line", "sentence"),
    [
        # The person lacks the right: the sentence names the person.
        ("portico:charlie", ["portico:search"], f"POST {templates(TRAIN)}", 'User "portico:charlie" cannot create'),
        ("portico:guest", [], f"POST {templates(TRAIN)}", 'User "portico:guest" cannot create'),
        ("portico:olga", ["portico:operators"], f"POST {templates(TRAIN)}", 'User "portico:olga" cannot create'),
        # Outside the teams' namespaces and outside the listed verbs: whoever the person is.
        ("portico:alice", ML_TEAM, f"POST {templates('default')}", "cannot impersonate-on:user-info:create"),
        ("portico:alice", ML_TEAM, f"GET {CORE}/namespaces/{TRAIN}/secrets", "cannot impersonate-on:user-info:list"),
        (
            "portico:alice",
            ML_TEAM,
            f"DELETE {CORE}/namespaces/{TRAIN}/pods/x",
            "cannot impersonate-on:user-info:delete",
        ),
        ("portico:alice", ML_TEAM, f"DELETE {templates(TRAIN)}", "cannot impersonate-on:user-info:deletecollection"),
        ("portico:olga", ["portico:operators"], f"GET {DRA}/resourceslices", "cannot impersonate-on:user-info:list"),
        ("system:kube-controller-manager", [], f"GET {CORE}/secrets", "cannot impersonate-on:user-info:list"),
        # As somebody whom the portal may not be.
        ("portico:alice", ["portico:other"], f"GET {templates(TRAIN)}", 'groups.authentication.k8s.io "portico:other"'),
        ("portico:alice", [*ML_TEAM, "other"], f"GET {templates(TRAIN)}", 'groups.authentication.k8s.io "other"'),
        ("portico:alice", ["system:masters"], f"GET {templates(TRAIN)}", "system:masters group is not allowed"),
        ("system:node:n", [], f"GET {templates(TRAIN)}", "cannot impersonate-on:arbitrary-node:list"),
        (
            "system:serviceaccount:kube-system:generic-garbage-collector",
            [],
            f"DELETE {templates(TRAIN)}/x",
            "cannot impersonate-on:serviceaccount:delete",
        ),
    ],
)
def test_the_portal_is_refused(portal: Portal, person: str, groups: list[str], line: str, sentence: str) -> None:
    document = template("refused") if line.startswith("POST") else None
    answer = portal.send(person, groups, line, document)
    assert answer.status == 403, answer.body
    assert sentence in answer.json()["message"]


def test_the_portal_as_itself_asks_for_the_version_and_nothing_else(portal: Portal) -> None:
    cluster, user = portal.cluster, portal.account
    assert cluster.raw("GET", "/version", user=user).status == 200
    for path in (templates(TRAIN), f"{DRA}/resourceslices", f"{CORE}/nodes", f"{CORE}/namespaces/chart-system/secrets"):
        assert cluster.raw("GET", path, user=user).status == 403
    body = json.dumps(template("own")).encode()
    assert cluster.raw("POST", templates(TRAIN), body, user=user).status == 403
