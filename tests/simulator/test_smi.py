"""The nvidia-smi calls that the stand-in knows, through the launcher of the driver root."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pynvml
import pytest

from simulator.silicon.hardware import Injection
from simulator.silicon.smi import RESET
from tests.simulator.machines import Machine


def smi(machine: Machine, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = str(machine.tree.driver / "usr/bin/nvidia-smi")
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=20)


@pytest.mark.parametrize("interval", [0, 1, 2, 3])
def test_the_time_slice_of_one_card(machine: Machine, interval: int) -> None:
    card = machine.gpu(2)
    done = smi(machine, "compute-policy", "-i", card.uuid, "--set-timeslice", str(interval))
    assert done.returncode == 0, done.stderr
    assert [gpu.timeslice for gpu in machine.state.read().gpus] == [0, 0, interval, 0, 0, 0, 0, 0]


def test_the_compute_mode_is_nvmls(machine: Machine) -> None:
    assert smi(machine, "-i", "1", "-c", "EXCLUSIVE_PROCESS").returncode == 0
    assert pynvml.nvmlDeviceGetComputeMode(machine.handle(1)) == pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS
    assert pynvml.nvmlDeviceGetComputeMode(machine.handle(0)) == pynvml.NVML_COMPUTEMODE_DEFAULT


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("-i", "GPU-nobody", "-c", "DEFAULT"), 6),
        (("-c", "SOMETIMES"), 2),
        (("compute-policy", "--set-timeslice", "4"), 2),
        (("-L",), 2),
        ((), 2),
    ],
)
def test_what_it_refuses(machine: Machine, arguments: tuple[str, ...], status: int) -> None:
    before = machine.state.read()
    assert smi(machine, *arguments).returncode == status
    assert machine.state.read() == before


@contextmanager
def nobody_looking() -> Iterator[None]:
    """Without the NVML session of this process, which holds every card."""
    pynvml.nvmlShutdown()
    yield
    pynvml.nvmlInit()


def want_mig(machine: Machine) -> str:
    """Ask the first card for MIG mode, which stays pending; its address."""
    assert pynvml.nvmlDeviceSetMigMode(machine.handle(), 1) == pynvml.NVML_ERROR_RESET_REQUIRED
    assert pynvml.nvmlDeviceGetMigMode(machine.handle()) == [0, 1]
    return machine.gpu().pci_address


def test_a_reset_makes_the_pending_mode_current(ampere: Machine) -> None:
    address = want_mig(ampere)
    with nobody_looking():
        assert smi(ampere, "--gpu-reset", "-i", address).returncode == 0
    assert [gpu.mig_current for gpu in ampere.state.read().gpus] == [True] + [False] * 7


def test_a_card_that_any_process_has_open_is_not_reset(ampere: Machine) -> None:
    address = want_mig(ampere)
    ours = smi(ampere, "--gpu-reset", "-i", address)
    with nobody_looking(), ampere.tree.gpu_node(ampere.gpu().minor).open():
        agents = smi(ampere, "--gpu-reset", "-i", address)
    for refused in (ours, agents):
        assert (refused.returncode, "in use by another process" in refused.stderr) == (255, True)
    assert not ampere.gpu().mig_current


def test_a_reset_fails_once_where_that_is_injected(ampere: Machine) -> None:
    address = want_mig(ampere)
    ampere.state.inject(Injection(function=RESET, code=pynvml.NVML_ERROR_UNKNOWN))
    with nobody_looking():
        assert "could not be reset (999)" in smi(ampere, "--gpu-reset", "-i", address).stderr
        assert smi(ampere, "--gpu-reset", "-i", address).returncode == 0


def test_a_hopper_card_may_ask_for_a_reset_too(machine: Machine) -> None:
    machine.state.change_gpu(machine.gpu().pci_address, lambda gpu: (replace(gpu, resets_to_switch=True), None))
    want_mig(machine)
