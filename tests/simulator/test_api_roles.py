"""The chart's own roles under the simulator's RBAC: what each component and a person may do, and no more."""

import json

import pytest

from simulator.api.access import User, account
from simulator.api.calls import Answer, Call
from simulator.api.server import ApiServer
from simulator.http import read_schema, stamp
from simulator.store import Store
from tests.cluster import chart

pytestmark = pytest.mark.programs  # renders the chart by helm

NAMESPACE = "portico-system"
STORED = {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
CLAIM_TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/ml/resourceclaimtemplates"


@pytest.fixture(scope="module")
def server() -> ApiServer:
    accounts = {name: account(NAMESPACE, f"portico-{name}") for name in ("web", "worker", "driver")}
    made = ApiServer(Store(), read_schema(), {"admin": User("admin", ("system:masters",)), **accounts}, stamp)
    for namespace in (NAMESPACE, "ml", "other"):
        send(
            made,
            "admin",
            "POST",
            "/api/v1/namespaces",
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        )
    values = {"prefix": "portico:", "teams": [{"name": "vision", "namespaces": ["ml"]}]}
    for item in chart.render(values, namespace=NAMESPACE):
        if item["kind"] in STORED:
            plural = item["kind"].lower() + "s"
            root = "/api/v1" if item["apiVersion"] == "v1" else f"/apis/{item['apiVersion']}"
            space = item["metadata"].get("namespace")
            path = f"{root}/namespaces/{space}/{plural}" if space else f"{root}/{plural}"
            assert send(made, "admin", "POST", f"{path}", item) == 201, item
    return made


def send(
    server: ApiServer, token: str, method: str, path: str, body: object = None, person: tuple[str, ...] = ()
) -> int:
    """The code of one request, perhaps as a person: user, then groups."""
    headers = [("authorization", f"Bearer {token}"), ("content-type", "application/json")]
    headers += [("impersonate-user", person[0])] if person else []
    headers += [("impersonate-group", group) for group in person[1:]]
    sent = json.dumps(body).encode() if body is not None else b""
    answered = server.handle(Call(method=method, path=path, headers=tuple(headers), body=sent))
    return answered.code if isinstance(answered, Answer) else 200


ANN = ("portico:ann", "portico:vision")
TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "one"},
    "spec": {"spec": {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "gpu"}}]}}},
}


def test_the_portal_writes_templates_as_a_person_of_the_team(server: ApiServer) -> None:
    assert send(server, "web", "POST", CLAIM_TEMPLATES, TEMPLATE, ANN) == 201
    assert send(server, "web", "DELETE", f"{CLAIM_TEMPLATES}/one", None, ANN) == 200


@pytest.mark.parametrize(
    ("person", "path"),
    [
        ((), CLAIM_TEMPLATES),  # as itself
        (("portico:ann", "portico:strangers"), CLAIM_TEMPLATES),  # a group that is no team
        (ANN, CLAIM_TEMPLATES.replace("/ml/", "/other/")),  # a namespace that is no team's
        (("portico:ann", "system:masters"), CLAIM_TEMPLATES),
        (("system:serviceaccount:kube-system:admin",), CLAIM_TEMPLATES),
        (ANN, "/api/v1/namespaces/ml/pods"),  # a kind that the portal does not write
    ],
)
def test_the_portal_writes_nothing_else(server: ApiServer, person: tuple[str, ...], path: str) -> None:
    assert send(server, "web", "POST", path, TEMPLATE, person) == 403


def test_the_worker_reads_and_never_writes(server: ApiServer) -> None:
    assert send(server, "worker", "GET", "/apis/resource.k8s.io/v1/resourceslices") == 200
    assert send(server, "worker", "POST", CLAIM_TEMPLATES, TEMPLATE) == 403
    assert send(server, "worker", "DELETE", "/apis/resource.k8s.io/v1/resourceslices/x") == 403


def test_the_driver_writes_slices_and_no_templates(server: ApiServer) -> None:
    spec = {
        "driver": "gpu.portico.dev",
        "nodeName": "n",
        "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
    }
    body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec}
    assert send(server, "driver", "POST", "/apis/resource.k8s.io/v1/resourceslices", body) == 201
    assert send(server, "driver", "POST", CLAIM_TEMPLATES, TEMPLATE) == 403
