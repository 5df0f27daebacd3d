"""A card that needs a reset for its MIG mode, on a real scheduler and kubelet: a pod waits for it, or hears why not.

The cards are eight stand-in A100. Each pod asks for one card by its UUID, so that no other card can serve it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from simulator.silicon.hardware import Gpu, Injection, NvmlReturn
from simulator.silicon.smi import RESET
from tests.cluster.chart import apply_roles
from tests.cluster.cluster import Cluster
from tests.cluster.driver import NodeDriver
from tests.cluster.node import Node
from tests.cluster.pods import busybox_pod, create_pod
from tests.cluster.waiting import wait_until
from tests.journeys.workloads import Workloads
from tests.nodedriver.ampere import agent

DRIVER = "ampere.portico.dev"
TEAM = "ampere-team"
ATTRIBUTES = f'device.attributes["{DRIVER}"]'
SECONDS = 180.0  # the scheduler looks at the condition every 5 s, and backs off before it tries again


@pytest.fixture(scope="module")
def driver(cluster: Cluster, node: Node) -> Iterator[NodeDriver]:
    accounts = apply_roles(cluster, namespace="ampere-system", teams={}, driver_name=DRIVER, prefix="portico:")
    cluster.make_namespace(TEAM)
    with NodeDriver(node, accounts, DRIVER, "a100x8") as running:
        yield running
    cluster.call("DELETE", f"/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.driver%3D{DRIVER}")
    cluster.call("DELETE", "/apis/resource.k8s.io/v1/deviceclasses/ampere")


@pytest.fixture
def team(driver: NodeDriver) -> Iterator[Workloads]:
    workloads = Workloads(driver.node.cluster, TEAM)
    yield workloads
    workloads.clear()
    driver.await_unprepared()
    driver.state.heal()


def gpu(driver: NodeDriver, index: int) -> Gpu:
    return driver.state.read().gpus[index]


def ask(team: Workloads, name: str, expression: str) -> None:
    """A pod, its claim's template, and a class of the devices that the expression selects."""
    selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}" && {expression}'}}]
    request = {"name": "gpu", "exactly": {"deviceClassName": "ampere", "selectors": selectors}}
    metadata = {"name": name, "namespace": TEAM}
    template = {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": metadata,
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }  # fmt: skip
    every = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "ampere"}, "spec": {}}
    team.cluster.apply(every, template)
    pod = busybox_pod(name, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": name}])
    pod["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    create_pod(team.cluster, pod, TEAM)


def ask_part(team: Workloads, name: str, card: Gpu) -> None:
    profile = f'{ATTRIBUTES}.migProfile == "3g.40gb"'
    ask(team, name, f'{profile} && {ATTRIBUTES}.parentUUID == "{card.uuid}"')


def ask_whole(team: Workloads, name: str, card: Gpu) -> None:
    kind = f'{ATTRIBUTES}.deviceType == "Physical"'
    ask(team, name, f'{kind} && {ATTRIBUTES}.uuid == "{card.uuid}"')


def conditions(team: Workloads, pod: str) -> dict[str, dict[str, Any]]:
    """The conditions of the one device of a pod's claim, by the last part of their type."""
    statuses = team.claim_of(pod)["status"].get("devices", []) if team.claims() else []
    return {each["type"].rpartition("/")[2]: each for status in statuses for each in status["conditions"]}


def heard(team: Workloads, pod: str, words: str) -> str:
    """The first event of a pod that says so."""
    return wait_until(lambda: next((e for e in team.events(pod) if words in e), ""), f"{words!r} of {pod}", SECONDS)


def await_pending(team: Workloads, pod: str) -> None:
    """Wait until the scheduler has nothing more to give a pod; its events are counted together, its status is exact."""

    def reason() -> bool:
        (found,) = (each for each in team.pods() if each["metadata"]["name"] == pod)
        return any(
            "cannot allocate all claims" in each.get("message", "") for each in found["status"].get("conditions", [])
        )

    wait_until(reason, f"the reason why {pod} is pending", SECONDS)


def taints(driver: NodeDriver, name: str) -> list[str]:
    devices = [device for each in driver.slices() for device in each["spec"].get("devices", [])]
    return [taint["value"] for device in devices if device["name"] == name for taint in device.get("taints", [])]


def test_a_pod_waits_for_the_reset_of_its_card_and_then_runs(driver: NodeDriver, team: Workloads) -> None:
    with agent(driver.tree, gpu(driver, 0)) as pid:
        ask_part(team, "waits", gpu(driver, 0))
        heard(team, "waits", "BindingConditionsPending: waiting for binding conditions for device on node node-1")
        wait_until(lambda: conditions(team, "waits"), "the condition of the claim")
        assert f"held by process {pid} (sleep)" in conditions(team, "waits")["mode-ready"]["message"]
        assert not team.pods("Running")
        assert taints(driver, "gpu-0") == ["reset-pending"]

    team.await_running(1, SECONDS)
    assert [card.mig_current for card in driver.state.read().gpus] == [True] + [False] * 7
    assert driver.node.exec("waits", "main", ["ls", "/dev/nvidia-caps"], TEAM).split()
    wait_until(lambda: "Ready" in conditions(team, "waits"), "the status of the prepared claim")
    said = conditions(team, "waits")
    assert (said["mode-ready"]["status"], said["Ready"]["status"]) == ("True", "True")

    team.delete("pod", "waits")
    ask_whole(team, "whole", gpu(driver, 0))
    heard(team, "whole", "BindingConditionsPending")
    team.await_running(1, SECONDS)
    assert not gpu(driver, 0).mig_current


def test_a_pod_whose_card_can_not_be_reset_hears_why_and_nothing_loops(driver: NodeDriver, team: Workloads) -> None:
    card, device = gpu(driver, 1), "gpu-1-mig-3g40gb-4"
    driver.state.inject(Injection(function=RESET, code=NvmlReturn.GPU_IS_LOST, times=0))
    ask_part(team, "fails", card)
    heard(team, "fails", "nvidia-smi --gpu-reset")
    await_pending(team, "fails")
    assert (taints(driver, device), taints(driver, "gpu-1")) == (["reset-failed"], [])

    ask_part(team, "next", card)
    await_pending(team, "next")
    assert not [event for event in team.events("next") if "BindingConditionsPending" in event]
    assert [fault.met for fault in driver.state.read().injections] == [3]
    assert not card.mig_current
    assert not team.pods("Running")

    driver.state.change_gpu(card.pci_address, lambda found: (replace(found, mig_current=True, mig_pending=True), None))
    team.await_running(2, SECONDS)
    assert taints(driver, device) == []
