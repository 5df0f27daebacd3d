"""One ResourceClaim on one node of 8 cards with 28 devices each, on counters, against the scheduler's own allocator.

The oracle makes an allocator and asks it, as kube-scheduler does for each pod, with its selectors compiled. Ours cold:
a new snapshot of compiled slices (compiling them is our parsing, as decoding quantities is the oracle's) and of
allocated claims, nothing computed about the node; selectors compiled. Ours warm: the same snapshot asked again, as
everybody does who asks between two changes. Both sides must give the same device.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks import machines
from benchmarks.peer import Peer, seconds
from benchmarks.report import Report
from dra.allocation import Allocated, PublishedSlice, Snapshot, allocate, compile_slice
from dra.objects import AllocationResult, ResourceClaim, ResourceSlice, decode

NODE = "node-00000"
COLD, WARM = 3.0, 1.0


@dataclass(frozen=True, slots=True)
class Case:
    """A question: what is held on the node, and what is asked."""

    words: str
    held: int
    claim: ResourceClaim


CASES = (
    Case("the first fits", 0, machines.claim("any")),
    Case("7 of 8 in use", 7, machines.claim("any")),
    Case("nothing fits", 8, machines.claim("any")),
    Case("nothing matches", 0, machines.claim("none", f'device.attributes["{machines.DRIVER}"].deviceType == "TPU"')),
)


def run(report: Report) -> None:
    """Print ours divided by the oracle's."""
    with Peer() as peer:
        peer.keep_cluster([machines.node(NODE)], [machines.device_class()], machines.bodies_of(NODE))
        for case in CASES:
            held = list(machines.held(NODE, *(f"gpu-{card}" for card in range(case.held))))
            theirs, result = peer.allocate(machines.node(NODE), case.claim, held)
            cold, warm = _ours(case.claim, held, result)
            report.ratio(f"cold to the allocator, {case.words}", cold / theirs, budget=COLD)
            report.ratio(f"warm to the allocator, {case.words}", warm / theirs, budget=WARM)


def _ours(claim: ResourceClaim, held: list[ResourceClaim], expected: AllocationResult | None) -> tuple[float, float]:
    warm = _warm(_snapshot(_slices(), held), claim, expected)
    return min(_cold(claim, held) for _ in range(20)), warm


def _warm(snapshot: Snapshot, claim: ResourceClaim, expected: AllocationResult | None) -> float:
    answer = allocate(snapshot, NODE, (claim,))
    given = answer.results[0] if isinstance(answer, Allocated) else None
    if given != expected:
        raise AssertionError(f"the two sides disagree: {given} and {expected}")
    return seconds(lambda: allocate(snapshot, NODE, (claim,)), rounds=50)


def _cold(claim: ResourceClaim, held: list[ResourceClaim]) -> float:
    # Nobody holds the slices of the round before, so that shapes are new, too.
    slices = _slices()
    return seconds(lambda: allocate(_snapshot(slices, held), NODE, (claim,)), rounds=1)


def _slices() -> list[PublishedSlice]:
    return [compile_slice(decode(body, ResourceSlice)) for body in machines.bodies_of(NODE)]


def _snapshot(slices: list[PublishedSlice], held: list[ResourceClaim]) -> Snapshot:
    return Snapshot.build(
        nodes=[machines.node(NODE)], slices=slices, classes=[machines.device_class()], resource_claims=held
    )
