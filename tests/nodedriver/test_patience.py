"""A card that does not come back: who waits is let go, others go on, and what came too late does nothing more."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodedriver.deadline import of_call, seconds_left
from nodedriver.facts import ComputeMode, MigPlacement, PciAddress
from nodedriver.health.ailments import CardLook
from nodedriver.nvml import Nvml
from nodedriver.nvml.patience import CardHangsError, Patience
from nodedriver.ports import GpuError
from simulator.silicon import nvml as silicon_nvml
from simulator.silicon.fleet import initialise
from simulator.silicon.hardware import Injection
from simulator.silicon.state import State
from tests.nodedriver.machine import wait_until

LONG, SHORT = 60.0, 3.0  # seconds; a slow machine has to begin within the short ones
CARD, OTHER = "GPU 0000:1b:00.0", "GPU 0000:43:00.0"
THREE_AT_4 = MigPlacement(9, 4, 4)
CREATE = "nvmlDeviceCreateGpuInstanceWithPlacement"


class Hanging:
    """Work that comes back when it is told to."""

    def __init__(self) -> None:
        self.begun, self.release = threading.Event(), threading.Event()

    def __call__(self) -> str:
        self.begun.set()
        assert self.release.wait(LONG)
        return "back"


@pytest.fixture
def patience() -> Iterator[Patience]:
    made = Patience(LONG)
    yield made
    made.close()


def test_answers_and_errors_come_through(patience: Patience) -> None:
    def fail() -> None:
        raise GpuError("no")

    assert patience.ask(CARD, lambda: 7) == 7
    with pytest.raises(GpuError, match=r"^no$"):
        patience.ask(CARD, fail)


def test_each_card_has_one_thread_of_its_own(patience: Patience) -> None:
    names = [patience.ask(card, lambda: threading.current_thread().name) for card in (CARD, OTHER, CARD)]
    assert names == [CARD, OTHER, CARD]


def test_a_hanging_card_is_given_up_and_refused_until_it_comes_back(patience: Patience) -> None:
    hanging = Hanging()
    with of_call(SHORT), pytest.raises(CardHangsError, match="has not come back within 3 s"):
        patience.ask(CARD, hanging)
    # At once: the time that a call may take is a minute here.
    with pytest.raises(CardHangsError, match="still has not come back"):
        patience.ask(CARD, lambda: "never asked")
    assert patience.ask(OTHER, lambda: "serves") == "serves"
    hanging.release.set()

    def answers() -> bool:
        try:
            return patience.ask(CARD, lambda: True)
        except CardHangsError:
            return False

    wait_until(answers, "an answer of the card that came back")


def test_what_waited_behind_a_hanging_call_is_not_done_later(patience: Patience) -> None:
    hanging, done = Hanging(), threading.Event()
    asker = threading.Thread(target=patience.ask, args=(CARD, hanging))
    asker.start()
    assert hanging.begun.wait(LONG)
    with of_call(SHORT), pytest.raises(CardHangsError):
        patience.ask(CARD, done.set)
    hanging.release.set()
    asker.join(LONG)
    assert patience.ask(CARD, lambda: "next") == "next"
    assert not done.is_set()


def test_the_waits_of_one_call_have_its_time_together() -> None:
    assert seconds_left(20) == 20
    with of_call(10):
        assert seconds_left(5) == 5
        assert 0 < seconds_left(20) <= 10
    with of_call(0):
        assert seconds_left(20) == 0
    assert seconds_left(20) == 20


@pytest.fixture
def cards(tmp_path: Path) -> Iterator[tuple[State, Nvml]]:
    tree = initialise(tmp_path / "machine")
    silicon_nvml.install(tree.state)
    gpus = Nvml(library=None, sys_root=tree.sys, patience=LONG)
    state = State(tree.state)
    yield state, gpus
    state.heal()
    gpus.close()


def test_work_that_was_given_up_stops_before_its_next_call(cards: tuple[State, Nvml]) -> None:
    """The GPU instance is made when the call comes back; nobody waits for its compute instance any more."""
    state, gpus = cards
    first, second = (PciAddress(gpu.pci_address) for gpu in state.read().gpus[:2])
    gpus.enter_mig(first)
    state.inject(Injection(function=CREATE, hang=True, pci_address=first))
    with of_call(SHORT), pytest.raises(CardHangsError, match=f"GPU {first}: {CREATE} has not come back"):
        gpus.create_mig(first, THREE_AT_4)
    with pytest.raises(CardHangsError, match=f"GPU {first}: {CREATE} still has not come back"):
        gpus.remove_mig(first, THREE_AT_4)
    assert gpus.look(first) == CardLook(answers=False)
    gpus.set_compute_mode(second, ComputeMode.EXCLUSIVE_PROCESS)
    assert [facts.pci_address for facts in gpus.facts()] == [gpu.pci_address for gpu in state.read().gpus[1:]]
    state.heal()
    wait_until(lambda: gpus.look(first) != CardLook(answers=False), "an answer of the first card")
    (instance,) = state.read().gpus[0].gpu_instances
    assert (instance.profile_id, instance.compute_instances) == (9, ())
    assert gpus.create_mig(first, THREE_AT_4).uuid
