"""The crash matrix: a real driver process ends by SIGKILL at every boundary between two deeds, in every mode.

Each time a fresh one is started, and the kubelet's same call comes again, or its opposite. Silicon, checkpoint, CDI
folder and answers must then be those of a driver that never died. `make test` takes every third boundary, FULL=1 all.
"""

import os
from collections.abc import Callable
from typing import Any

import grpc
import pytest

from dra.objects import ResourceClaim
from simulator.silicon import pci
from tests.nodedriver.claims import allocated, given, given_slots, mps, of_claim, of_class, time_slicing
from tests.nodedriver.node import DriverNode

pytestmark = pytest.mark.programs

UID = "aaaaaaaa-0000-4000-8000-000000000000"
MIG = "gpu-0-mig-3g40gb-4"
VIRTUAL = "a card for a virtual machine"
OTHERS = "cards of AMD and Intel"
NAMESPACES = "share with a namespace beside a smaller one"
STRIDE = 1 if os.environ.get("PORTICO_FULL") else 3
MODES: dict[str, ResourceClaim] = {
    "whole": allocated(given("gpu-0", 100), uid=UID),
    "whole, long time slices": allocated(given("gpu-0", 100), config=(of_claim(time_slicing("Long")),), uid=UID),
    "whole under MPS": allocated(given("gpu-0", 100), config=(of_class(mps()),), uid=UID),
    "share": allocated(given("gpu-0", 25), uid=UID),
    "slots": allocated(given_slots("gpu-0-timesliced", 2), uid=UID),
    "MIG": allocated(given(MIG, 100), uid=UID),
    "share of MIG": allocated(given(MIG, 50), uid=UID),
    VIRTUAL: allocated(given("gpu-0-vfio"), uid=UID),
    OTHERS: allocated(given("gpu-8", request="amd"), given("gpu-9", request="intel"), uid=UID),
    "share beside a smaller one": allocated(given("gpu-0", 50), uid=UID),
    NAMESPACES: allocated(given("gpu-0", 50), uid=UID),
    "two cards": allocated(given("gpu-1", 25, request="share"), given(MIG, 100, request="part"), uid=UID),
}
# The least that each verb has to do, so that a boundary that is lost in the code is seen here.
LEAST = {
    VIRTUAL: (5, 5),
    OTHERS: (4, 3),
    "share beside a smaller one": (6, 4),
    NAMESPACES: (6, 4),
    "whole": (5, 3),
    "MIG": (7, 4),
    "share of MIG": (8, 5),
    "two cards": (10, 7),
}

# Claims that are there before, and stay.
SMALLER = allocated(given("gpu-0", 25), name="beside", uid=UID.replace("a", "b"))
BESIDE = {"share beside a smaller one": SMALLER, NAMESPACES: SMALLER}

type Call = Callable[[], Any]


class Crashes:
    """A node whose driver can be told to die."""

    def __init__(self, node: DriverNode, claim: ResourceClaim) -> None:
        self.node = node
        self.asked = node.allocate(claim)
        self.wish, self.log = node.tree.root / "die-at", node.tree.root / "boundaries"

    def load_vfio(self) -> None:
        """Start the driver again on a machine whose cards can be passed through."""
        self.node.terminate("driver")
        pci.load_vfio(self.node.tree.sys)
        self.node.start("driver")

    def prepare(self) -> Any:
        answer = self.node.prepare(self.asked)[UID]
        assert not answer.error
        return answer

    def unprepare(self) -> None:
        assert self.node.unprepare(self.asked) == {UID: ""}

    def boundaries_of(self, call: Call) -> list[str]:
        """Do the call and say which boundaries it passed."""
        self.wish.write_text("0")
        self.log.write_text("")
        call()
        self.wish.unlink()
        return self.log.read_text().split("\n")[:-1]

    def die(self, call: Call, number: int) -> None:
        """Do the call with a driver that dies at that boundary, the first being 1, and start a fresh one."""
        self.wish.write_text(str(number))
        with pytest.raises(grpc.RpcError):
            call()
        assert not self.wish.exists()
        self.node.buried("driver")
        self.node.start("driver")


@pytest.fixture
def scenario(mode: str) -> str:
    """Eight H100, and beside them other vendors' cards for the mode that is theirs."""
    return "three-vendors" if mode == OTHERS else "h100x8"


@pytest.mark.parametrize("mode", MODES)
def test_a_driver_that_dies_at_a_boundary_is_as_if_it_had_not(driver_node: DriverNode, mode: str) -> None:
    if mode == NAMESPACES:
        driver_node.speak_by_namespaces()
    if beside := BESIDE.get(mode):
        assert not driver_node.prepare(driver_node.allocate(beside))[beside.metadata.uid].error
    crashes = Crashes(driver_node, MODES[mode])
    if mode == VIRTUAL:
        crashes.load_vfio()
    untouched = driver_node.everything()
    forward = crashes.boundaries_of(crashes.prepare)
    answer, prepared = crashes.prepare(), driver_node.everything()
    back = crashes.boundaries_of(crashes.unprepare)
    assert driver_node.everything() == untouched
    least = LEAST.get(mode, (5, 3))
    assert (len(forward) >= least[0], len(back) >= least[1]) == (True, True), (forward, back)

    first = sorted(MODES).index(mode) % STRIDE
    for number in range(1 + first, len(forward) + 1, STRIDE):
        crashes.die(crashes.prepare, number)
        assert crashes.prepare() == answer, forward[:number]
        assert driver_node.everything() == prepared, forward[:number]
        crashes.unprepare()
        crashes.die(crashes.prepare, number)
        crashes.unprepare()
        assert driver_node.everything() == untouched, forward[:number]
    for number in range(1 + first, len(back) + 1, STRIDE):
        crashes.prepare()
        crashes.die(crashes.unprepare, number)
        crashes.unprepare()
        assert driver_node.everything() == untouched, back[:number]
        crashes.prepare()
        crashes.die(crashes.unprepare, number)
        assert crashes.prepare() == answer, back[:number]
        assert driver_node.everything() == prepared, back[:number]
        crashes.unprepare()
