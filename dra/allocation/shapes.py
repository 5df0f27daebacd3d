"""Published slices in the form that allocation reads: interned shapes and layouts. Pure.

A fleet has millions of devices and a few dozen kinds of them. `Shape` is all that a device says but its name and its
identifiers; `SliceLayout` is all that a slice says but its own name, pool and node, and identifiers. Equal ones are one
object while anybody holds them, so that what is computed for one holds for all; nothing but speed rests on that.
`compile_slice` counts as parsing: it alone loops over devices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from sys import intern
from typing import Final
from weakref import WeakValueDictionary

import msgspec

from dra.capacity import Amounts, Capacities, compile_capacities, demand
from dra.cel import CelDevice, Program
from dra.counters import CounterKey, Draw, compile_draws, compile_totals
from dra.errors import InvalidQuantityError
from dra.objects import (
    Device,
    DeviceAttribute,
    DeviceTaint,
    NodeSelector,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)

IDENTIFIERS: Final = frozenset({
    "uuid", "parentUUID", "gpuUUID", "pciBusID", "pciAddress", "serial", "serialNumber", "boardSerialNumber",
})  # fmt: skip
"""Attributes, without their domain, that name one piece of hardware. As strings they are kept out of shapes.

`resource.kubernetes.io/pcieRoot` is none of them: several devices share it, and constraints match on it.
"""

_MOST_SAID: Final = 64  # selectors that a shape remembers; more than one person asks with at a time

type Identity = tuple[tuple[str, str], ...]
"""Identifiers of one device by attribute name as published; all of them strings."""


def is_identifier(name: str) -> bool:
    """Whether an attribute of this name (with or without a domain) is kept out of shapes where it is a string."""
    return name.rpartition("/")[2] in IDENTIFIERS


@dataclass(frozen=True, eq=False)
class Shape:
    """What devices of a kind have in common. Interned: equal shapes are the same object.

    `attributes` lacks the identifiers; `identified` says that there are some. `draws` and `groups` are what the device
    takes of counters and whom it shares a counter set with. `digest` is the content as bytes, equal where shapes are.
    """

    digest: bytes
    driver: str
    device: Device
    capacities: Capacities
    draws: tuple[Draw, ...]
    groups: tuple[tuple[str, frozenset[str]], ...]
    identified: bool

    @property
    def attributes(self) -> Mapping[str, DeviceAttribute]:
        """Without identifiers."""
        return self.device.attributes

    @property
    def taints(self) -> tuple[DeviceTaint, ...]:
        """Those of the driver and of DeviceTaintRules."""
        return self.device.taints

    @property
    def allow_multiple(self) -> bool:
        """Whether several claims may have a share of the device."""
        return self.device.allow_multiple_allocations

    @cached_property
    def cel(self) -> CelDevice:
        """What selectors that read no identifier see."""
        return self.cel_of(())

    @cached_property
    def _said(self) -> dict[Program, bool]:
        return {}

    def matches(self, program: Program) -> bool:
        """What a selector that reads no identifier says, evaluated once while it is remembered; CelRuntimeError."""
        known = self._said.get(program)
        if known is None:
            if len(self._said) >= _MOST_SAID:
                self._said.clear()
            known = self._said[program] = program.matches(self.cel)
        return known

    @cached_property
    def _unasked(self) -> dict[bool, Amounts | None]:
        return {}

    def demand(self, requested: Amounts, *, fractional: bool) -> Amounts | None:
        """What one allocation consumes (`dra.capacity.demand`); remembered where nothing in particular is requested."""
        if requested:
            return demand(self.capacities, requested, fractional=fractional)
        if fractional not in self._unasked:
            self._unasked[fractional] = demand(self.capacities, requested, fractional=fractional)
        return self._unasked[fractional]

    def cel_of(self, identity: Identity) -> CelDevice:
        """What selectors see of one device."""
        device = self.device
        return CelDevice.of(
            self.driver,
            self.attributes_of(identity),
            device.capacity,
            allow_multiple=device.allow_multiple_allocations,
        )

    def attributes_of(self, identity: Identity) -> Mapping[str, DeviceAttribute]:
        """All attributes of one device."""
        if not identity:
            return self.device.attributes
        return {**self.device.attributes, **{name: DeviceAttribute(string=text) for name, text in identity}}

    def tainted(self, taints: tuple[DeviceTaint, ...]) -> Shape:
        """The shape with further taints, as DeviceTaintRules add them."""
        device = msgspec.structs.replace(self.device, taints=self.device.taints + taints)
        return _shape(self.driver, device, identified=self.identified)


@dataclass(frozen=True, eq=False)
class SliceLayout:
    """What slices of a kind have in common. Interned: equal layouts are the same object.

    `counters` are the totals of its counter sets, in nano units. `drawn` are the counters that its devices name,
    `grouped` says that some name compatibility groups, `binding` that some have binding conditions.
    """

    names: tuple[str, ...]
    shapes: tuple[Shape, ...]
    node_selector: NodeSelector | None
    all_nodes: bool
    per_device_node_selection: bool
    skip_node_operations: tuple[str, ...]
    counter_sets: tuple[str, ...]
    counters: Mapping[CounterKey, int]
    name_set: frozenset[str]
    drawn: frozenset[CounterKey]
    drawn_sets: frozenset[str]
    grouped: bool
    binding: bool

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Where each device stands; the last one of a name."""
        return {name: position for position, name in enumerate(self.names)}

    @cached_property
    def distinct(self) -> frozenset[Shape]:
        """The shapes that occur."""
        return frozenset(self.shapes)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublishedSlice:
    """One slice: where it belongs, its layout, and each device's identifiers."""

    name: str
    driver: str
    pool: str
    generation: int
    slice_count: int
    node_name: str
    layout: SliceLayout
    identities: tuple[Identity, ...] = field(repr=False)


