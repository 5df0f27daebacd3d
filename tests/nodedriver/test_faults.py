"""Each call of NVML that prepare and unprepare make, failing: the claim says which, and the next call puts all right.

Which calls there are is counted on the stand-in while an undisturbed driver works, so that none can be forgotten. `make
test` takes every third of them, FULL=1 all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from dra.names import ClaimRef
from dra.objects import ResourceClaim
from nodedriver.driver import Failed, Prepared, PrepareResult
from nodedriver.facts import GpuFacts
from simulator.silicon import nvml as silicon_nvml
from simulator.silicon.hardware import Injection
from tests.nodedriver.claims import allocated, given, mps, of_class
from tests.nodedriver.machine import Machine

pytestmark = pytest.mark.programs

UID = "aaaaaaaa-0000-4000-8000-000000000000"
STRIDE = 1 if os.environ.get("PORTICO_FULL") else 3
UNKNOWN, NO_PERMISSION, LOST, IN_USE = 999, 4, 15, 19  # nvmlReturn_t; by turns
CODES = (UNKNOWN, NO_PERMISSION, LOST, IN_USE)
MODES: dict[str, ResourceClaim] = {
    "whole": allocated(given("gpu-0", 100), uid=UID),
    "MIG": allocated(given("gpu-0-mig-3g40gb-4", 100), uid=UID),
}
UNDER_MPS = allocated(given("gpu-0", 100), config=(of_class(mps()),), uid=UID)
# The least that each verb asks, so that a count that finds nothing is seen.
LEAST = {"whole": (4, 2), "MIG": (20, 12)}


class Faults:
    """A machine with one claim, and what it looks like without and with it."""

    def __init__(self, machine: Machine, claim: ResourceClaim) -> None:
        self.machine = machine
        self.ref: ClaimRef = machine.allocate(claim)
        self.card = machine.state.read().gpus[0].pci_address
        self.untouched = machine.everything()
        self.answer = self.prepare()
        assert isinstance(self.answer, Prepared), self.answer
        self.prepared = machine.everything()
        assert self.unprepare() == ""
        assert machine.everything() == self.untouched

    def prepare(self) -> PrepareResult:
        return self.machine.driver.prepare(self.ref)

    def unprepare(self) -> str:
        return self.machine.driver.unprepare(self.ref)

    def asked(self) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
        """The calls of NVML that prepare and unprepare make: the function, and how many calls of it come before."""
        both = []
        for verb in (self.prepare, self.unprepare):
            for function in silicon_nvml.FUNCTIONS:
                self.machine.state.inject(Injection(function=function, times=0))
            verb()
            rows = self.machine.state.read().injections
            self.machine.state.heal()
            both.append([(row.function, before) for row in rows for before in range(row.met)])
        return both[0], both[1]

    def fail(self, function: str, before: int, code: int) -> None:
        self.machine.state.inject(Injection(function=function, code=code, skip=before))

    def met(self) -> bool:
        """Whether the fault came about."""
        return self.machine.state.read().injections == ()

    def prepare_again(self) -> None:
        assert self.prepare() == self.answer
        assert self.machine.everything() == self.prepared

    def unprepare_again(self) -> None:
        assert self.unprepare() == ""
        assert self.machine.everything() == self.untouched


def every(calls: list[tuple[str, int]]) -> Iterator[tuple[int, str, int]]:
    """Every third call (all in full), with a number that counts the calls that are taken."""
    numbers = count()
    return ((next(numbers), *call) for call in calls[::STRIDE])


def blames(error: str, function: str, card: str) -> bool:
    """Whether the error names the function, by pynvml's name for it, and the card."""
    name = function.removesuffix("_v2").removesuffix("_v3").removesuffix("V")
    return f"GPU {card}: {name}" in error and " answered " in error


@pytest.mark.parametrize("mode", MODES)
def test_a_call_that_fails_in_prepare(machine: Machine, mode: str) -> None:
    faults = Faults(machine, MODES[mode])
    asked, _ = faults.asked()
    assert len(asked) >= LEAST[mode][0], asked
    for number, function, before in every(asked):
        where = function, before
        faults.fail(function, before, CODES[number % len(CODES)])
        result = faults.prepare()
        assert faults.met(), where
        assert isinstance(result, Failed), where
        assert blames(result.error, function, faults.card), result.error
        if number % 2:
            faults.prepare_again()
        faults.unprepare_again()


@pytest.mark.parametrize("mode", MODES)
def test_a_call_that_fails_in_unprepare(machine: Machine, mode: str) -> None:
    """Where only leaving MIG mode failed the claim is gone all the same, and the mode is left with the next one."""
    faults = Faults(machine, MODES[mode])
    _, asked = faults.asked()
    assert len(asked) >= LEAST[mode][1], asked
    for number, function, before in every(asked):
        where = function, before
        faults.prepare_again()
        faults.fail(function, before, CODES[number % len(CODES)])
        error = faults.unprepare()
        assert faults.met(), where
        if error:
            assert blames(error, function, faults.card), error
        else:
            assert in_whole_mode(machine.everything()) == faults.untouched, where
        if number % 2 or not error:
            faults.prepare_again()
        faults.unprepare_again()


def in_whole_mode(everything: dict[str, Any]) -> dict[str, Any]:
    """The same with the first card out of MIG mode."""
    first, *others = everything["cards"]
    return {**everything, "cards": [replace(first, mig_current=False, mig_pending=False), *others]}


def test_a_compute_mode_that_can_not_be_set_or_taken_back(supervised: Machine) -> None:
    faults = Faults(supervised, UNDER_MPS)
    faults.fail("nvmlDeviceSetComputeMode", 0, IN_USE)
    result = faults.prepare()
    assert isinstance(result, Failed)
    assert blames(result.error, "nvmlDeviceSetComputeMode", faults.card)
    assert supervised.everything() == faults.untouched
    faults.prepare_again()
    faults.fail("nvmlDeviceSetComputeMode", 0, LOST)
    assert blames(faults.unprepare(), "nvmlDeviceSetComputeMode", faults.card)
    faults.unprepare_again()


def test_a_call_that_fails_while_cards_are_read_concerns_its_card_alone(machine: Machine) -> None:
    """What is published of the other seven is the same, whichever function fails for the first."""
    card, undisturbed = machine.state.read().gpus[0].pci_address, machine.gpus.facts()
    for function in silicon_nvml.FUNCTIONS:
        machine.state.inject(Injection(function=function, times=0, pci_address=card))
    machine.gpus.facts()
    asked = [row.function for row in machine.state.read().injections if row.met]
    assert len(asked) >= 12, asked
    for function in asked:
        machine.state.heal()
        machine.state.inject(Injection(function=function, code=UNKNOWN, times=0, pci_address=card))
        found = [facts for facts in machine.gpus.facts() if facts.pci_address != card]
        assert [known(each) for each in found] == [known(each) for each in undisturbed[1:]], function
    machine.state.heal()
    assert machine.gpus.facts() == undisturbed


def known(facts: GpuFacts) -> tuple[object, ...]:
    """What is known of a card itself; whom it reaches over NVLink depends on the others."""
    return facts.pci_address, facts.uuid, facts.product_name, facts.memory, facts.profiles, facts.instances
