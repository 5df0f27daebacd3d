"""The kinds of devices that a fleet publishes, each with its number: what selectors are tried on. Pure.

The slices of each pool's newest generation count, whether or not all of them are there yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from dra.allocation import PublishedSlice, Shape, SliceLayout, Snapshot
from dra.allocation.shapes import Identity, is_identifier
from dra.cel import CelDevice, Program
from dra.names import DeviceID


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetShape:
    """Devices that look alike, and one of them by name."""

    shape: Shape
    devices: int
    example: DeviceID


def shapes_of(snapshot: Snapshot) -> tuple[FleetShape, ...]:
    """Every kind of device, by driver, then the most frequent first."""
    numbers: Counter[Shape] = Counter()
    first: dict[Shape, DeviceID] = {}
    for layout, (number, slice_) in _layouts(snapshot).items():
        for shape, name in zip(layout.shapes, layout.names, strict=True):
            numbers[shape] += number
            first.setdefault(shape, DeviceID(slice_.driver, slice_.pool, name))
    found = (FleetShape(shape=each, devices=number, example=first[each]) for each, number in numbers.items())
    return tuple(sorted(found, key=lambda each: (each.shape.driver, -each.devices, str(each.example))))


def devices_of(snapshot: Snapshot, kinds: Collection[Shape]) -> Iterator[tuple[Shape, Identity, DeviceID]]:
    """Every device of these kinds by itself, with its identifiers: for selectors that read them."""
    places: dict[SliceLayout, list[int]] = {}
    for slice_ in _newest(snapshot):
        layout = slice_.layout
        if layout not in places:
            places[layout] = [place for place, shape in enumerate(layout.shapes) if shape in kinds]
        for place in places[layout]:
            identity = slice_.identities[place] if slice_.identities else ()
            yield layout.shapes[place], identity, DeviceID(slice_.driver, slice_.pool, layout.names[place])


def reads_identity(program: Program) -> bool:
    """Whether devices of one shape can get different answers."""
    reads = program.reads
    return reads is None or any(kind == "attributes" and is_identifier(name) for kind, _, name in reads)


def seen_by_selectors(shape: Shape, identity: Identity) -> CelDevice:
    """What a selector sees of a device."""
    return shape.cel_of(identity) if identity else shape.cel


def _layouts(snapshot: Snapshot) -> dict[SliceLayout, tuple[int, PublishedSlice]]:
    """How many slices have each layout, and the first of them."""
    found: dict[SliceLayout, tuple[int, PublishedSlice]] = {}
    for slice_ in _newest(snapshot):
        number, first = found.get(slice_.layout, (0, slice_))
        found[slice_.layout] = (number + 1, first)
    return found


def _newest(snapshot: Snapshot) -> Iterator[PublishedSlice]:
    for slices in snapshot.pools.values():
        generation = max((each.generation for each in slices), default=0)
        yield from (each for each in slices if each.generation == generation)
