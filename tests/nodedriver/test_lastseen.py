"""Real processes on stand-in cards: on whose device each one is, by NVML's lists and the processes' environments."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from dra.names import ClaimUID
from nodedriver.driver import Prepared
from nodedriver.lastseen import LastSeen
from nodedriver.marks import mark
from tests.nodedriver.claims import allocated, given
from tests.nodedriver.machine import Machine
from tests.nodedriver.mps import cuda

pytestmark = pytest.mark.programs

A, B = (ClaimUID(f"{letter * 8}-0000-4000-8000-000000000000") for letter in "ab")
MIG = "gpu-0-mig-3g40gb-4"


def variables(*entries: str) -> dict[str, str]:
    return dict(entry.split("=", 1) for entry in entries)


def prepare(machine: Machine, uid: ClaimUID, device: str, share: int) -> None:
    answer = machine.driver.prepare(machine.allocate(allocated(given(device, share), name=uid[0], uid=uid)))
    assert isinstance(answer, Prepared), answer


def running(machine: Machine, seen: LastSeen) -> list[str]:
    """The claims on whose device a process runs, after a look; by the first letter of their uids."""
    seen.look()
    claims = machine.prepared.read().claims
    sights = {uid: seen.of(uid, claims[uid].devices[0].cdi_device_id) for uid in sorted(claims)}
    return [uid[0] for uid, sight in sights.items() if sight and sight.running]


def look_of(machine: Machine) -> LastSeen:
    return LastSeen(Path("/proc"), machine.prepared.read, machine.gpus.processes)


def test_clients_of_one_daemon_are_told_apart(supervised: Machine) -> None:
    prepare(supervised, A, "gpu-0", 25)
    prepare(supervised, B, "gpu-0", 50)
    seen = look_of(supervised)
    assert running(supervised, seen) == []  # the server is there, and counts for nobody
    pipe = f"CUDA_MPS_PIPE_DIRECTORY={supervised.state.read().mps_daemons[0].pipe_directory}"
    with ExitStack() as programs:
        assert programs.enter_context(cuda(supervised.tree, "1G", **variables(pipe, mark(B))))["ok"]
        assert running(supervised, seen) == ["b"]
        assert programs.enter_context(cuda(supervised.tree, "1G", **variables(pipe, mark(A))))["ok"]
        assert running(supervised, seen) == ["a", "b"]
    assert running(supervised, seen) == []
    assert seen.of(A, supervised.prepared.read().claims[A].devices[0].cdi_device_id) is not None


def test_a_process_on_an_instance_is_seen_there_alone(machine: Machine) -> None:
    prepare(machine, A, MIG, 100)
    prepare(machine, B, "gpu-0-mig-3g40gb-0", 100)
    seen = look_of(machine)
    assert running(machine, seen) == []
    with cuda(machine.tree, "1G", CUDA_VISIBLE_DEVICES=machine.prepared.read().claims[A].devices[0].uuid) as held:
        assert held["ok"]
        assert running(machine, seen) == ["a"]
