"""Adding up: fallen devices by equal reason, and the steps of several nodes to those of a fleet.

Counts only ever add; whose devices they are is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from dra.advice.explanation import DeviceRequestExplanation, Fallen, NearestMiss, Step

EXAMPLES = 8  # devices named per reason over a fleet; the count says how many there are


def merge_fallen(fallen: Iterable[Fallen], *, examples: int | None = None) -> tuple[Fallen, ...]:
    """One entry a reason, in order of first appearance, naming at most `examples` devices (all by default)."""
    merged: dict[object, Fallen] = {}
    for each in fallen:
        before = merged.get(each.miss.key)
        count, devices = (before.count, before.devices) if before else (0, ())
        named = (devices + each.devices)[:examples]
        merged[each.miss.key] = Fallen(count=count + each.count, devices=named, miss=each.miss)
    return tuple(merged.values())


def add_up(parts: Sequence[tuple[DeviceRequestExplanation, int]]) -> DeviceRequestExplanation:
    """One device request over several kinds of nodes: each part's steps, times its number of nodes."""
    first = parts[0][0]
    return replace(
        first,
        needed=first.needed if first.allocation_mode != "All" else 0,
        steps=tuple(_add_step(index, parts) for index in range(len(first.steps))),
        nearest_miss=_nearest([part.nearest_miss for part, _ in parts if part.nearest_miss]),
    )


def _add_step(index: int, parts: Sequence[tuple[DeviceRequestExplanation, int]]) -> Step:
    steps = [(part.steps[index], nodes) for part, nodes in parts]
    first = steps[0][0]
    return replace(
        first,
        evaluated=any(step.evaluated for step, _ in steps),
        left=sum(step.left * nodes for step, nodes in steps),
        fell=sum(step.fell * nodes for step, nodes in steps),
        facts=next((step.facts for step, _ in steps if step.evaluated), first.facts),
        fallen=merge_fallen((_times(each, nodes) for step, nodes in steps for each in step.fallen), examples=EXAMPLES),
    )


def _times(fallen: Fallen, nodes: int) -> Fallen:
    """The same reason on so many nodes; who holds the devices differs from node to node and is left out."""
    return replace(fallen, count=fallen.count * nodes, miss=replace(fallen.miss, holders=()))


def _nearest(misses: Sequence[NearestMiss]) -> NearestMiss | None:
    if not misses:
        return None
    nearest = max(misses, key=lambda miss: miss.rank)
    return replace(nearest, misses=tuple(replace(miss, holders=()) for miss in nearest.misses))
