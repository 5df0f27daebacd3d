"""Pods that share a MIG instance under MPS, on a real scheduler and kubelet; and one whose parameters are nonsense.

A 3g.40gb instance of an H100 has 40,448 MiB; the driver keeps 512 MiB for contexts; half of the rest is 19,968 MiB.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from simulator.silicon.hardware import Gpu
from tests.cluster.cluster import Cluster
from tests.cluster.driver import NodeDriver
from tests.cluster.processes import ProgramError
from tests.cluster.waiting import wait_until
from tests.journeys.conftest import DRIVER_NAME
from tests.journeys.overlay import Document, overlaid
from tests.journeys.workloads import Workloads

TEAM = "inference-team"
CLASS = "half-mig"
HALF_MIB = 19968
SELECTOR = (
    f'device.driver == "{DRIVER_NAME}" && device.attributes["{DRIVER_NAME}"].deviceType == "MIG" && '
    f'device.attributes["{DRIVER_NAME}"].migProfile == "3g.40gb"'
)


def made(kind: str, name: str, spec: Document, **metadata: str) -> Document:
    return {
        "apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec
    }  # fmt: skip


def template(name: str, percentage: object) -> Document:
    """Half of an instance, with that thread percentage."""
    sharing = {"strategy": "MPS", "mpsConfig": {"defaultActiveThreadPercentage": percentage}}
    version = f"resource.{DRIVER_NAME}/v1alpha1"
    parameters = {"apiVersion": version, "kind": "MigDeviceConfig", "sharing": sharing}
    exactly = {"deviceClassName": CLASS, "capacity": {"requests": {"sharePercent": "50"}}}
    devices = {
        "requests": [{"name": "gpu", "exactly": exactly}],
        "config": [{"requests": ["gpu"], "opaque": {"driver": DRIVER_NAME, "parameters": parameters}}],
    }
    return made("ResourceClaimTemplate", name, {"spec": {"devices": devices}}, namespace=TEAM)


def pod(name: str, template_name: str) -> Document:
    spec = {
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template_name}],
        "containers": [{"name": "app", "image": "any", "resources": {"claims": [{"name": "gpu"}]}}],
    }
    metadata = {"name": name, "namespace": TEAM}
    return overlaid({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


@pytest.fixture
def team(node_driver: NodeDriver, cluster: Cluster) -> Iterator[Workloads]:
    cluster.apply(made("DeviceClass", CLASS, {"selectors": [{"cel": {"expression": SELECTOR}}]}))
    workloads = Workloads(cluster, TEAM)
    yield workloads
    workloads.clear()


def gpu_of(driver: NodeDriver, device: str) -> Gpu:
    return driver.state.read().gpus[int(device.split("-")[1])]


def cuda(driver: NodeDriver, pod_name: str, *words: str) -> str:
    return driver.node.exec(pod_name, "app", ["cudaclient", "alloc", *words], TEAM)


def statuses(team: Workloads, *pods: str) -> list[Any] | None:
    """Who enforces each claim's limits, once all have a device status."""
    found = [status for name in pods for status in team.claim_of(name)["status"].get("devices", [])]
    return [status["data"]["enforcedBy"] for status in found] if len(found) == len(pods) else None


def test_two_pods_share_a_mig_instance_under_mps(node_driver: NodeDriver, team: Workloads) -> None:
    team.cluster.apply(template("halves", 30), pod("one", "halves"), pod("two", "halves"))
    team.await_running(2)
    (one,), (two,) = team.results("one"), team.results("two")
    assert one["device"] == two["device"]
    gpu = gpu_of(node_driver, one["device"])
    ((instance,),) = [each.compute_instances for each in gpu.gpu_instances]
    (daemon,) = node_driver.state.read().mps_daemons
    assert (daemon.devices, daemon.default_active_thread_percentage) == ((instance.uuid,), 30.0)
    assert daemon.default_memory_limits == {instance.uuid: HALF_MIB * 2**20}
    assert gpu.compute_mode.name == "DEFAULT"

    assert '"ok":true' in cuda(node_driver, "one", f"{HALF_MIB}M").replace(" ", "")
    with pytest.raises(ProgramError, match="CUDA_ERROR_OUT_OF_MEMORY"):
        cuda(node_driver, "two", f"{HALF_MIB + 1}M")
    assert wait_until(lambda: statuses(team, "one", "two"), "two device statuses") == ["Server", "Server"]

    team.delete("pod", "one")
    assert '"ok":true' in cuda(node_driver, "two", "1G").replace(" ", "")
    team.delete("pod", "two")
    wait_until(lambda: not gpu_of(node_driver, one["device"]).gpu_instances, "the end of the instance")
    assert node_driver.state.read().mps_daemons == ()


def test_nonsense_in_one_claim_is_in_its_pods_events_and_harms_nobody(node_driver: NodeDriver, team: Workloads) -> None:
    team.cluster.apply(template("halves", 30), template("nonsense", 900), pod("bad", "nonsense"), pod("good", "halves"))
    team.await_running(1, selector="good")

    def event() -> str | None:
        return next((each for each in team.events("bad") if "defaultActiveThreadPercentage" in each), None)

    said = wait_until(event, "the reason in the pod's events", 90)
    assert "MigDeviceConfig of the ResourceClaim: sharing.mpsConfig.defaultActiveThreadPercentage: 900 is not a" in said
    assert "whole number from 1 to 100" in said
    assert "good" not in said
