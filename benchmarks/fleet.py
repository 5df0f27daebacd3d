"""Where and how often a wish fits on 5,000 nodes in ten states of 500, against the scheduler's allocator node by node.

The oracle is asked about one node of each state: does it fit, and again with each grant in use until it fits no more.
All nodes of a state cost it the same, so its time is that times 500; sending it all slices would be 1.4 GB of JSON.
Ours: new fleet - nothing is known about any node of a built snapshot; new wish - the nodes are known, the wish is new;
warm - asked before. A change costs the new snapshot and the same wish asked of it. Both sides must count the same.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable
from dataclasses import replace

import msgspec

from benchmarks import machines
from benchmarks.peer import Peer, seconds
from benchmarks.report import Report
from dra.allocation import Allocated, PublishedSlice, Snapshot, compile_slice
from dra.fleet import Fleet, Wish
from dra.fleet.grants import allocated_claims
from dra.objects import DeviceTaint, ResourceClaim, ResourceSlice, decode

NODES = 5_000
CHANGES = 4 * machines.STATES
RATIO = 1 / 50
WARM_MS, CHANGE_MS = 100.0, 2.0
WISHES = {
    "a whole card": machines.claim("whole", machines.WHOLE),
    "nothing fits": machines.claim("none", f'device.attributes["{machines.DRIVER}"].deviceType == "TPU"'),
}


def run(report: Report) -> None:
    """Print ours divided by the oracle's, and what a warm question and a change cost."""
    names = machines.names(NODES)
    snapshot = _snapshot(names)
    with Peer() as peer:
        for words, claim in WISHES.items():
            theirs, count = _asked_node_by_node(peer, claim)
            _compare(report, snapshot, words, claim, (theirs, count))
    for words, claim in WISHES.items():
        _change(report, snapshot, words, claim)


def _compare(report: Report, snapshot: Snapshot, words: str, claim: ResourceClaim, peer: tuple[float, int]) -> None:
    theirs, count = peer
    wish, other = Wish(resource_claims=(claim,)), Wish(resource_claims=(machines.claim("other", machines.WHOLE),))
    unseen = replace(snapshot, views={})
    fleet = Fleet()
    new_fleet = seconds(lambda: fleet.answer(unseen, wish), rounds=1)
    if fleet.answer(unseen, wish).total.count != count:
        raise AssertionError(f"the two sides disagree: {fleet.answer(unseen, wish).total.count} and {count}")
    known = Fleet()
    known.answer(unseen, other)
    new_wish = seconds(lambda: known.answer(unseen, wish), rounds=1)
    report.ratio(f"new fleet to the allocator node by node, {words}", new_fleet / theirs, budget=RATIO)
    report.ratio(f"new wish to the allocator node by node, {words}", new_wish / theirs, budget=RATIO)
    report.value(f"warm, {words}", seconds(lambda: fleet.answer(unseen, wish)) * 1e3, "ms", budget=WARM_MS)


def _asked_node_by_node(peer: Peer, claim: ResourceClaim) -> tuple[float, int]:
    """Seconds for all nodes, and how often the claim was granted."""
    took, count = 0.0, 0
    for state, name in enumerate(machines.names(machines.STATES)):
        peer.keep_cluster([machines.node(name)], [machines.device_class()], machines.bodies_of(name))
        held = list(machines.held(name, *machines.devices_in_state(state)))
        while True:
            once, result = peer.allocate(machines.node(name), claim, held)
            took += once
            if result is None:
                break
            count += 1
            held += allocated_claims((claim,), Allocated((result,)), str(count))
    return took * NODES / machines.STATES, count * NODES // machines.STATES


def _change(report: Report, snapshot: Snapshot, words: str, claim: ResourceClaim) -> None:
    """A card is given away on one node after another, then a card of each is tainted."""
    wish, fleet = Wish(resource_claims=(claim,)), Fleet()
    fleet.answer(snapshot, wish)
    names = machines.names(CHANGES)
    claims = [each for name in names for each in machines.held(name, "gpu-7")]
    slices = [_tainted(name) for name in names]
    changes: list[ResourceClaim | PublishedSlice] = [*claims, *slices]
    times = []
    for change in changes:
        began = time.perf_counter()
        snapshot = snapshot.with_slice(change) if isinstance(change, PublishedSlice) else snapshot.with_claim(change)
        fleet.answer(snapshot, wish)
        times.append((time.perf_counter() - began) * 1e3)
    _report_times(report, f"a changed claim, {words}", times[:CHANGES])
    _report_times(report, f"a changed slice, {words}", times[CHANGES:])


def _report_times(report: Report, figure: str, times: list[float]) -> None:
    """Of the changes a quarter leads to a state that no node was in before; the rest to one that is known."""
    report.value(f"{figure}, median", statistics.median(times), "ms", budget=CHANGE_MS)
    report.value(f"{figure}, worst", max(times), "ms")


def _tainted(name: str) -> PublishedSlice:
    """The last card's slice, with a taint on the whole card."""
    slice_ = machines.slices_of(name)[-1]
    taint = DeviceTaint(key=f"{machines.DRIVER}/xid", value="79", effect="NoSchedule")
    whole, *rest = slice_.spec.devices
    devices = (msgspec.structs.replace(whole, taints=(taint,)), *rest)
    return compile_slice(msgspec.structs.replace(slice_, spec=msgspec.structs.replace(slice_.spec, devices=devices)))


def _snapshot(names: Iterable[str]) -> Snapshot:
    names = list(names)
    slices = (compile_slice(decode(body, ResourceSlice)) for name in names for body in machines.bodies_of(name))
    return Snapshot.build(
        nodes=map(machines.node, names),
        slices=slices,
        classes=[machines.device_class()],
        resource_claims=machines.held_by_all(names),
    )
