"""The driver dies by SIGKILL between "started" and "completed", under a real kubelet, and is started again.

The kubelet then repeats its prepare, or unprepares since the pod was deleted meanwhile. Either way the node ends as if
nothing had happened: the same footprint as that of a pod whose driver never died. The stand-in's NVML stalls at the
chosen call, so the kill hits the same point each time. (tests/nodedriver/test_kill.py tries more points, no kubelet.)
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from simulator.silicon.hardware import Injection, Silicon
from tests.cluster.cluster import Cluster
from tests.cluster.driver import NodeDriver
from tests.cluster.waiting import wait_until
from tests.journeys.footprint import footprint
from tests.journeys.overlay import Document, manifests, overlaid
from tests.journeys.workloads import Workloads

STALL_MS = 40_000
NAMESPACE = "inference-team"
# The kubelet comes back to a pod whose prepare failed with growing pauses, up to minutes.
PATIENCE = 150.0


def mig_pod() -> list[Document]:
    return [overlaid(document) for document in manifests("02-inference-mig.yaml") if document["kind"] == "Pod"]


def mps_pod() -> list[Document]:
    documents = [overlaid(document) for document in manifests("03-small-mps-share.yaml")]
    (deployment,) = (document for document in documents if document["kind"] == "Deployment")
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": deployment["spec"]["template"]["spec"]}
    template = [document for document in documents if document["kind"] == "ResourceClaimTemplate"]
    return [*template, pod | {"metadata": {"name": "inference", "namespace": NAMESPACE}}]


def has_instance(silicon: Silicon) -> bool:
    return any(gpu.gpu_instances for gpu in silicon.gpus)


def is_exclusive(silicon: Silicon) -> bool:
    return any(gpu.compute_mode.name == "EXCLUSIVE_PROCESS" for gpu in silicon.gpus)


POINTS: dict[str, tuple[Callable[[], list[Document]], str, Callable[[Silicon], bool]]] = {
    "MIG": (mig_pod, "nvmlDeviceCreateGpuInstanceWithPlacement", has_instance),
    "MPS": (mps_pod, "nvmlDeviceSetComputeMode", is_exclusive),
}


@pytest.fixture(scope="module")
def team(node_driver: NodeDriver, cluster: Cluster) -> Workloads:
    for name in ("02-inference-mig.yaml", "03-small-mps-share.yaml"):
        cluster.apply(*(document for document in manifests(name) if document["kind"] == "DeviceClass"))
    return Workloads(cluster, NAMESPACE)


def die_while_preparing(
    driver: NodeDriver, team: Workloads, documents: list[Document], function: str, is_there: Callable[[Silicon], bool]
) -> None:
    driver.state.inject(Injection(function=function, after_ms=STALL_MS))
    team.cluster.apply(*documents)
    wait_until(lambda: is_there(driver.state.read()), f"the stall behind {function}", 60)
    driver.kill("driver")
    (claim,) = footprint(driver)["checkpoint"]
    assert claim["state"] == "started"
    assert footprint(driver)["cdi"] == []


def end(driver: NodeDriver, team: Workloads, untouched: object) -> None:
    team.clear()
    wait_until(lambda: footprint(driver) == untouched, "a node as it was before the pod", PATIENCE)


@pytest.mark.parametrize(("pod", "function", "is_there"), POINTS.values(), ids=POINTS)
def test_killed_while_preparing(
    node_driver: NodeDriver,
    team: Workloads,
    pod: Callable[[], list[Document]],
    function: str,
    is_there: Callable[[Silicon], bool],
) -> None:
    untouched = footprint(node_driver)
    assert (untouched["daemons"], untouched["checkpoint"], untouched["cdi"]) == ([], [], [])
    team.cluster.apply(*pod())
    team.await_running(1)
    prepared = footprint(node_driver)
    end(node_driver, team, untouched)

    die_while_preparing(node_driver, team, pod(), function, is_there)
    node_driver.run("driver")
    team.await_running(1, seconds=PATIENCE)
    assert footprint(node_driver) == prepared
    end(node_driver, team, untouched)

    die_while_preparing(node_driver, team, pod(), function, is_there)
    team.cluster.kubectl("delete", "pod", "inference", f"--namespace={NAMESPACE}", "--wait=false")
    node_driver.run("driver")
    end(node_driver, team, untouched)
