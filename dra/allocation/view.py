"""What one node sees: its pools in the scheduler's order, what is in use of them, and what counters have left.

A view holds no answers; `dra.allocation.search` asks it. Views of nodes that see the same have the same `key`. Pure.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final
from weakref import WeakValueDictionary

from dra.allocation.shapes import Identity, PublishedSlice, Shape
from dra.allocation.use import Holding, PoolUse
from dra.counters import CounterKey, remaining
from dra.errors import InvalidObjectError
from dra.features import Features
from dra.names import DeviceID
from dra.objects import Node
from dra.pools import Gathered, PoolID, PoolState, Viewpoint, device_reaches


@dataclass(frozen=True, slots=True)
class DeviceView:
    """One device that a node sees. `usable_here` is false for one of a slice that several nodes share, of another."""

    pool: PoolView
    slice_: PublishedSlice
    index: int

    @property
    def name(self) -> str:
        """Unique in its pool."""
        return self.slice_.layout.names[self.index]

    @property
    def id(self) -> DeviceID:
        """Its identity."""
        return DeviceID(self.pool.id.driver, self.pool.id.name, self.name)

    @property
    def shape(self) -> Shape:
        """What it has in common with its kind."""
        return self.slice_.layout.shapes[self.index]

    @property
    def identity(self) -> Identity:
        """Its identifiers."""
        return self.slice_.identities[self.index] if self.slice_.identities else ()

    @property
    def usable_here(self) -> bool:
        """Whether its own node selection means this node; true where the slice as a whole does."""
        layout = self.slice_.layout
        return not layout.per_device_node_selection or _reaches(self.shape, self.pool.viewpoint) is True

    @property
    def holders(self) -> tuple[Holding, ...]:
        """Who has it, or shares of it."""
        return self.pool.use.holders.get(self.name, ())


@dataclass(frozen=True)
class PoolView:
    """A pool as the node sees it, and what is in use of it. Only a complete pool has devices."""

    id: PoolID
    gathered: Gathered[PublishedSlice]
    use: PoolUse
    viewpoint: Viewpoint

    @property
    def state(self) -> PoolState:
        """Complete, incomplete or invalid."""
        return self.gathered.state

    @property
    def reason(self) -> str:
        """What is missing or wrong; "" for a complete pool."""
        return self.gathered.reason

    @property
    def slices(self) -> tuple[PublishedSlice, ...]:
        """Those with devices for this node, by name."""
        return self.gathered.slices

    def devices(self) -> Iterator[DeviceView]:
        """Every device, in the scheduler's order."""
        return (DeviceView(self, each, index) for each in self.slices for index in range(len(each.layout.names)))

    @cached_property
    def counter_totals(self) -> Mapping[CounterKey, int]:
        """What each counter holds in all, in nano units; with slices for other nodes."""
        return {key: total for each in self.gathered.counter_slices for key, total in each.layout.counters.items()}

    @cached_property
    def counters_left(self) -> Mapping[CounterKey, int]:
        """What allocated devices leave of each counter, in nano units; below zero where more is drawn.

        An allocated device that is published no more draws nothing, one on another node draws (oracle surprise 34).
        """
        used = self.use.whole | self.use.shared
        if not used:
            return self.counter_totals
        drawn = (
            shape.draws
            for each in (*self.gathered.slices, *self.gathered.elsewhere)
            if not used.isdisjoint(each.layout.name_set)
            for name, shape in zip(each.layout.names, each.layout.shapes, strict=True)
            if name in used
        )
        return remaining(self.counter_totals, drawn)

    @cached_property
    def overdrawn(self) -> bool:
        """Whether some counter is below zero: no device that draws on any counter of the pool then fits."""
        return any(left < 0 for left in self.counters_left.values())

    @cached_property
    def key(self) -> tuple[object, ...]:
        """Equal for pools that answer alike, up to names of pools and nodes."""
        gathered = self.gathered
        layouts = tuple(each.layout for each in gathered.slices)
        here = tuple(
            tuple(_reaches(shape, self.viewpoint) for shape in layout.shapes)
            for layout in layouts
            if layout.per_device_node_selection
        )
        counters = tuple(each.layout for each in gathered.counter_slices)
        elsewhere = frozenset(self.counters_left.items()) if gathered.elsewhere else None
        return self.id.driver, self.state, layouts, here, counters, elsewhere, self.use.key


def _reaches(shape: Shape, viewpoint: Viewpoint) -> bool | None:
    """None for a node selector that is malformed: an error of the allocation, not of the view."""
    try:
        return device_reaches(shape.device, viewpoint)
    except InvalidObjectError:
        return None


@dataclass(frozen=True, slots=True)
class Segment:
    """The devices of one slice among all that a node sees; the first has the position `start`."""

    pool: PoolView
    slice_: PublishedSlice
    start: int
    end: int

    def device(self, position: int) -> DeviceView:
        """The device at that position, which must lie between start and end."""
        return DeviceView(self.pool, self.slice_, position - self.start)


class NodeKey:
    """Stands for everything that an answer on a node depends on but names of pools and nodes; one object per value."""

    __slots__ = ("__weakref__", "parts")

    def __init__(self, parts: tuple[object, ...]) -> None:
        self.parts = parts


_keys: Final[WeakValueDictionary[tuple[object, ...], NodeKey]] = WeakValueDictionary()
# nodedeclaredfeatures/features/draoptionalnodeoperations: the kubelet says that it can skip operations.
_SKIPS_OPERATIONS: Final = "DRAOptionalNodeOperations"


@dataclass(frozen=True)
class NodeView:
    """One node: the pools that it sees, those with binding conditions last, else by driver and name."""

    node: Node
    pools: tuple[PoolView, ...]
    features: Features

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.metadata.name

    @property
    def skips_operations(self) -> bool:
        """Whether devices that need optional node operations can be used here."""
        return self.features.optional_node_operations and _SKIPS_OPERATIONS in self.node.status.declared_features

    def devices(self) -> Iterator[DeviceView]:
        """Every device of complete pools, in the scheduler's order."""
        return (device for pool in self.pools for device in pool.devices())

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """All slices with devices, in the scheduler's order; positions count the devices through."""
        found: list[Segment] = []
        position = 0
        for pool, slice_ in ((each, slice_) for each in self.pools for slice_ in each.slices):
            end = position + len(slice_.layout.names)
            found.append(Segment(pool, slice_, position, end))
            position = end
        return tuple(found)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where each segment starts."""
        return tuple(segment.start for segment in self.segments)

    def segment_at(self, position: int) -> Segment:
        """The segment of a position."""
        return self.segments[bisect_right(self.starts, position) - 1]

    def device_at(self, position: int) -> DeviceView:
        """The device at a position."""
        return self.segment_at(position).device(position)

    @cached_property
    def key(self) -> NodeKey:
        """Nodes with the same key (compare with `is` or as a dictionary key) get the same answer for any claims whose
        selectors and constraints read no identifier (`shapes.IDENTIFIERS`), up to names of pools and nodes.
        """
        parts = (self.features, self.skips_operations, *(pool.key for pool in self.pools))
        return _keys.setdefault(parts, NodeKey(parts))
