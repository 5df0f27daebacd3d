"""Cards of AMD and Intel on the real cluster: chosen by class beside eight of NVIDIA's, their nodes in containers."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.driver import NodeDriver
from tests.cluster.pods import busybox_pod
from tests.cluster.processes import ProgramError
from tests.cluster.waiting import wait_until
from tests.journeys.conftest import DRIVER_NAME
from tests.journeys.overlay import Document
from tests.journeys.workloads import Workloads

# What each class chooses by, the device that has it (rank by PCI address over all vendors), and its nodes by numbers.
CARDS = {
    "amd": ("gpu-8", {"/dev/kfd": "ea:0", "/dev/dri/card8": "e2:8", "/dev/dri/renderD136": "e2:88"}),
    "intel": ("gpu-9", {"/dev/dri/card9": "e2:9", "/dev/dri/renderD137": "e2:89"}),
}
NAMESPACE = "ml-team"


@pytest.fixture(scope="module")
def team(node_driver: NodeDriver, cluster: Cluster) -> Iterator[Workloads]:
    """A class, a template and a running pod for each vendor."""
    workloads = Workloads(cluster, NAMESPACE)
    for vendor in CARDS:
        cluster.apply(device_class(vendor), template(vendor), pod(vendor))
    workloads.await_running(len(CARDS))
    yield workloads
    workloads.clear()


def device_class(vendor: str) -> Document:
    expression = f'device.driver == "{DRIVER_NAME}" && device.attributes["{DRIVER_NAME}"].vendor == "{vendor}"'
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": vendor}, "spec": spec}


def template(vendor: str) -> Document:
    exactly = {"deviceClassName": vendor, "capacity": {"requests": {"memory": "16Gi"}}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": vendor, "namespace": NAMESPACE},
        "spec": {"spec": {"devices": {"requests": [{"name": "card", "exactly": exactly}]}}},
    }


def pod(vendor: str) -> Document:
    made = busybox_pod(vendor, resourceClaims=[{"name": "card", "resourceClaimTemplateName": vendor}])
    made["metadata"]["namespace"] = NAMESPACE
    made["spec"]["containers"][0]["resources"] = {"claims": [{"name": "card"}]}
    return made


@pytest.mark.parametrize("vendor", CARDS)
def test_a_pod_gets_the_card_that_its_class_chooses(node_driver: NodeDriver, team: Workloads, vendor: str) -> None:
    device, nodes = CARDS[vendor]
    (result,) = team.results(vendor)
    assert (result["driver"], result["device"], result.get("shareID")) == (DRIVER_NAME, device, None)
    for path, numbers in nodes.items():
        found = node_driver.node.exec(vendor, "main", ["stat", "-c", "%F %t:%T", path], NAMESPACE)
        assert found.strip() == f"character special file {numbers}"


@pytest.mark.parametrize("vendor", CARDS)
def test_it_gets_no_card_of_another_vendor(node_driver: NodeDriver, team: Workloads, vendor: str) -> None:
    theirs = {path for _, nodes in CARDS.values() for path in nodes} - CARDS[vendor][1].keys()
    for path in ("/dev/nvidiactl", "/dev/nvidia0", *theirs):
        with pytest.raises(ProgramError):
            node_driver.node.exec(vendor, "main", ["stat", path], NAMESPACE)


@pytest.mark.parametrize("vendor", CARDS)
def test_it_can_read_which_card_it_has(node_driver: NodeDriver, team: Workloads, vendor: str) -> None:
    path = f"/var/run/kubernetes.io/dra-device-attributes/resourceclaimtemplates/card/card/{DRIVER_NAME}-metadata.json"
    text = node_driver.node.exec(vendor, "main", ["cat", path], NAMESPACE)
    newest = json.JSONDecoder().raw_decode(text)[0]
    claim = team.claim_of(vendor)["metadata"]
    assert (newest["metadata"]["uid"], newest["podClaimName"]) == (claim["uid"], "card")
    (request,) = newest["requests"]
    (device,) = request["devices"]
    assert (request["name"], device["name"]) == ("card", CARDS[vendor][0])
    assert device["attributes"]["vendor"] == {"string": vendor}
    with pytest.raises(ProgramError):
        node_driver.node.exec(vendor, "main", ["sh", "-c", f"echo > {path}"], NAMESPACE)


def test_the_kubelet_says_that_nobody_hears_of_their_errors(team: Workloads) -> None:
    def told() -> str | None:
        status = next(each["status"] for each in team.pods() if each["metadata"]["name"] == "amd")
        found = [r for c in status["containerStatuses"] for r in c.get("allocatedResourcesStatus", [])]
        return found[0]["resources"][0]["health"] if found else None

    assert wait_until(told, "the health of the card", 90) == "Unknown"


def test_what_is_unprepared_leaves_nothing(node_driver: NodeDriver, team: Workloads) -> None:
    team.clear()
    node_driver.await_unprepared()
