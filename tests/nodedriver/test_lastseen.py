"""Real processes on stand-in cards: on whose device each one is, by NVML's lists and the processes' environments."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from dra.names import ClaimUID
from nodedriver.driver import Prepared
from nodedriver.lastseen import LastSeen
from nodedriver.marks import mark
from tests.nodedriver.claims import allocated, given
from tests.nodedriver.machine import CHECKOUT, Machine

pytestmark = pytest.mark.programs

A, B = (ClaimUID(f"{letter * 8}-0000-4000-8000-000000000000") for letter in "ab")
MIG = "gpu-0-mig-3g40gb-4"


@contextmanager
def cuda_program(machine: Machine, *entries: str) -> Iterator[None]:
    """A CUDA program that holds memory, with these variables in its environment."""
    command = [sys.executable, "-m", "simulator.silicon.cuda", "alloc", "1G", "--hold"]
    env = os.environ | {"SILICON_STATE": str(machine.state.path), "PYTHONPATH": str(CHECKOUT)}
    env |= dict(entry.split("=", 1) for entry in entries)
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert json.loads(process.stdout.readline())["ok"]
        try:
            yield
        finally:
            process.terminate()


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
        programs.enter_context(cuda_program(supervised, pipe, mark(B)))
        assert running(supervised, seen) == ["b"]
        programs.enter_context(cuda_program(supervised, pipe, mark(A)))
        assert running(supervised, seen) == ["a", "b"]
    assert running(supervised, seen) == []
    assert seen.of(A, supervised.prepared.read().claims[A].devices[0].cdi_device_id) is not None


def test_a_process_on_an_instance_is_seen_there_alone(machine: Machine) -> None:
    prepare(machine, A, MIG, 100)
    prepare(machine, B, "gpu-0-mig-3g40gb-0", 100)
    seen = look_of(machine)
    assert running(machine, seen) == []
    with cuda_program(machine, f"CUDA_VISIBLE_DEVICES={machine.prepared.read().claims[A].devices[0].uuid}"):
        assert running(machine, seen) == ["a"]
