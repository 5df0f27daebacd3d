"""Each function of NVML that prepare and unprepare call, not coming back: a function a card, seven cards at once.

Each claim on such a card has its error in time, the eighth card serves meanwhile, and once NVML comes back the next
call puts all right, the opposite one too. `make test` takes every third function, FULL=1 all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from dra.names import ClaimRef
from nodedriver.driver import Failed, Prepared, PrepareResult
from nodedriver.facts import PciAddress
from nodedriver.health.ailments import CardLook
from simulator.silicon import nvml as silicon_nvml
from simulator.silicon.hardware import Injection
from tests.nodedriver import apiserver
from tests.nodedriver.claims import allocated, given
from tests.nodedriver.machine import Machine, short_folder, wait_until

pytestmark = pytest.mark.programs

STRIDE = 1 if os.environ.get("PORTICO_FULL") else 3
PATIENCE = 5.0  # seconds; what works answers in less, on a slow machine too
CARDS = range(8)
HEALTHY = 7
LEAST = {"whole": 4, "MIG": 12}  # functions, so that a count that finds nothing is seen
DEVICES = {"whole": "gpu-{}", "MIG": "gpu-{}-mig-3g40gb-4"}


@pytest.fixture
def machine() -> Iterator[Machine]:
    """Eight H100 and a driver that soon gives a card up."""
    with short_folder() as folder, apiserver.serve(folder / "kubeconfig") as store:
        made = Machine(folder, store, PATIENCE)
        yield made
        made.state.heal()
        made.close()


class Hangs:
    """A machine with a claim a card, and what it looks like without and with them."""

    def __init__(self, machine: Machine, device: str) -> None:
        self.machine = machine
        self.cards = [PciAddress(gpu.pci_address) for gpu in machine.state.read().gpus]
        self.refs = [
            machine.allocate(
                allocated(
                    given(device.format(card), 100), name=f"claim-{card}", uid=f"{card}aaaaaaa-0000-4000-8000-0000"
                )
            )
            for card in CARDS
        ]
        self.untouched = machine.everything()
        self.answers = self.all(machine.driver.prepare)
        assert all(isinstance(answer, Prepared) for answer in self.answers), self.answers
        self.prepared = machine.everything()
        self.unprepare_all()

    def all[T](self, verb: Callable[[ClaimRef], T]) -> list[T]:
        """The answers for all claims, asked at once as the kubelet does."""
        with ThreadPoolExecutor(len(CARDS)) as pool:
            return list(pool.map(verb, self.refs))

    def prepare_all(self) -> None:
        assert self.all(self.machine.driver.prepare) == self.answers
        assert self.machine.everything() == self.prepared

    def unprepare_all(self) -> None:
        assert self.all(self.machine.driver.unprepare) == [""] * len(CARDS)
        assert self.machine.everything() == self.untouched

    def asked(self, verb: Callable[[ClaimRef], object]) -> list[str]:
        """The functions that the verb asks about the card of the first claim."""
        for function in silicon_nvml.FUNCTIONS:
            self.machine.state.inject(Injection(function=function, times=0, pci_address=self.cards[0]))
        verb(self.refs[0])
        rows = self.machine.state.read().injections
        self.machine.state.heal()
        return [row.function for row in rows if row.met]

    def rounds(self, functions: list[str]) -> Iterator[dict[int, str]]:
        """Which function hangs on which card, at most seven of them at a time."""
        taken = functions[::STRIDE]
        for first in range(0, len(taken), HEALTHY):
            yield dict(enumerate(taken[first : first + HEALTHY]))

    def hang(self, chosen: dict[int, str]) -> None:
        for card, function in chosen.items():
            self.machine.state.inject(Injection(function=function, hang=True, pci_address=self.cards[card]))

    def come_back(self) -> None:
        self.machine.state.heal()
        for card in self.cards:
            wait_until(partial(self._answers, card), f"an answer of GPU {card}")

    def _answers(self, card: PciAddress) -> bool:
        return self.machine.gpus.look(card) != CardLook(answers=False)

    def blames(self, error: str, function: str, card: int) -> bool:
        name = function.removesuffix("_v2").removesuffix("_v3").removesuffix("V")
        return error.startswith(f"GPU {self.cards[card]}: {name}") and "has not come back within 5 s" in error


def failed(answer: PrepareResult) -> str:
    return answer.error if isinstance(answer, Failed) else ""


@pytest.mark.parametrize("mode", DEVICES)
def test_a_call_that_hangs_in_prepare(machine: Machine, mode: str) -> None:
    hangs = Hangs(machine, DEVICES[mode])
    functions = hangs.asked(machine.driver.prepare)
    hangs.unprepare_all()
    assert len(functions) >= LEAST[mode], functions
    for number, chosen in enumerate(hangs.rounds(functions)):
        hangs.hang(chosen)
        errors = [failed(answer) for answer in hangs.all(machine.driver.prepare)]
        assert [bool(error) for error in errors] == [card in chosen for card in CARDS], errors
        for card, function in chosen.items():
            assert hangs.blames(errors[card], function, card), errors[card]
            was_known = known(hangs, card)
            assert ("still has not come back" in machine.driver.unprepare(hangs.refs[card])) == was_known, function
            assert known(hangs, card) == was_known, function
        hangs.come_back()
        if number % 2 == 0:
            hangs.prepare_all()
        hangs.unprepare_all()


def known(hangs: Hangs, card: int) -> bool:
    """Whether the claim has an entry: what hangs before anything is announced leaves nothing to undo."""
    return hangs.refs[card].uid in hangs.machine.prepared.read().claims


def test_a_call_that_hangs_in_unprepare(machine: Machine) -> None:
    """Where only leaving MIG mode hangs the claim is gone all the same, and the mode is left with the next one."""
    hangs = Hangs(machine, DEVICES["MIG"])
    machine.driver.prepare(hangs.refs[0])
    functions = hangs.asked(machine.driver.unprepare)
    assert len(functions) >= 10, functions
    for number, chosen in enumerate(hangs.rounds(functions)):
        hangs.prepare_all()
        hangs.hang(chosen)
        errors = hangs.all(machine.driver.unprepare)
        for card in CARDS:
            late = card in chosen and chosen[card] in ONLY_SETTLES
            assert bool(errors[card]) == (card in chosen and not late), errors[card]
            assert not errors[card] or hangs.blames(errors[card], chosen[card], card)
        hangs.come_back()
        if number % 2 == 0 or set(chosen.values()) & ONLY_SETTLES:
            hangs.prepare_all()
        hangs.unprepare_all()


# What is asked first when nothing is on the card any more, to leave MIG mode.
ONLY_SETTLES = {"nvmlDeviceGetArchitecture", "nvmlDeviceGetVirtualizationMode", "nvmlDeviceSetMigMode"}