_NO_POOL: Final = ResourcePool(name="", resource_slice_count=0)
_shapes: Final[WeakValueDictionary[tuple[str, bytes, bool], Shape]] = WeakValueDictionary()
_layouts: Final[WeakValueDictionary[tuple[object, ...], SliceLayout]] = WeakValueDictionary()


def compile_slice(slice_: ResourceSlice) -> PublishedSlice:
    """The slice as allocation reads it; InvalidQuantityError names slice and device where an amount is malformed."""
    spec = slice_.spec
    shapes: list[Shape] = []
    identities: dict[Identity, Identity] = {}
    identified: list[Identity] = []
    for device in spec.devices:
        identity = _identity(device)
        identified.append(identities.setdefault(identity, identity))
        try:
            shapes.append(_shape(spec.driver, _without_identity(device, identity), identified=bool(identity)))
        except InvalidQuantityError as error:
            raise InvalidQuantityError(
                f"ResourceSlice {slice_.metadata.name}, device {device.name}: {error}"
            ) from error
    return PublishedSlice(
        name=slice_.metadata.name,
        driver=intern(spec.driver),
        pool=intern(spec.pool.name),
        generation=spec.pool.generation,
        slice_count=spec.pool.resource_slice_count,
        node_name=intern(spec.node_name or ""),
        layout=_layout(slice_, tuple(shapes)),
        identities=tuple(identified) if len(identities) > 1 or () not in identities else (),
    )


def _identity(device: Device) -> Identity:
    return tuple(
        (intern(name), attribute.string)
        for name, attribute in device.attributes.items()
        if attribute.string is not None and is_identifier(name)
    )


def _without_identity(device: Device, identity: Identity) -> Device:
    if not identity:
        return msgspec.structs.replace(device, name="")
    hidden = {name for name, _ in identity}
    kept = {name: attribute for name, attribute in device.attributes.items() if name not in hidden}
    return msgspec.structs.replace(device, name="", attributes=kept)


def _shape(driver: str, device: Device, *, identified: bool) -> Shape:
    digest = msgspec.msgpack.encode(device)
    key = (driver, digest, identified)
    found = _shapes.get(key)
    if found is not None:
        return found
    shape = Shape(
        digest=digest,
        driver=driver,
        device=device,
        capacities=compile_capacities(device.capacity),
        draws=compile_draws(device.consumes_counters),
        groups=tuple((each.counter_set, frozenset(each.compatibility_groups)) for each in device.consumes_counters),
        identified=identified,
    )
    return _shapes.setdefault(key, shape)


def _layout(slice_: ResourceSlice, shapes: tuple[Shape, ...]) -> SliceLayout:
    spec = slice_.spec
    rest = msgspec.structs.replace(spec, devices=(), node_name=None, driver="", pool=_NO_POOL)
    names = tuple(device.name for device in spec.devices)
    key = (names, shapes, msgspec.msgpack.encode(rest))
    found = _layouts.get(key)
    return found if found is not None else _layouts.setdefault(key, _new_layout(rest, names, shapes))


def _new_layout(spec: ResourceSliceSpec, names: tuple[str, ...], shapes: tuple[Shape, ...]) -> SliceLayout:
    kinds = frozenset(shapes)
    return SliceLayout(
        names=names,
        shapes=shapes,
        node_selector=spec.node_selector,
        all_nodes=spec.all_nodes,
        per_device_node_selection=spec.per_device_node_selection,
        skip_node_operations=spec.skip_node_operations,
        counter_sets=tuple(each.name for each in spec.shared_counters),
        counters=compile_totals(spec.shared_counters),
        name_set=frozenset(names),
        drawn=frozenset(key for shape in kinds for key, _ in shape.draws),
        drawn_sets=frozenset(name for shape in kinds for name, _ in shape.groups),
        grouped=any(groups for shape in kinds for _, groups in shape.groups),
        binding=any(shape.device.binding_conditions for shape in kinds),
    )


def tainted_layout(layout: SliceLayout, shapes: tuple[Shape, ...]) -> SliceLayout:
    """The layout with these shapes in place of its own, which differ in taints only."""
    if shapes == layout.shapes:
        return layout
    key = (layout, shapes)
    found = _layouts.get(key)
    return found if found is not None else _layouts.setdefault(key, replace(layout, shapes=shapes))
