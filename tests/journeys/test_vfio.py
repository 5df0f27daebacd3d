"""A card for a virtual machine on the real cluster: chosen by class, bound for the pod, given back after it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from simulator.silicon import pci
from simulator.silicon.hardware import Gpu
from tests.cluster.cluster import Cluster
from tests.cluster.driver import NodeDriver
from tests.cluster.pods import busybox_pod
from tests.cluster.processes import ProgramError
from tests.cluster.waiting import wait_until
from tests.journeys.conftest import DRIVER_NAME
from tests.journeys.overlay import Document
from tests.journeys.workloads import Workloads

NAMESPACE, NAME = "ml-team", "machine"


@pytest.fixture(scope="module")
def passing(node_driver: NodeDriver) -> Iterator[NodeDriver]:
    """The driver on a node whose module vfio-pci is loaded."""
    pci.load_vfio(node_driver.tree.sys)
    node_driver.roll_over()
    yield node_driver
    shutil.rmtree(node_driver.tree.sys / "bus/pci/drivers/vfio-pci")
    node_driver.roll_over()


@pytest.fixture(scope="module")
def team(passing: NodeDriver, cluster: Cluster) -> Iterator[Workloads]:
    """A pod with such a card, running."""
    workloads = Workloads(cluster, NAMESPACE)
    cluster.apply(device_class(), template(), pod())
    workloads.await_running(1, selector=NAME)
    yield workloads
    workloads.clear()


def device_class() -> Document:
    expression = f'device.driver == "{DRIVER_NAME}" && device.attributes["{DRIVER_NAME}"].vfioReady'
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": NAME}, "spec": spec}


def template() -> Document:
    parameters = {
        "apiVersion": f"resource.{DRIVER_NAME}/v1alpha1",
        "kind": "VfioDeviceConfig",
        "iommu": {"backendPolicy": "PreferIommuFD", "enableAPIDevice": True},
    }
    devices = {
        "requests": [{"name": "card", "exactly": {"deviceClassName": NAME}}],
        "config": [{"opaque": {"driver": DRIVER_NAME, "parameters": parameters}}],
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {"spec": {"devices": devices}},
    }


def pod() -> Document:
    made = busybox_pod(NAME, resourceClaims=[{"name": "card", "resourceClaimTemplateName": NAME}])
    made["metadata"]["namespace"] = NAMESPACE
    made["spec"]["containers"][0]["resources"] = {"claims": [{"name": "card"}]}
    return made


def card_of(driver: NodeDriver, device: str) -> Gpu:
    return driver.state.read().gpus[int(device.split("-")[1])]


def published(driver: NodeDriver) -> list[str]:
    return [device["name"] for each in driver.slices() for device in each["spec"].get("devices", ())]


def test_the_pod_gets_the_nodes_of_its_card_and_nothing_of_the_vendor(passing: NodeDriver, team: Workloads) -> None:
    (result,) = team.results(NAME)
    gpu = card_of(passing, result["device"])
    assert (result["device"], gpu.driver) == (f"gpu-{gpu.index}-vfio", "vfio-pci")
    numbers = {f"/dev/vfio/devices/vfio{gpu.index}": f"{511:x}:{gpu.index:x}", "/dev/iommu": f"{10:x}:{122:x}"}
    for path, expected in numbers.items():
        found = passing.node.exec(NAME, "main", ["stat", "-c", "%F %t:%T", path], NAMESPACE)
        assert found.strip() == f"character special file {expected}"
    for path in ("/dev/nvidiactl", f"/dev/nvidia{gpu.minor}", f"/dev/vfio/{gpu.index}"):
        with pytest.raises(ProgramError):
            passing.node.exec(NAME, "main", ["stat", path], NAMESPACE)


def test_the_card_stays_published_and_untainted_over_a_restart_of_the_driver(
    passing: NodeDriver, team: Workloads
) -> None:
    before = published(passing)
    passing.roll_over()
    assert published(passing) == before
    index = card_of(passing, team.results(NAME)[0]["device"]).index
    devices = [device for each in passing.slices() for device in each["spec"].get("devices", ())]
    (whole,) = (device for device in devices if device["name"] == f"gpu-{index}")
    assert whole.get("taints", []) == []


def test_the_card_comes_back_with_the_end_of_the_pod(passing: NodeDriver, team: Workloads) -> None:
    device = team.results(NAME)[0]["device"]
    team.delete("pod", NAME)
    wait_until(lambda: card_of(passing, device).driver == "nvidia", "the vendor's driver on the card", 90)
