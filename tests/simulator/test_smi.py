"""The two nvidia-smi calls, through the launcher of the driver root."""

from __future__ import annotations

import subprocess

import pynvml
import pytest

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
