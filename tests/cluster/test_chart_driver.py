"""What binds the node driver to its own node: the chart's admission policy for slices, the API server for statuses.

A driver pod's token names its node (`authentication.kubernetes.io/node-name`); the tokens here are bound like that.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.api import Answer
from tests.cluster.chart import ServiceAccounts, apply_roles
from tests.cluster.cluster import Cluster

DRIVER_NAME = "gpu.driver-test.dev"
CORE = "/api/v1"
DRA = "/apis/resource.k8s.io/v1"


@pytest.fixture(scope="module")
def accounts(cluster: Cluster) -> ServiceAccounts:
    return apply_roles(cluster, namespace="driver-system", teams={}, driver_name=DRIVER_NAME, prefix="portico:")


def driver_user(accounts: ServiceAccounts) -> str:
    return f"system:serviceaccount:{accounts.namespace}:{accounts.driver}"


NODE, OTHER_NODE = "driver-node-a", "driver-node-b"
SLICES = f"{DRA}/resourceslices"


@pytest.fixture(scope="module")
def nodes(cluster: Cluster) -> Iterator[None]:
    """Two Node objects that take no pods."""
    for name in (NODE, OTHER_NODE):
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"unschedulable": True}}
        cluster.call("POST", f"{CORE}/nodes", node)
    yield
    for name in (NODE, OTHER_NODE):
        cluster.call("DELETE", f"{CORE}/nodes/{name}")


def slice_of(name: str, node: str | None, driver: str = DRIVER_NAME) -> dict[str, Any]:
    where: dict[str, Any] = {"allNodes": True} if node is None else {"nodeName": node}
    pool = {"name": node or "everywhere", "generation": 1, "resourceSliceCount": 1}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {"driver": driver, "pool": pool, "devices": [{"name": "gpu-0"}], **where},
    }


@pytest.fixture
def foreign_slice(cluster: Cluster, nodes: None) -> Iterator[str]:  # its node must be there
    cluster.call("POST", SLICES, slice_of("chart-foreign", OTHER_NODE))
    yield "chart-foreign"
    cluster.call("DELETE", f"{SLICES}/chart-foreign")


@pytest.fixture
def driver(cluster: Cluster, accounts: ServiceAccounts, nodes: None) -> str:  # as above
    """The driver's user name, with the token that its pod on NODE has."""
    cluster.service_account_kubeconfig(accounts.namespace, accounts.driver, node=NODE)
    return driver_user(accounts)


def patch(cluster: Cluster, path: str, document: dict[str, Any], user: str) -> Answer:
    return cluster.raw("PATCH", path, json.dumps(document).encode(), "application/merge-patch+json", user=user)


def test_the_driver_publishes_changes_and_deletes_slices_of_its_node(cluster: Cluster, driver: str) -> None:
    cluster.call("POST", SLICES, slice_of("chart-own", NODE), user=driver)
    changed = patch(cluster, f"{SLICES}/chart-own", {"spec": {"pool": {"generation": 2}}}, driver)
    assert changed.json()["spec"]["pool"]["generation"] == 2
    assert cluster.raw("DELETE", f"{SLICES}/chart-own", user=driver).status == 200


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        (slice_of("chart-x", OTHER_NODE), f'driver on node "{NODE}" may write ResourceSlices of that node only'),
        (slice_of("chart-x", None), 'and this one has nodeName ""'),
        (slice_of("chart-x", NODE, "gpu.nvidia.com"), 'and this one is of "gpu.nvidia.com"'),
    ],
    ids=["other-node", "all-nodes", "other-driver"],
)
def test_the_driver_may_not_publish_for_others(
    cluster: Cluster, driver: str, document: dict[str, Any], sentence: str
) -> None:
    answer = cluster.raw("POST", SLICES, json.dumps(document).encode(), user=driver)
    assert answer.status == 422
    assert sentence in answer.json()["message"]


def test_the_driver_may_not_touch_another_nodes_slice(cluster: Cluster, driver: str, foreign_slice: str) -> None:
    sentence = f'and this one has nodeName "{OTHER_NODE}"'
    deleted = cluster.raw("DELETE", f"{SLICES}/{foreign_slice}", user=driver)
    changed = patch(cluster, f"{SLICES}/{foreign_slice}", {"spec": {"pool": {"generation": 2}}}, driver)
    for answer in (deleted, changed):
        assert answer.status == 422
        assert sentence in answer.json()["message"]


