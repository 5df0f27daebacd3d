"""Slices to pools: which generation counts, and whether all of it is there. Pure.

Rules of the scheduler's allocator (k8s.io/dynamic-resource-allocation/structured, pools): slices are grouped by driver
and pool name, only the highest generation counts, and a pool with fewer slices than it names is being updated. A
complete pool that contradicts itself is invalid. Slices are taken by name, devices in listed order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from dra.objects import CounterSet, Device, ResourceSlice


class PoolState(StrEnum):
    """What a reader may conclude from the slices of a pool."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True, order=True)
class PoolID:
    """Pool names are unique per driver only."""

    driver: str
    name: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """One pool as published. `reason` says what is missing or wrong; it is empty for a complete pool.

    `slices` are those of the newest generation; `outdated` those still there from before.
    """

    id: PoolID
    state: PoolState
    reason: str
    generation: int
    wanted: int
    slices: tuple[ResourceSlice, ...]
    outdated: tuple[ResourceSlice, ...] = ()

    @property
    def node_name(self) -> str:
        """The node that the pool belongs to, "" for one that several nodes reach."""
        return next((slice_.spec.node_name for slice_ in self.slices if slice_.spec.node_name), "")

    def devices(self) -> Iterator[tuple[ResourceSlice, Device]]:
        """Every device of the newest generation, in the scheduler's order, with its slice."""
        return ((slice_, device) for slice_ in self.slices for device in slice_.spec.devices)

    def counter_sets(self) -> dict[str, CounterSet]:
        """The counter sets of the newest generation."""
        return {each.name: each for slice_ in self.slices for each in slice_.spec.shared_counters}


def read_pools(slices: Iterable[ResourceSlice]) -> dict[PoolID, Pool]:
    """Every pool that the slices belong to, by its identity."""
    grouped: dict[PoolID, list[ResourceSlice]] = {}
    for slice_ in slices:
        grouped.setdefault(PoolID(slice_.spec.driver, slice_.spec.pool.name), []).append(slice_)
    return {pool_id: _read(pool_id, grouped[pool_id]) for pool_id in sorted(grouped)}


def _read(pool_id: PoolID, slices: list[ResourceSlice]) -> Pool:
    newest = max(slice_.spec.pool.generation for slice_ in slices)
    by_name = sorted(slices, key=lambda slice_: slice_.metadata.name)
    current = tuple(slice_ for slice_ in by_name if slice_.spec.pool.generation == newest)
    state, reason = _judge(current)
    return Pool(
        id=pool_id,
        state=state,
        reason=reason,
        generation=newest,
        wanted=current[0].spec.pool.resource_slice_count,
        slices=current,
        outdated=tuple(slice_ for slice_ in by_name if slice_.spec.pool.generation != newest),
    )


def _judge(slices: tuple[ResourceSlice, ...]) -> tuple[PoolState, str]:
    counts = {slice_.spec.pool.resource_slice_count for slice_ in slices}
    if len(counts) > 1:
        # The scheduler's answer then depends on the order of slices (kubernetes/kubernetes#141117): don't guess.
        return PoolState.INVALID, f"its slices disagree on how many there are: {', '.join(map(str, sorted(counts)))}"
    (wanted,) = counts
    if len(slices) != wanted:
        return PoolState.INCOMPLETE, f"{len(slices)} of {wanted} slices of generation {_generation(slices)} seen"
    fault = next(_contradictions(slices), "")
    return (PoolState.INVALID, fault) if fault else (PoolState.COMPLETE, "")


def _generation(slices: tuple[ResourceSlice, ...]) -> int:
    return slices[0].spec.pool.generation


def _contradictions(slices: tuple[ResourceSlice, ...]) -> Iterator[str]:
    counters: dict[str, frozenset[str]] = {}
    for each in (each for slice_ in slices for each in slice_.spec.shared_counters):
        if each.name in counters:
            yield f"counter set {each.name} is published twice"
        counters[each.name] = frozenset(each.counters)
    names: set[str] = set()
    for device in (device for slice_ in slices for device in slice_.spec.devices):
        if device.name in names:
            yield f"device {device.name} is published twice"
        names.add(device.name)
        yield from _unknown_counters(device, counters)


def _unknown_counters(device: Device, counters: dict[str, frozenset[str]]) -> Iterator[str]:
    for draw in device.consumes_counters:
        if draw.counter_set not in counters:
            yield f"device {device.name} draws on counter set {draw.counter_set}, which is not published"
        else:
            for counter in sorted(draw.counters.keys() - counters[draw.counter_set]):
                yield f"device {device.name} draws on {draw.counter_set}/{counter}, which is not published"
