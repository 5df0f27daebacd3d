"""What the API server takes as a PhysicalGPU and from whom, by the CRD and the policies that the chart ships."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from dra.objects import PhysicalGPU, decode, to_json
from tests.cluster.api import Answer
from tests.cluster.chart import ServiceAccounts, apply_roles
from tests.cluster.cluster import Cluster
from tests.cluster.physicalgpus import PATH, physical_gpu, served
from tests.cluster.waiting import wait_until

NODE, OTHER_NODE = "card-node-a", "card-node-b"
TRY = f"{PATH}?dryRun=All&fieldValidation=Strict"
APPLY = "application/apply-patch+yaml"
STATUS: dict[str, Any] = {
    "capabilities": {
        "vendor": "nvidia",
        "productName": "NVIDIA H100 80GB HBM3",
        "architecture": "Hopper",
        "computeCapability": "9.0",
        "memory": "81559Mi",
        "migModeChange": "WhenIdle",
        "migProfiles": [
            {
                "name": "3g.40gb",
                "memory": "40448Mi",
                "computeSlices": 3,
                "multiprocessors": 60,
                "maxInstances": 2,
                "memorySlices": 4,
                "starts": [0, 4],
            }
        ],
        "vfio": False,
    },
    "topology": {
        "numaNode": 0,
        "pcieRoot": "pci0000:64",
        "nearestNIC": "0000:66:00.0",
        "nearestNICLink": "PIX",
        "nvlinkClique": "0000:18:00.0",
        "drmCard": "card1",
        "drmRender": "renderD128",
    },
    "currentState": {
        "mode": "MIG",
        "uuid": "GPU-1",
        "kernelDriver": "nvidia",
        "driverVersion": "580.65.06",
        "migInstances": ["3g.40gb@4"],
        "heldBy": [{"namespace": "ml-team", "name": "claim", "uid": "u-1", "devices": ["gpu-0-mig-3g40gb-4"]}],
    },
    "published": {"driver": "gpu.portico.dev", "pool": "node-1", "devices": ["gpu-0"]},
    "conditions": [
        {
            "type": "TakesClaims",
            "status": "True",
            "reason": "NotTainted",
            "message": "no taint keeps claims away",
            "lastTransitionTime": "2026-07-01T00:00:00Z",
        }
    ],
}
TAKEN = {"a card": physical_gpu(), "a wide domain": physical_gpu(address="10000:e1:00.0")}
REFUSED = {
    "another name": (physical_gpu(name="mine"), "must be the node's name and the PCI address"),
    "the name of another node's card": (physical_gpu(name="node-2-0000-65-00-0"), "must be the node's name"),
    "no address": (physical_gpu(address="gpu-0"), "spec.pciAddress"),
    "upper case": (physical_gpu(address="0000:AF:00.0"), "spec.pciAddress"),
    "no node": (physical_gpu(node=""), "spec.nodeName"),
    "no spec": ({**physical_gpu(), "spec": {}}, "spec.nodeName"),
    "a field that is none": ({**physical_gpu(), "colour": "green"}, 'unknown field "colour"'),
}
STATUS_REFUSED = {
    "a mode that is none": ({"currentState": {"mode": "Half"}}, "status.currentState.mode"),
    "a link that is none": ({"topology": {"nearestNICLink": "NEAR"}}, "status.topology.nearestNICLink"),
    "a condition without a time": (
        {"conditions": [{"type": "A", "status": "True", "reason": "B", "message": ""}]},
        "lastTransitionTime",
    ),
    "a condition that is half true": (
        {"conditions": [{**STATUS["conditions"][0], "status": "Half"}]},
        "status.conditions[0].status",
    ),
    "two conditions of one type": ({"conditions": STATUS["conditions"] * 2}, "duplicate"),
}


@pytest.fixture(scope="module", autouse=True)
def kind(cluster: Cluster) -> Iterator[None]:
    """The chart's CRD is there."""
    with served(cluster):
        yield


@pytest.fixture(scope="module")
def accounts(cluster: Cluster) -> ServiceAccounts:
    made = apply_roles(cluster, namespace="card-system", teams={}, driver_name="gpu.card-test.dev", prefix="portico:")
    cluster.service_account_kubeconfig(made.namespace, made.driver)
    unbound, body = user_of(made), json.dumps(physical_gpu()).encode()
    wait_until(lambda: cluster.raw("POST", TRY, body, user=unbound).status == 422, "the chart's policy for cards")
    return made