def test_a_token_that_is_bound_to_no_node_publishes_nothing(cluster: Cluster, accounts: ServiceAccounts) -> None:
    cluster.service_account_kubeconfig(accounts.namespace, accounts.driver)
    body = json.dumps(slice_of("chart-x", NODE)).encode()
    answer = cluster.raw("POST", SLICES, body, user=driver_user(accounts))
    assert answer.status == 422
    assert "token is bound to no node" in answer.json()["message"]


CLAIM = f"{DRA}/namespaces/default/resourceclaims/held"


def allocation(node: str) -> dict[str, Any]:
    result = {"request": "gpu", "driver": DRIVER_NAME, "pool": node, "device": "gpu-0"}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [term]}}


@pytest.fixture(params=[NODE, OTHER_NODE])
def held_node(cluster: Cluster, accounts: ServiceAccounts, request: pytest.FixtureRequest) -> Iterator[str]:
    """A claim that is allocated on this node, as the scheduler would have done it."""
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "held"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "any"}}]}},
    }
    cluster.call("POST", CLAIM.removesuffix("/held"), claim)
    patch(cluster, f"{CLAIM}/status", {"status": {"allocation": allocation(request.param)}}, "admin").expect()
    yield request.param
    patch(cluster, f"{CLAIM}/status", {"status": None}, "admin").expect()
    cluster.call("DELETE", CLAIM)


def test_the_driver_reports_devices_of_claims_on_its_node_only(cluster: Cluster, driver: str, held_node: str) -> None:
    device = {"driver": DRIVER_NAME, "pool": held_node, "device": "gpu-0", "data": {"mode": "Physical"}}
    answer = patch(cluster, f"{CLAIM}/status", {"status": {"devices": [device]}}, driver)
    if held_node == NODE:
        assert answer.json()["status"]["devices"][0]["data"] == {"mode": "Physical"}
    else:
        assert answer.status == 422
        assert 'changing status.devices requires resource="resourceclaims/driver"' in answer.json()["message"]


def test_the_driver_may_not_speak_for_another_driver(cluster: Cluster, driver: str) -> None:
    """Both have a device in the claim, on this very node."""
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "both"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "any", "count": 2}}]}},
    }
    path = CLAIM.removesuffix("/held")
    cluster.call("POST", path, claim)
    both = allocation(NODE)
    (ours,) = both["devices"]["results"]
    both["devices"]["results"].append(ours | {"driver": "nic.example.com"})
    patch(cluster, f"{path}/both/status", {"status": {"allocation": both}}, "admin").expect()
    foreign = {"driver": "nic.example.com", "pool": NODE, "device": "gpu-0", "data": {"mode": "Physical"}}

    for devices in ([foreign], [foreign | {"driver": DRIVER_NAME}, foreign]):
        answer = patch(cluster, f"{path}/both/status", {"status": {"devices": devices}}, driver)
        assert answer.status == 422
        assert 'changing status.devices requires resource="resourceclaims/driver"' in answer.json()["message"]
        assert "nic.example.com" in answer.json()["message"]
    patch(cluster, f"{path}/both/status", {"status": {"devices": [foreign]}}, "admin").expect()
    taken = patch(cluster, f"{path}/both/status", {"status": {"devices": None}}, driver)
    assert (taken.status, "nic.example.com" in taken.json()["message"]) == (422, True)
    patch(cluster, f"{path}/both/status", {"status": None}, "admin").expect()
    cluster.call("DELETE", f"{path}/both")


def test_the_driver_changes_no_claim_and_makes_none(cluster: Cluster, driver: str, held_node: str) -> None:
    claims = CLAIM.removesuffix("/held")
    labelled = patch(cluster, CLAIM, {"metadata": {"labels": {"a": "b"}}}, driver)
    made = cluster.raw("POST", claims, b'{"metadata":{"name":"x"}}', user=driver)
    gone = cluster.raw("DELETE", CLAIM, user=driver)
    assert [answer.status for answer in (labelled, made, gone)] == [403] * 3, held_node
    assert "metadata" in patch(cluster, f"{CLAIM}/status", {"metadata": {"labels": {"a": "b"}}}, driver).json()
    assert "labels" not in cluster.call("GET", CLAIM)["metadata"]


def test_the_driver_may_not_allocate(cluster: Cluster, driver: str, held_node: str) -> None:
    answer = patch(cluster, f"{CLAIM}/status", {"status": {"allocation": None}}, driver)
    assert answer.status == 422, held_node
    assert 'requires resource="resourceclaims/binding"' in answer.json()["message"]
