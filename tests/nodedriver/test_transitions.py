"""The table of card modes beside what the driver does to stand-in cards: nothing but its rows, and each of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from nodedriver.cardmodes import TRANSITIONS, CardMode, Change, Transition, path, without_reset
from nodedriver.driver import Prepared
from nodedriver.facts import MigModeChange, PciAddress
from nodedriver.maintenance import Workshop
from nodedriver.resets import NvidiaSmiReset
from simulator.silicon import pci
from tests.nodedriver import apiserver
from tests.nodedriver.claims import allocated, given
from tests.nodedriver.machine import Machine, short_folder

pytestmark = pytest.mark.programs

FLEETS = {MigModeChange.WHEN_IDLE: "h100x8", MigModeChange.NEEDS_RESET: "a100x8"}
DEVICES = {CardMode.WHOLE: "gpu-0", CardMode.MIG: "gpu-0-mig-3g40gb-4", CardMode.VFIO: "gpu-0-vfio"}
AT_HAND = (CardMode.WHOLE, CardMode.MIG)  # what NVML can bring a card into


@contextmanager
def machine_in(mode: CardMode, kind: MigModeChange) -> Iterator[Machine]:
    """Cards of that kind, the first one in that mode."""
    with short_folder() as folder, apiserver.serve(folder / "kubeconfig") as store:
        made = Machine(folder, store, scenario=FLEETS[kind])
        pci.load_vfio(made.tree.sys)
        is_mig = mode is CardMode.MIG
        made.state.change_gpu(address(made), lambda gpu: (replace(gpu, mig_current=is_mig, mig_pending=is_mig), None))
        made.driver = made.make_driver()
        try:
            yield made
        finally:
            made.close()


def address(machine: Machine) -> PciAddress:
    return PciAddress(machine.state.read().gpus[0].pci_address)


def mode_of(machine: Machine) -> CardMode:
    """What the silicon says."""
    gpu = machine.state.read().gpus[0]
    if gpu.driver == "vfio-pci":
        return CardMode.VFIO
    return CardMode.MIG if gpu.mig_current else CardMode.WHOLE


@pytest.mark.parametrize("kind", FLEETS)
@pytest.mark.parametrize("target", DEVICES)
@pytest.mark.parametrize("source", AT_HAND)
def test_prepare_takes_the_ways_of_the_table_that_need_no_reset(
    source: CardMode, target: CardMode, kind: MigModeChange
) -> None:
    """Unprepare then goes back to the whole card, if there is such a way."""
    with machine_in(source, kind) as machine:
        ref = machine.allocate(allocated(given(DEVICES[target], 100)))
        prepared = isinstance(machine.driver.prepare(ref), Prepared)
        assert prepared == without_reset(source, target, kind)
        assert mode_of(machine) is (target if prepared else source)
        assert machine.driver.unprepare(ref) == ""
        left = target if prepared else source
        assert mode_of(machine) is (CardMode.WHOLE if without_reset(left, CardMode.WHOLE, kind) else left)


@pytest.mark.parametrize(("source", "target"), [AT_HAND, AT_HAND[::-1]])
def test_a_card_out_of_use_takes_the_ways_with_a_reset(source: CardMode, target: CardMode) -> None:
    way = path(source, target, MigModeChange.NEEDS_RESET) or ()
    assert [row.change for row in way] == [Change.TAKE_OUT, Change.RESET]
    with machine_in(source, MigModeChange.NEEDS_RESET) as machine:
        workshop = Workshop(
            modes=machine.gpus,
            resets=NvidiaSmiReset(machine.tree.driver),
            prepared=machine.prepared,
            proc_root=machine.tree.proc,
            minors={},
        )
        workshop.switch(address(machine), target)
        assert mode_of(machine) is target


def test_the_two_above_go_over_every_row() -> None:
    there = (path(source, target, kind) for source in AT_HAND for target in DEVICES for kind in FLEETS)
    back = (path(target, CardMode.WHOLE, kind) for target in DEVICES for kind in FLEETS)
    rows: set[Transition] = {row for way in (*there, *back) for row in way or ()}
    assert rows == set(TRANSITIONS)
