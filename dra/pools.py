"""Slices to pools: which generation counts, and whether all of it is there. Pure.

Rules of the scheduler's allocator (k8s.io/dynamic-resource-allocation/structured, `pools_incubating.go`): slices are
grouped by driver and pool name, only the highest generation counts, and a pool with fewer slices than it names is being
updated. A complete pool that contradicts itself is invalid. Slices are taken by name, devices in listed order.
`read_pools` judges a pool as a whole, for pages; `gather` judges it as the allocator sees it from one node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from dra.objects import CounterSet, Device, NodeSelector, ResourceSlice
from dra.objects.nodeselector import matches


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


class DeviceFacts(Protocol):
    """What visibility reads of a device."""

    @property
    def device(self) -> Device: ...


class LayoutFacts(Protocol):
    """What visibility and validity read of a slice's content (`dra.allocation.shapes.SliceLayout`)."""

    @property
    def names(self) -> Sequence[str]: ...
    @property
    def name_set(self) -> AbstractSet[str]: ...
    @property
    def shapes(self) -> Sequence[DeviceFacts]: ...
    @property
    def node_selector(self) -> NodeSelector | None: ...
    @property
    def all_nodes(self) -> bool: ...
    @property
    def per_device_node_selection(self) -> bool: ...
    @property
    def counter_sets(self) -> Sequence[str]: ...
    @property
    def counters(self) -> Mapping[tuple[str, str], int]: ...
    @property
    def drawn(self) -> AbstractSet[tuple[str, str]]: ...
    @property
    def drawn_sets(self) -> AbstractSet[str]: ...
    @property
    def grouped(self) -> bool: ...
    @property
    def binding(self) -> bool: ...


class SliceFacts(Protocol):
    """What visibility reads of a slice (`dra.allocation.shapes.PublishedSlice`)."""

    @property
    def name(self) -> str: ...
    @property
    def node_name(self) -> str: ...
    @property
    def generation(self) -> int: ...
    @property
    def slice_count(self) -> int: ...
    @property
    def layout(self) -> LayoutFacts: ...


@dataclass(frozen=True, slots=True)
class Viewpoint:
    """From where a pool is seen, and with which of the gates that decide what is seen."""

    node_name: str
    labels: Mapping[str, str]
    partitionable_devices: bool = True
    compatibility_groups: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered[S: SliceFacts]:
    """A pool as one node sees it. Only a complete pool has slices.

    `slices` hold the devices that are looked at, by slice name; `elsewhere` those of other nodes, which only draw on
    the counters of `counter_slices`. `binding`: some device in `slices` has binding conditions.
    """

    state: PoolState
    reason: str = ""
    slices: tuple[S, ...] = ()
    elsewhere: tuple[S, ...] = ()
    counter_slices: tuple[S, ...] = ()
    binding: bool = False


def gather[S: SliceFacts](slices: Sequence[S], view: Viewpoint) -> Gathered[S] | None:
    """The pool that these slices make (all of one pool, as listed), or None where nothing of it concerns the node.

    InvalidObjectError for a node selector that does not parse: the scheduler then aborts (`GatherPools`).
    """
    relevant = _newest([each for each in _as_listed(slices, view.node_name) if _concerns(each, view)])
    if not relevant:
        return None
    wanted, generation = relevant[0].slice_count, relevant[0].generation
    known: Sequence[S] = relevant
    if len(relevant) != wanted:
        if any(each.generation > generation for each in slices):
            # The driver is replacing this generation; the newer one has nothing for this node.
            return None
        known = [each for each in slices if each.generation == generation and _counts(each, view)]
        if len(known) != wanted:
            reason = f"{len(known)} of {wanted} slices of generation {generation} seen"
            return Gathered(state=PoolState.INCOMPLETE, reason=reason)
    return _build(relevant, known, view)


