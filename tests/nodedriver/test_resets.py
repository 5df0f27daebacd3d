"""Resets of a card by the stand-in's nvidia-smi, which refuses while any process, this one too, has the card open."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodedriver.deadline import of_call
from nodedriver.facts import PciAddress
from nodedriver.nvml import Nvml
from nodedriver.ports import CardUse, GpuError, ModeAnswer
from nodedriver.resets import NvidiaSmiReset
from simulator.silicon import nvml as silicon_nvml
from simulator.silicon.fleet import initialise
from simulator.silicon.hardware import Injection, NvmlReturn
from simulator.silicon.smi import RESET
from simulator.silicon.state import State


class Bench:
    """Eight A100, the driver's doors to them, and the address of the first."""

    def __init__(self, root: Path) -> None:
        self.tree = initialise(root, "a100x8")
        self.state = State(self.tree.state)
        silicon_nvml.install(self.tree.state)
        self.gpus = Nvml(library=None, sys_root=self.tree.sys)
        self.smi = NvidiaSmiReset(self.tree.driver)
        self.card = PciAddress(self.state.read().gpus[0].pci_address)

    def reset(self) -> None:
        with self.gpus.let_go():
            self.smi.reset(self.card)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "machine")
    yield made
    made.gpus.close()


def test_a_wish_for_mig_mode_comes_true_by_a_reset(bench: Bench) -> None:
    assert bench.gpus.wish_mig(bench.card, enabled=True) is ModeAnswer.RESET_REQUIRED
    assert bench.gpus.use_of(bench.card) == CardUse(minor=0, mig_enabled=False, mig_pending=True)
    bench.reset()
    assert bench.gpus.use_of(bench.card) == CardUse(minor=0, mig_enabled=True, mig_pending=True)
    assert [gpu.mig_enabled for gpu in bench.gpus.facts()] == [True] + [False] * 7


def test_a_wish_can_be_taken_back(bench: Bench) -> None:
    bench.gpus.wish_mig(bench.card, enabled=True)
    assert bench.gpus.wish_mig(bench.card, enabled=False) is ModeAnswer.DONE
    assert not bench.gpus.use_of(bench.card).mig_pending


def test_the_session_of_this_process_is_in_the_way_unless_it_is_let_go(bench: Bench) -> None:
    with pytest.raises(GpuError, match=r"nvidia-smi --gpu-reset -i 0000:07:00\.0 ended with 255: .* in use by another"):
        bench.smi.reset(bench.card)
    bench.reset()


def test_a_session_that_two_want_away_is_back_once_both_are_done(bench: Bench) -> None:
    with bench.gpus.let_go():
        with bench.gpus.let_go():
            pass
        bench.smi.reset(bench.card)  # is refused while this process has the card open
    assert len(bench.gpus.facts()) == 8


def test_calls_of_other_threads_wait_for_the_reset_and_then_work(bench: Bench) -> None:
    seen: list[int] = []
    with bench.gpus.let_go():
        other = threading.Thread(target=lambda: seen.append(len(bench.gpus.facts())))
        other.start()
        bench.smi.reset(bench.card)
        assert seen == []
    other.join(20)
    assert seen == [8]


def test_events_are_heard_again_after_a_reset(bench: Bench) -> None:
    events = bench.gpus.events([bench.card])
    bench.reset()
    assert events.wait(1) is None
    bench.state.happen(bench.card, xid=79)
    event = events.wait(5000)
    assert event is not None
    assert (event.gpu, event.xid) == (bench.card, 79)


def test_who_waits_for_events_does_so_over_many_sessions(bench: Bench) -> None:
    events, stop, errors = bench.gpus.events([bench.card]), threading.Event(), []

    def wait() -> None:
        while not stop.is_set():
            try:
                events.wait(20)
            except GpuError as error:  # a set of an earlier session is INVALID_ARGUMENT
                errors.append(str(error))

    waiter = threading.Thread(target=wait)
    waiter.start()
    for _ in range(5):
        with bench.gpus.let_go():
            stop.wait(0.1)
        stop.wait(0.1)
    stop.set()
    waiter.join()
    assert errors == []


def test_a_session_that_did_not_come_back_does_after_the_next_time_away(bench: Bench) -> None:
    bench.state.inject(Injection(function="nvmlInitWithFlags", code=NvmlReturn.GPU_IS_LOST))
    with pytest.raises(GpuError, match="NVML did not come back"), bench.gpus.let_go():
        pass
    with pytest.raises(GpuError, match="Uninitialized"):
        bench.gpus.use_of(bench.card)
    bench.reset()
    assert len(bench.gpus.facts()) == 8


def test_a_session_that_does_not_end_keeps_nobody_from_the_cards(bench: Bench) -> None:
    gpus = Nvml(library=None, sys_root=bench.tree.sys, patience=1.0)  # the call that hangs ends it
    bench.state.inject(Injection(function="nvmlShutdown", hang=True))
    with pytest.raises(GpuError, match="NVML session: NVML has not come back"), gpus.let_go():
        pass
    assert bench.gpus.use_of(bench.card).processes == ()
    bench.state.heal()


def test_who_waits_for_a_card_of_a_node_at_a_reset_gives_up_in_time(bench: Bench) -> None:
    with bench.gpus.let_go(), of_call(0.2), pytest.raises(GpuError, match="no card can be asked while another one is"):
        bench.gpus.use_of(bench.card)
    assert bench.gpus.use_of(bench.card).processes == ()


def test_a_session_comes_back_after_the_call_that_took_it_away_is_over(bench: Bench) -> None:
    with of_call(0.2), bench.gpus.let_go():
        time.sleep(0.3)
    assert bench.gpus.use_of(bench.card).processes == ()


def test_why_a_reset_failed_is_said_with_the_card(bench: Bench) -> None:
    bench.state.inject(Injection(function=RESET, code=NvmlReturn.GPU_IS_LOST))
    with pytest.raises(GpuError, match=r"GPU 0000:07:00\.0: nvidia-smi --gpu-reset .* could not be reset"):
        bench.reset()
    assert bench.gpus.use_of(bench.card).processes == ()


def test_without_nvidia_smi_the_reset_says_what_to_install(bench: Bench) -> None:
    (bench.tree.driver / "usr/bin/nvidia-smi").unlink()
    with pytest.raises(GpuError, match="it can't be reset, since nvidia-smi is not below the driver root"):
        bench.reset()
