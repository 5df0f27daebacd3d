"""A card's error reaches the pod that holds it: the real kubelet writes it into the pod's status (KEP-4680)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from simulator.silicon import rules
from simulator.silicon.hardware import Gpu
from tests.cluster.cluster import Cluster
from tests.cluster.driver import NodeDriver
from tests.cluster.pods import busybox_pod
from tests.cluster.waiting import wait_until
from tests.journeys.conftest import DRIVER_NAME
from tests.journeys.overlay import Document
from tests.journeys.workloads import Workloads

CLASS = "health-whole-card"
SELECTOR = f'device.driver == "{DRIVER_NAME}" && device.attributes["{DRIVER_NAME}"].deviceType == "Physical"'


@pytest.fixture
def team(node_driver: NodeDriver, cluster: Cluster) -> Iterator[Workloads]:
    """A namespace with a template for one whole card."""
    cluster.apply(made("DeviceClass", CLASS, {"selectors": [{"cel": {"expression": SELECTOR}}]}))
    exactly = {"deviceClassName": CLASS}
    spec = {"spec": {"devices": {"requests": [{"name": "card", "exactly": exactly}]}}}
    workloads = Workloads(cluster, "ml-team")
    cluster.apply(made("ResourceClaimTemplate", CLASS, spec, namespace="ml-team"))
    yield workloads
    workloads.clear()


def made(kind: str, name: str, spec: Document, **metadata: str) -> Document:
    return {
        "apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec
    }  # fmt: skip


def holder(name: str) -> Document:
    pod = busybox_pod(name, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": CLASS}])
    pod["metadata"]["namespace"] = "ml-team"
    pod["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    return pod


def reported(team: Workloads, pod: str) -> tuple[str, str]:
    """What the kubelet says of the pod's device: health and message."""
    status = next(each["status"] for each in team.pods() if each["metadata"]["name"] == pod)
    (container,) = status.get("containerStatuses", [{}])
    found: list[dict[str, Any]] = container.get("allocatedResourcesStatus", [])
    devices = [device for each in found if each["name"] == "claim:gpu" for device in each["resources"]]
    return (devices[0]["health"], devices[0].get("message", "")) if devices else ("", "")


def await_health(team: Workloads, pod: str, health: str) -> str:
    """The message, once the kubelet says so."""
    wait_until(lambda: reported(team, pod)[0] == health, f"a word that the card of {pod} is {health}", 90)
    return reported(team, pod)[1]


def test_the_pod_says_that_its_card_ails_and_that_it_recovered(node_driver: NodeDriver, team: Workloads) -> None:
    team.cluster.apply(holder("patient"), holder("neighbour"))
    team.await_running(2)
    await_health(team, "patient", "Healthy")
    await_health(team, "neighbour", "Healthy")

    (result,) = team.results("patient")
    rank = int(result["device"].removeprefix("gpu-"))
    card = node_driver.state.read().gpus[rank].pci_address
    node_driver.state.happen(card, xid=48, recovery_action=1)
    assert await_health(team, "patient", "Unhealthy").startswith("XID 48 (double-bit ECC error) since ")
    assert reported(team, "neighbour") == ("Healthy", "")

    node_driver.state.change_gpu(card, lambda gpu: (recovered(gpu), None))
    node_driver.roll_over()  # a driver that starts looks at once
    assert await_health(team, "patient", "Healthy") == ""


def recovered(gpu: Gpu) -> Gpu:
    return rules.reset(replace(gpu, processes=()))
