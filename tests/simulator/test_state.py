"""The state file: one truth for several processes, whole after any kill, and free of the dead."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pynvml
import pytest

from simulator.silicon.hardware import Gpu, Injection, Process, ProcessKind
from simulator.silicon.state import State, start_time
from tests.simulator.machines import Machine, refused_with

CHECKOUT = Path(__file__).parents[2]

# A second process that acts through its own pynvml on the state file in argv[1].
OTHER_PROCESS = """
import ctypes, sys
from pathlib import Path
import pynvml
from simulator.silicon import nvml
nvml.install(Path(sys.argv[1]))
pynvml.nvmlInit()
first = lambda: pynvml.nvmlDeviceGetHandleByIndex(0)
"""


def start(state: Path, code: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", OTHER_PROCESS + code, str(state)], env=os.environ | {"PYTHONPATH": str(CHECKOUT)}
    )


def test_two_processes_see_the_same_cards(machine: Machine) -> None:
    code = (
        "pynvml.nvmlDeviceSetMigMode(first(), 1)\n"
        "where = pynvml.c_nvmlGpuInstancePlacement_t(start=4, size=4)\n"
        "pynvml.nvmlDeviceCreateGpuInstanceWithPlacement(first(), 9, ctypes.byref(where))\n"
    )
    assert start(machine.tree.state, code).wait(timeout=20) == 0
    assert pynvml.nvmlDeviceGetMigMode(machine.handle()) == [1, 1]
    with refused_with(pynvml.NVML_ERROR_INSUFFICIENT_RESOURCES):
        machine.create(9, 4, 4)


def test_writers_do_not_lose_each_others_changes(machine: Machine) -> None:
    toggles = "for _ in range(41): pynvml.nvmlDeviceSetMigMode(first(), 1 - pynvml.nvmlDeviceGetMigMode(first())[0])\n"
    other = start(machine.tree.state, toggles)
    for _ in range(50):
        machine.state.change_gpu(machine.gpu(1).pci_address, lambda gpu: (replace(gpu, created=gpu.created + 1), None))
    assert other.wait(timeout=30) == 0
    assert (machine.gpu(0).mig_current, machine.gpu(1).created) == (True, 50)


def test_a_killed_writer_leaves_a_readable_file_and_no_lock(machine: Machine) -> None:
    for delay_ms in (1, 7, 20):
        writer = start(machine.tree.state, "while True: pynvml.nvmlDeviceSetPersistenceMode(first(), 0)\n")
        deadline = time.monotonic() + 20
        while machine.gpu().persistence and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(delay_ms / 1000)
        writer.send_signal(signal.SIGKILL)
        assert writer.wait(timeout=20) == -signal.SIGKILL
        assert len(machine.state.read().gpus) == 8
        pynvml.nvmlDeviceSetPersistenceMode(machine.handle(), 1)
        assert machine.gpu().persistence


def test_a_reader_never_meets_a_half_written_file(machine: Machine) -> None:
    writer = start(machine.tree.state, "for n in range(400): pynvml.nvmlDeviceSetPersistenceMode(first(), n % 2)\n")
    reads = 0
    while writer.poll() is None:
        assert len(State(machine.tree.state).read().gpus) == 8
        reads += 1
    assert writer.returncode == 0
    assert reads > 0


def test_the_dead_hold_nothing(machine: Machine) -> None:
    holder = subprocess.Popen(["sleep", "60"])
    process = Process(pid=holder.pid, started=start_time(holder.pid) or 0, uid=0, kind=ProcessKind.COMPUTE)

    def occupy(gpu: Gpu) -> tuple[Gpu, None]:
        return replace(gpu, processes=(process,)), None

    machine.state.change_gpu(machine.gpu().pci_address, occupy)
    assert machine.gpu().processes == (process,)
    holder.kill()
    holder.wait(timeout=10)
    assert machine.gpu().processes == ()
    assert pynvml.nvmlDeviceSetMigMode(machine.handle(), 1) == pynvml.NVML_SUCCESS


def test_a_pid_that_came_back_is_someone_else(machine: Machine) -> None:
    process = machine.hold()
    machine.state.change_gpu(
        machine.gpu().pci_address, lambda gpu: (replace(gpu, processes=(replace(process, started=1),)), None)
    )
    assert machine.gpu().processes == ()


def test_a_refused_change_leaves_everything_as_it_was(machine: Machine) -> None:
    before = machine.tree.state.read_bytes()
    with refused_with(pynvml.NVML_ERROR_NOT_SUPPORTED):
        machine.create(9, 0, 4)
    assert machine.tree.state.read_bytes() == before


@pytest.mark.parametrize(("when", "created"), [("before_ms", False), ("after_ms", True)])
def test_a_process_can_be_killed_in_an_injected_stall(machine: Machine, when: str, *, created: bool) -> None:
    pynvml.nvmlDeviceSetMigMode(machine.handle(), 1)
    stall = Injection(function="nvmlDeviceCreateGpuInstance")
    machine.state.inject(replace(stall, before_ms=30_000) if when == "before_ms" else replace(stall, after_ms=30_000))
    writer = start(machine.tree.state, "pynvml.nvmlDeviceCreateGpuInstance(first(), 9)\n")
    deadline = time.monotonic() + 20
    while machine.state.read().injections and time.monotonic() < deadline:
        time.sleep(0.01)
    while created and not machine.gpu().gpu_instances and time.monotonic() < deadline:
        time.sleep(0.01)
    writer.kill()
    writer.wait(timeout=10)
    assert [i.profile_id for i in machine.gpu().gpu_instances] == ([9] if created else [])
