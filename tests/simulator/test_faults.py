"""Faults by table: what a call of NVML meets, on which card, how often, and when a hanging one comes back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pynvml
import pytest

from simulator.silicon import nvml
from simulator.silicon.hardware import Injection
from tests.simulator.machines import Machine, refused_with

NAME, MINOR = "nvmlDeviceGetName", "nvmlDeviceGetMinorNumber"
CREATE = "nvmlDeviceCreateGpuInstanceWithPlacement"
ADDRESS_OF_SECOND = "0000:43:00.0"


def failing(function: str, **more: Any) -> Injection:
    return Injection(function=function, code=pynvml.NVML_ERROR_UNKNOWN, **more)


def test_a_fault_meets_as_many_calls_as_it_says(machine: Machine) -> None:
    card = machine.handle()
    machine.state.inject(failing(NAME, times=2))
    for _ in range(2):
        with refused_with(pynvml.NVML_ERROR_UNKNOWN):
            pynvml.nvmlDeviceGetName(card)
    assert pynvml.nvmlDeviceGetName(card) == "NVIDIA H100 80GB HBM3"
    assert machine.state.read().injections == ()


def test_a_fault_without_a_number_stays_until_it_is_taken_away(machine: Machine) -> None:
    card = machine.handle()
    machine.state.inject(failing(NAME, times=0))
    for _ in range(3):
        with refused_with(pynvml.NVML_ERROR_UNKNOWN):
            pynvml.nvmlDeviceGetName(card)
    assert [row.met for row in machine.state.read().injections] == [3]
    machine.state.heal()
    assert pynvml.nvmlDeviceGetName(card) == "NVIDIA H100 80GB HBM3"


# How each kind of function names the second card.
NAMING: dict[str, tuple[str, Callable[[Machine, int], object]]] = {
    "by handle": (NAME, lambda machine, index: pynvml.nvmlDeviceGetName(machine.handle(index))),
    "by index": ("nvmlDeviceGetHandleByIndex_v2", lambda machine, index: machine.handle(index)),
    "by UUID": (
        "nvmlDeviceGetHandleByUUID",
        lambda machine, index: pynvml.nvmlDeviceGetHandleByUUID(machine.gpu(index).uuid),
    ),
    "by PCI address": (
        "nvmlDeviceGetHandleByPciBusId_v2",
        lambda machine, index: pynvml.nvmlDeviceGetHandleByPciBusId(f"0000{machine.gpu(index).pci_address}"),
    ),
    "by GPU instance": (
        "nvmlGpuInstanceGetInfo",
        lambda machine, index: pynvml.nvmlGpuInstanceGetInfo(
            pynvml.nvmlDeviceGetGpuInstanceById(machine.handle(index), 2)
        ),
    ),
}


@pytest.mark.parametrize(("function", "call"), NAMING.values(), ids=NAMING)
def test_a_fault_of_one_card_leaves_the_others(
    machine: Machine, function: str, call: Callable[[Machine, int], object]
) -> None:
    for index in (0, 1):
        pynvml.nvmlDeviceSetMigMode(machine.handle(index), 1)
        machine.create(9, 4, 4, index)
    machine.state.inject(failing(function, times=0, pci_address=ADDRESS_OF_SECOND))
    call(machine, 0)
    with refused_with(pynvml.NVML_ERROR_UNKNOWN):
        call(machine, 1)


def test_a_hanging_call_comes_back_and_acts_when_the_fault_is_taken_away(machine: Machine) -> None:
    pynvml.nvmlDeviceSetMigMode(machine.handle(), 1)
    machine.state.inject(Injection(function=CREATE, hang=True))
    caller = threading.Thread(target=machine.create, args=(9, 4, 4))
    caller.start()
    while not machine.state.read().injections[0].met:
        assert caller.is_alive()
        time.sleep(0.01)
    assert machine.gpu().gpu_instances == ()
    assert pynvml.nvmlDeviceGetName(machine.handle()) == "NVIDIA H100 80GB HBM3"
    machine.state.heal()
    caller.join(60)
    assert not caller.is_alive()
    assert [i.profile_id for i in machine.gpu().gpu_instances] == [9]


def test_a_function_that_this_driver_is_too_old_for(machine: Machine) -> None:
    machine.state.change(lambda silicon: (replace(silicon, missing=(MINOR,)), None))
    pynvml.nvmlShutdown()
    nvml.install(machine.tree.state)
    pynvml.nvmlInit()
    with refused_with(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND):
        pynvml.nvmlDeviceGetMinorNumber(machine.handle())
    assert pynvml.nvmlDeviceGetIndex(machine.handle()) == 0