@pytest.fixture
def driver(cluster: Cluster, accounts: ServiceAccounts) -> Iterator[str]:
    """The driver's user name, with the token that its pod on NODE has."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}, "spec": {"unschedulable": True}}
    cluster.call("POST", "/api/v1/nodes", node)
    cluster.service_account_kubeconfig(accounts.namespace, accounts.driver, node=NODE)
    yield user_of(accounts)
    cluster.call("DELETE", f"/api/v1/nodes/{NODE}")


def user_of(accounts: ServiceAccounts) -> str:
    return f"system:serviceaccount:{accounts.namespace}:{accounts.driver}"


def apply(cluster: Cluster, document: dict[str, Any], subresource: str = "", user: str = "admin") -> Answer:
    path = f"{PATH}/{document['metadata']['name']}{subresource}"
    query = "?fieldManager=test&force=true&fieldValidation=Strict"
    return cluster.raw("PATCH", path + query, json.dumps(document).encode(), APPLY, user=user)


@pytest.mark.parametrize("document", TAKEN.values(), ids=TAKEN)
def test_taken(cluster: Cluster, document: dict[str, Any]) -> None:
    answer = cluster.raw("POST", TRY, json.dumps(document).encode())
    assert answer.status == 201, answer.body


@pytest.mark.parametrize(("document", "words"), REFUSED.values(), ids=REFUSED)
def test_refused(cluster: Cluster, document: dict[str, Any], words: str) -> None:
    answer = cluster.raw("POST", TRY, json.dumps(document).encode())
    assert answer.status in (400, 422), answer.body
    assert words in answer.json()["message"]


@pytest.fixture
def stored(cluster: Cluster) -> Iterator[dict[str, Any]]:
    document = physical_gpu(NODE)
    apply(cluster, document).expect()
    yield document
    cluster.call("DELETE", f"{PATH}/{document['metadata']['name']}")


def test_a_status_reads_the_same_as_it_was_written(cluster: Cluster, stored: dict[str, Any]) -> None:
    written = decode(json.dumps(stored | {"status": STATUS}).encode(), PhysicalGPU)
    answer = apply(cluster, stored | {"status": to_json(written)["status"]}, "/status")
    assert answer.json()["status"] == STATUS
    assert decode(answer.body, PhysicalGPU).status == written.status


@pytest.mark.parametrize(("status", "words"), STATUS_REFUSED.values(), ids=STATUS_REFUSED)
def test_a_status_that_is_refused(cluster: Cluster, stored: dict[str, Any], status: Any, words: str) -> None:
    answer = apply(cluster, stored | {"status": status}, "/status")
    assert answer.status >= 400
    assert words in answer.json()["message"]


def test_cards_are_listed_by_their_node(cluster: Cluster, stored: dict[str, Any]) -> None:
    apply(cluster, physical_gpu(OTHER_NODE)).expect()
    found = cluster.call("GET", f"{PATH}?fieldSelector=spec.nodeName%3D{NODE}")["items"]
    cluster.call("DELETE", f"{PATH}/{physical_gpu(OTHER_NODE)['metadata']['name']}")
    assert [item["metadata"]["name"] for item in found] == [stored["metadata"]["name"]]


def test_the_driver_writes_the_cards_of_its_node(cluster: Cluster, driver: str) -> None:
    document = physical_gpu(NODE)
    apply(cluster, document, user=driver).expect()
    apply(cluster, document | {"status": STATUS}, "/status", user=driver).expect()
    assert cluster.raw("DELETE", f"{PATH}/{document['metadata']['name']}", user=driver).status == 200


def test_the_driver_writes_no_card_of_another_node(cluster: Cluster, driver: str) -> None:
    document = physical_gpu(OTHER_NODE)
    path = f"{PATH}/{document['metadata']['name']}"
    refused = [apply(cluster, document, user=driver)]
    apply(cluster, document).expect()
    refused.append(apply(cluster, document | {"status": STATUS}, "/status", user=driver))
    refused.append(cluster.raw("DELETE", path, user=driver))
    cluster.call("DELETE", path)
    for answer in refused:
        assert answer.status == 422
        assert (
            f'the node driver on node "{NODE}" may write the PhysicalGPU objects of that node only'
            in (answer.json()["message"])
        )


def test_a_token_that_is_bound_to_no_node_writes_nothing(cluster: Cluster, accounts: ServiceAccounts) -> None:
    cluster.service_account_kubeconfig(accounts.namespace, accounts.driver)
    answer = cluster.raw("POST", TRY, json.dumps(physical_gpu()).encode(), user=user_of(accounts))
    assert (answer.status, "token is bound to no node" in answer.json()["message"]) == (422, True)
