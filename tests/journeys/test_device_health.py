"""A card's error on a real cluster: new pods avoid the card, those on it say so or are evicted, until it recovers."""

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
EXTENDED = "health.example.com/card"
ATTRIBUTES = f'device.attributes["{DRIVER_NAME}"]'
SELECTOR = (
    f'device.driver == "{DRIVER_NAME}" && {ATTRIBUTES}.deviceType == "Physical" && {ATTRIBUTES}.vendor == "nvidia"'
)


@pytest.fixture
def team(node_driver: NodeDriver, cluster: Cluster) -> Iterator[Workloads]:
    """A namespace with a template for one whole card."""
    yield from whole_card_template(cluster, node_driver)


def whole_card_template(cluster: Cluster, driver: NodeDriver) -> Iterator[Workloads]:
    """A template for one whole card in a team's namespace; all workloads there are gone afterwards."""
    selectors = [{"cel": {"expression": SELECTOR}}]
    cluster.apply(made("DeviceClass", CLASS, {"selectors": selectors, "extendedResourceName": EXTENDED}))
    spec = {"spec": {"devices": {"requests": [{"name": "card", "exactly": {"deviceClassName": CLASS}}]}}}
    workloads = Workloads(cluster, "ml-team")
    cluster.apply(made("ResourceClaimTemplate", CLASS, spec, namespace="ml-team"))
    yield workloads
    workloads.clear()
    driver.await_unprepared()


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


def card_of(node_driver: NodeDriver, team: Workloads, pod: str) -> str:
    """The PCI address of the card that a pod was given."""
    (result,) = team.results(pod)
    return node_driver.state.read().gpus[int(result["device"].removeprefix("gpu-"))].pci_address


def recover(node_driver: NodeDriver, *cards: str) -> None:
    """The cards are reset, and a driver that starts looks at once; a running one does within a minute."""
    for card in cards:
        node_driver.state.change_gpu(card, lambda gpu: (recovered(gpu), None))
    node_driver.roll_over()


def recovered(gpu: Gpu) -> Gpu:
    return rules.reset(replace(gpu, processes=()))


def taints(node_driver: NodeDriver) -> dict[str, set[str]]:
    """The effects of the taints of whole cards that have any."""
    devices = (device for each in node_driver.slices() for device in each["spec"].get("devices", []))
    whole = {device["name"]: {taint["effect"] for taint in device.get("taints", [])} for device in devices}
    return {name: effects for name, effects in whole.items() if effects and name.count("-") == 1}


def test_the_pod_says_that_its_card_ails_and_that_it_recovered(node_driver: NodeDriver, team: Workloads) -> None:
    """The real kubelet writes it into the pod's status (KEP-4680)."""
    team.cluster.apply(holder("patient"), holder("neighbour"))
    team.await_running(2)
    await_health(team, "patient", "Healthy")
    await_health(team, "neighbour", "Healthy")

    card = card_of(node_driver, team, "patient")
    node_driver.state.happen(card, xid=48, recovery_action=1)
    await_health(team, "patient", "Unhealthy")
    told = "XID 48 (double-bit ECC error) since "  # a look may find what the card asks for just before the XID is heard
    wait_until(lambda: reported(team, "patient")[1].startswith(told), "the XID in the pod's status", 90)
    assert reported(team, "neighbour") == ("Healthy", "")

    recover(node_driver, card)
    assert await_health(team, "patient", "Healthy") == ""


def test_new_pods_avoid_a_card_until_it_has_recovered(node_driver: NodeDriver, team: Workloads) -> None:
    cards = [gpu.pci_address for gpu in node_driver.state.read().gpus]
    for card in cards[:7]:
        node_driver.state.happen(card, xid=119, recovery_action=1)
    ill = {f"gpu-{rank}": {"NoSchedule"} for rank in range(7)}
    wait_until(lambda: taints(node_driver) == ill, "the taints of seven cards")
    team.cluster.apply(holder("first"))
    team.await_running(1)
    assert [result["device"] for result in team.results("first")] == ["gpu-7"]
    team.cluster.apply(holder("second"))
    wait_until(
        lambda: any("cannot allocate all claims" in event for event in team.events("second")), "the scheduler's refusal"
    )

    recover(node_driver, *cards[:7])
    team.await_running(2)
    wait_until(lambda: taints(node_driver) == {}, "the end of all taints")


def extended(name: str) -> Document:
    """A pod that asks for a card by a resource's name, as pods did before DRA."""
    pod = holder(name)
    del pod["spec"]["resourceClaims"]
    pod["spec"]["containers"][0]["resources"] = {"limits": {EXTENDED: "1"}, "requests": {EXTENDED: "1"}}
    return pod


def test_pods_are_evicted_from_a_card_where_that_is_wanted(node_driver: NodeDriver, team: Workloads) -> None:
    """By claim or by extended resource; a pod on a card that is well stays."""
    node_driver.roll_over("--health-evicts", "reset")
    team.cluster.apply(holder("by-claim"), extended("by-name"), holder("well"))
    team.await_running(3)
    cards = [card_of(node_driver, team, pod) for pod in ("by-claim", "by-name")]
    for card in cards:
        node_driver.state.happen(card, xid=48, recovery_action=1)
    team.await_gone("pods", "by-claim")
    team.await_gone("pods", "by-name")
    assert [pod["metadata"]["name"] for pod in team.pods("Running")] == ["well"]

    recover(node_driver, *cards)
    wait_until(lambda: taints(node_driver) == {}, "the end of the taints")