def _as_listed[S: SliceFacts](slices: Sequence[S], node_name: str) -> Iterator[S]:
    """Slices of the node, then those of no node: the order in which the allocator meets them."""
    yield from (each for each in slices if each.node_name and each.node_name == node_name)
    yield from (each for each in slices if not each.node_name)


def _newest[S: SliceFacts](slices: list[S]) -> list[S]:
    newest = max((each.generation for each in slices), default=0)
    return [each for each in slices if each.generation == newest]


def _concerns(slice_: SliceFacts, view: Viewpoint) -> bool:
    layout = slice_.layout
    if not view.partitionable_devices and (layout.per_device_node_selection or layout.counter_sets):
        return False
    if not _counts(slice_, view):
        return False
    if slice_.node_name or layout.all_nodes or layout.node_selector is not None:
        return reaches(slice_.node_name, layout.node_selector, view, all_nodes=layout.all_nodes)
    return layout.per_device_node_selection and any(device_reaches(each.device, view) for each in layout.shapes)


def _counts(slice_: SliceFacts, view: Viewpoint) -> bool:
    """With its gate off, a slice with compatibility groups is as if it were not there."""
    return view.compatibility_groups or not slice_.layout.grouped


def reaches(node_name: str, selector: NodeSelector | None, view: Viewpoint, *, all_nodes: bool) -> bool:
    """Whether these three say that the node is meant (`NodeMatches`); InvalidObjectError on a malformed selector."""
    if node_name:
        return node_name == view.node_name
    if all_nodes:
        return True
    return selector is not None and matches(selector, view.node_name, view.labels)


def device_reaches(device: Device, view: Viewpoint) -> bool:
    """Whether a device of a slice with `perDeviceNodeSelection` can be used from the node."""
    return reaches(device.node_name or "", device.node_selector, view, all_nodes=device.all_nodes)


def _build[S: SliceFacts](relevant: Sequence[S], known: Sequence[S], view: Viewpoint) -> Gathered[S]:
    names = {each.name for each in relevant}
    others = [each for each in known if each.name not in names] if len(relevant) < len(known) else []
    counters = [
        each
        for each in (*sorted(relevant, key=lambda each: each.name), *others)
        if view.partitionable_devices and each.layout.counter_sets
    ]
    aside = {each.name for each in counters}
    slices = tuple(sorted((each for each in relevant if each.name not in aside), key=lambda each: each.name))
    elsewhere = tuple(each for each in others if each.name not in aside)
    fault = _device_fault(slices) or (view.partitionable_devices and _counter_fault(slices, elsewhere, counters))
    if fault:
        return Gathered(state=PoolState.INVALID, reason=fault)
    return Gathered(
        state=PoolState.COMPLETE,
        slices=slices,
        elsewhere=elsewhere,
        counter_slices=tuple(counters),
        binding=any(each.layout.binding for each in slices),
    )


def _device_fault(slices: Sequence[SliceFacts]) -> str:
    total = sum(len(each.layout.names) for each in slices)
    if total == len(frozenset[str]().union(*(each.layout.name_set for each in slices))):
        return ""
    seen: set[str] = set()
    for name in (name for each in slices for name in each.layout.names):
        if name in seen:
            return f"duplicate device name {name}"
        seen.add(name)
    return ""


def _counter_fault(
    slices: Sequence[SliceFacts], elsewhere: Sequence[SliceFacts], counters: Sequence[SliceFacts]
) -> str:
    sets: set[str] = set()
    for name in (name for each in counters for name in each.layout.counter_sets):
        if name in sets:
            return f"duplicate counter set name {name}"
        sets.add(name)
    published = {key for each in counters for key in each.layout.counters}
    for layout in (each.layout for each in (*slices, *elsewhere)):
        if not layout.drawn_sets <= sets:
            return f"counter set {min(layout.drawn_sets - sets)} not found"
        if not layout.drawn <= published:
            set_name, counter = min(layout.drawn - published)
            return f"counter {counter} not found in counter set {set_name}"
    return ""
