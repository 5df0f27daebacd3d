"""A driver killed by SIGKILL between "started" and "completed", and started again.

Afterwards the kubelet repeats its prepare, or unprepares instead; silicon, checkpoint and CDI folder are then compared
with those of a driver that never died. The stand-in's NVML is told to stall, so the kill hits the same point each time.
"""

import threading
from collections.abc import Callable
from typing import Any

import grpc
import pytest

from dra.objects import ResourceClaim
from simulator.silicon.hardware import Injection
from tests.nodedriver.claims import allocated, given
from tests.nodedriver.machine import wait_until
from tests.nodedriver.node import DriverNode

pytestmark = pytest.mark.programs

UID, NEIGHBOUR = "aaaaaaaa-0000-4000-8000-000000000000", "bbbbbbbb-0000-4000-8000-000000000000"
STALL_MS = 60_000
WHOLE_MIG = allocated(given("gpu-0-mig-3g40gb-4", 100), uid=UID)
SHARED_MIG = allocated(given("gpu-0-mig-3g40gb-4", 50), uid=UID)
SHARE = allocated(given("gpu-0", 25), uid=UID)


def stall(function: str, *, after: bool) -> Injection:
    """Let the next call of that NVML function hang, before it acts or after."""
    return Injection(function=function, before_ms=0 if after else STALL_MS, after_ms=STALL_MS if after else 0)


CREATE, CREATE_COMPUTE = "nvmlDeviceCreateGpuInstanceWithPlacement", "nvmlGpuInstanceCreateComputeInstance"
SET_MODE = "nvmlDeviceSetComputeMode"


def has_instance(node: DriverNode, compute_instances: int) -> bool:
    instances = node.state.read().gpus[0].gpu_instances
    return bool(instances) and len(instances[0].compute_instances) == compute_instances


def is_started(node: DriverNode) -> bool:
    return UID in node.checkpoint() and node.checkpoint()[UID]["state"] == "started"


def stands_at(function: str) -> Callable[[DriverNode], bool]:
    """The stall was taken up, so the call is at or behind its beginning."""
    return lambda node: is_started(node) and function not in {i.function for i in node.state.read().injections}


# What is prepared, where the driver stalls (None: nowhere), and how to see that it is there.
POINTS: dict[str, tuple[ResourceClaim, Injection | None, Callable[[DriverNode], bool]]] = {
    "MIG, before the instance": (WHOLE_MIG, stall(CREATE, after=False), stands_at(CREATE)),
    "MIG, instance without compute instance": (WHOLE_MIG, stall(CREATE, after=True), lambda n: has_instance(n, 0)),
    "MIG, instance made": (WHOLE_MIG, stall(CREATE_COMPUTE, after=True), lambda n: has_instance(n, 1)),
    "MPS, before exclusive mode": (SHARE, stall(SET_MODE, after=False), stands_at(SET_MODE)),
    "MPS, exclusive mode set": (
        SHARE,
        stall(SET_MODE, after=True),
        lambda n: n.state.read().gpus[0].compute_mode.name == "EXCLUSIVE_PROCESS",
    ),
    # The supervisor has some commands to run between the daemon's start and its answer.
    "MPS, daemon started": (SHARE, None, lambda n: bool(n.state.read().mps_daemons)),
    "MPS on MIG, daemon started": (SHARED_MIG, None, lambda n: bool(n.state.read().mps_daemons)),
}


def die_at(node: DriverNode, claim: Any, injection: Injection | None, is_there: Callable[[DriverNode], bool]) -> None:
    """Prepare, kill the driver when it is there, and start it again."""
    if injection:
        node.state.inject(injection)
    errors: list[grpc.RpcError] = []

    def call() -> None:
        try:
            node.prepare(claim)
        except grpc.RpcError as error:
            errors.append(error)

    calling = threading.Thread(target=call)
    calling.start()
    wait_until(lambda: is_there(node), "the point to die at")
    node.kill()
    calling.join(30)
    assert errors, "the driver answered before it was killed"
    assert node.checkpoint()[UID]["state"] == "started"
    assert not list(node.cdi_dir.glob(f"*{UID}*"))
    node.start("driver")


@pytest.mark.parametrize(("claim", "injection", "is_there"), POINTS.values(), ids=POINTS)
def test_killed_between_started_and_completed(
    driver_node: DriverNode, claim: ResourceClaim, injection: Injection | None, is_there: Callable[[DriverNode], bool]
) -> None:
    node = driver_node
    asked = node.allocate(claim)
    untouched = node.everything()
    answer = node.prepare(asked)
    assert not answer[UID].error
    prepared = node.everything()
    assert node.unprepare(asked) == {UID: ""}
    assert node.everything() == untouched

    die_at(node, asked, injection, is_there)
    assert node.prepare(asked) == answer
    assert node.everything() == prepared
    assert node.unprepare(asked) == {UID: ""}
    assert node.everything() == untouched

    die_at(node, asked, injection, is_there)
    assert node.unprepare(asked) == {UID: ""}
    assert node.everything() == untouched


def test_a_neighbour_is_untouched_by_a_crash(driver_node: DriverNode) -> None:
    """The shares of a card have one daemon: taking back a half-prepared one must leave the other's running."""
    node = driver_node
    neighbour = node.allocate(allocated(given("gpu-0", 50), name="neighbour", uid=NEIGHBOUR))
    assert not node.prepare(neighbour)[NEIGHBOUR].error
    alone, pid = node.everything(), node.state.read().mps_daemons[0].pid
    asked = node.allocate(SHARE)
    # The neighbour's claim has set the mode: NVML is asked for nothing at which it could stall.
    (node.tree.root / "die-at").write_text("5")
    with pytest.raises(grpc.RpcError):
        node.prepare(asked)
    node.buried("driver")
    assert is_started(node)
    assert (node.tree.root / "boundaries").read_text().endswith("RunDaemon\nWriteSpec\n")
    node.start("driver")
    assert node.unprepare(asked) == {UID: ""}
    assert node.everything() == alone
    assert node.state.read().mps_daemons[0].pid == pid
