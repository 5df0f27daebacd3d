"""The kubelet dies by SIGKILL in the middle of a prepare, and is started again; the driver lives on.

NVML hangs at the chosen call until it is let go, so the kubelet is killed at the same point each time. Whatever the new
one then asks, the node ends as if the kubelet had never died.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from simulator.silicon.hardware import Injection
from tests.cluster.cluster import Cluster
from tests.cluster.driver import NodeDriver
from tests.cluster.waiting import wait_until
from tests.journeys.footprint import footprint
from tests.journeys.overlay import Document, manifests
from tests.journeys.test_kill import NAMESPACE, PATIENCE, end, mig_pod, mps_pod
from tests.journeys.workloads import Workloads

POD = "inference"
type MakePod = Callable[[], list[Document]]
MIG = (mig_pod, "nvmlDeviceCreateGpuInstanceWithPlacement")
MPS = (mps_pod, "nvmlDeviceSetComputeMode")
EITHER = pytest.mark.parametrize(("pod", "function"), [MIG, MPS], ids=["MIG", "MPS"])


@pytest.fixture(scope="module")
def team(node_driver: NodeDriver, cluster: Cluster) -> Workloads:
    for name in ("02-inference-mig.yaml", "03-small-mps-share.yaml"):
        cluster.apply(*(document for document in manifests(name) if document["kind"] == "DeviceClass"))
    return Workloads(cluster, NAMESPACE)


@pytest.fixture
def untouched(node_driver: NodeDriver, team: Workloads) -> Iterator[object]:
    """The node without any claim, and it is so again after the test."""
    wait_until(lambda: footprint(node_driver)["checkpoint"] == [], "the end of what was prepared before", PATIENCE)
    before = footprint(node_driver)
    yield before
    node_driver.state.heal()
    end(node_driver, team, before)


@contextmanager
def killed_while_preparing(
    driver: NodeDriver, team: Workloads, documents: list[Document], function: str
) -> Iterator[None]:
    """A node without a kubelet, whose driver hangs in that function; afterwards there is a kubelet again."""
    driver.state.inject(Injection(function=function, hang=True))
    team.cluster.apply(*documents)
    wait_until(lambda: any(row.met for row in driver.state.read().injections), f"a call of {function}", 60)
    driver.node.kill_kubelet()
    try:
        assert states(driver) == ["started"]
        yield
    finally:
        driver.node.start_kubelet()


def go_on(driver: NodeDriver) -> None:
    """NVML hangs no more; what the driver was about comes to its end with nobody waiting for it."""
    driver.state.heal()
    wait_until(lambda: states(driver) == ["completed"], "the end of a prepare that nobody waits for", 60)


def states(driver: NodeDriver) -> list[str]:
    """Of the claims in the driver's checkpoint."""
    return [claim["state"] for claim in footprint(driver)["checkpoint"]]


def undisturbed(driver: NodeDriver, team: Workloads, documents: list[Document], untouched: object) -> object:
    """What such a pod has on its node where nobody dies."""
    team.cluster.apply(*documents)
    team.await_running(1)
    prepared = footprint(driver)
    end(driver, team, untouched)
    return prepared


@EITHER
def test_a_prepare_that_ends_without_a_kubelet_is_what_the_next_one_finds(
    node_driver: NodeDriver, team: Workloads, untouched: object, pod: MakePod, function: str
) -> None:
    prepared = undisturbed(node_driver, team, pod(), untouched)

    with killed_while_preparing(node_driver, team, pod(), function):
        go_on(node_driver)
        assert footprint(node_driver) == prepared
    team.await_running(1, seconds=PATIENCE)
    assert footprint(node_driver) == prepared


@EITHER
def test_a_pod_that_is_deleted_while_no_kubelet_is_there_leaves_nothing(
    node_driver: NodeDriver, team: Workloads, untouched: object, pod: MakePod, function: str
) -> None:
    with killed_while_preparing(node_driver, team, pod(), function):
        team.cluster.kubectl("delete", "pod", POD, f"--namespace={NAMESPACE}", "--wait=false")
        go_on(node_driver)
    end(node_driver, team, untouched)


def test_the_next_kubelet_is_told_of_a_card_that_still_hangs_and_the_pod_runs_after_it(
    node_driver: NodeDriver, team: Workloads, untouched: object
) -> None:
    pod, function = MIG
    prepared = undisturbed(node_driver, team, pod(), untouched)

    before = team.events(POD)
    with killed_while_preparing(node_driver, team, pod(), function):
        pass

    def refusal() -> str | None:
        return next((each for each in team.events(POD) if function in each and each not in before), None)

    said = wait_until(refusal, "the reason in the events", 120)
    assert said.startswith("FailedPrepareDynamicResources: ")
    assert states(node_driver) == ["started"]
    node_driver.state.heal()
    team.await_running(1, seconds=PATIENCE)
    assert footprint(node_driver) == prepared
