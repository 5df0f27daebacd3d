"""The catalogue: classes of administrators in their order, then derived ones for DeviceClasses that none of them uses.

A derived class stands for a DeviceClass; where its devices are of several kinds, one more stands for each product, MIG
profile and type. Names are made from the fleet alone, so that a link keeps its meaning. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dra.allocation import Shape, Snapshot
from dra.cel import CelCompileError
from dra.names import MAX_SUBDOMAIN
from dra.objects import DeviceClass, GPUClass
from dra.objects.gpuclass import GPUClassDevices, GPUClassSpec, GPUMode
from gpuinventory.gpuclasses.fleetshapes import FleetShape, reads_identity, shapes_of
from gpuinventory.gpuclasses.matching import compiled, matches
from gpuinventory.gpuclasses.traits import Trait, Traits, traits_of
from gpuinventory.gpuclasses.view import GPUClassView, Made

_NO_NAME: Final = re.compile(r"[^a-z0-9]+")
_MODE_WORDS: Final[dict[GPUMode, str]] = {"timesliced": ", time-sliced", "vfio": ", passthrough"}
_MOST_TITLE: Final = 80


def derive(snapshot: Snapshot, gpu_classes: Iterable[GPUClass]) -> tuple[GPUClassView, ...]:
    """Every class that can be shown. What is wrong with one is in its `fault`; nothing is raised.

    It follows from the DeviceClasses, the GPUClasses and the kinds of devices; of single devices only where a class is
    one that `tells_devices_apart`.
    """
    shapes = shapes_of(snapshot)
    fleet = _Fleet(snapshot, shapes, {each.shape: traits_of(each.shape) for each in shapes})
    made = sorted(gpu_classes, key=lambda each: (each.spec.order, each.spec.title, each.metadata.name))
    used = {each.device_class_name for each in made} | {each.metadata.name for each in made}
    curated = [_curated(each, fleet) for each in made]
    others = (snapshot.classes[name] for name in sorted(snapshot.classes.keys() - used))
    derived = (view for each in others for view in _derived(each, fleet))
    return (*curated, *derived)


def tells_devices_apart(device_class: DeviceClass) -> bool:
    """Whether its selectors read what devices of one kind differ by."""
    programs = compiled(expressions_of(device_class))
    return not isinstance(programs, CelCompileError) and any(map(reads_identity, programs))


def expressions_of(device_class: DeviceClass) -> tuple[str, ...]:
    """The texts of its selectors."""
    return tuple(each.cel.expression for each in device_class.spec.selectors if each.cel is not None)


@dataclass(frozen=True, slots=True)
class _Fleet:
    """A snapshot and the kinds of its devices with what is known of each, which all classes are tried on."""

    snapshot: Snapshot
    shapes: tuple[FleetShape, ...]
    traits: Mapping[Shape, Traits]

    def grouped(self, taken: Iterable[FleetShape]) -> dict[Traits, list[FleetShape]]:
        """Shapes by kind, whatever their memory: that differs by a few MiB between boards of one product."""
        found: dict[Traits, list[FleetShape]] = {}
        for each in taken:
            found.setdefault(_plain(self.traits[each.shape]), []).append(each)
        return found

    def kinds(self, taken: Iterable[FleetShape]) -> tuple[Traits, ...]:
        """The different kinds, each once, with the memory of the first of them."""
        firsts = (self.traits[each[0].shape] for each in self.grouped(taken).values())
        return tuple(sorted(firsts, key=_order))


def _curated(gpu_class: GPUClass, fleet: _Fleet) -> GPUClassView:
    name = gpu_class.device_class_name
    device_class = fleet.snapshot.classes.get(name)
    taken, fault = _taken(device_class, fleet) if device_class else ((), f"There is no DeviceClass {name}.")
    return GPUClassView(
        name=gpu_class.metadata.name,
        made=Made.BY_ADMIN,
        device_class=name,
        spec=gpu_class.spec,
        traits=fleet.kinds(taken),
        devices=sum(each.devices for each in taken),
        taken=taken,
        fault=fault,
    )


def _derived(device_class: DeviceClass, fleet: _Fleet) -> Iterator[GPUClassView]:
    """The DeviceClass itself, then each kind within it, if there are several."""
    name = device_class.metadata.name
    taken, fault = _taken(device_class, fleet)
    kinds = fleet.kinds(taken)
    modes = {each.mode for each in kinds}
    yield GPUClassView(
        name=name,
        made=Made.DERIVED,
        device_class=name,
        spec=_spec(name, name, next(iter(modes)) if len(modes) == 1 else "any"),
        traits=kinds,
        devices=sum(each.devices for each in taken),
        taken=taken,
        fault=fault,
    )
    if len(kinds) > 1:
        yield from _within(name, taken, fleet)


def _within(device_class: str, taken: Sequence[FleetShape], fleet: _Fleet) -> Iterator[GPUClassView]:
    names: set[str] = set()
    grouped = fleet.grouped(taken)
    for kind in (each for each in fleet.kinds(taken) if each.product or each.profile or each.type_):
        own = grouped[_plain(kind)]
        name = _unused(_name(device_class, kind), names)
        yield GPUClassView(
            name=name,
            made=Made.DERIVED,
            device_class=device_class,
            spec=_spec(device_class, _title(kind), kind.mode),
            selectors=(selector_of(kind),),
            traits=tuple(dict.fromkeys(fleet.traits[each.shape] for each in own)),
            devices=sum(each.devices for each in own),
            taken=tuple(own),
        )


def selector_of(kind: Traits) -> str:
    """CEL that takes exactly the devices of that kind, and fails on none: an absent attribute reads as ""."""
    domain = json.dumps(kind.driver)
    named = (each for each in (kind.product, kind.profile, kind.type_) if each is not None)
    conditions = (f'device.attributes[{domain}].?{each.key}.orValue("") == {_literal(each)}' for each in named)
    return " && ".join((f"device.driver == {domain}", *conditions))


def _literal(trait: Trait) -> str:
    return json.dumps(trait.value, ensure_ascii=False)  # JSON's escapes are a part of CEL's


def _taken(device_class: DeviceClass, fleet: _Fleet) -> tuple[tuple[FleetShape, ...], str]:
    """The devices of the class, and what keeps the scheduler from serving it."""
    name = device_class.metadata.name
    programs = compiled(expressions_of(device_class))
    if isinstance(programs, CelCompileError):
        return (), f"A selector of the DeviceClass {name} does not compile: {programs}"
    found = matches(programs, fleet.snapshot, fleet.shapes)
    if not found.failing:
        return found.taken, ""
    first = found.failing[0]
    return found.taken, f"Selector {first.selector + 1} of {name} fails on {first.found.example}: {first.error}"


def _plain(traits: Traits) -> Traits:
    return Traits(driver=traits.driver, product=traits.product, profile=traits.profile, type_=traits.type_, memory=0)


def _order(traits: Traits) -> tuple[object, ...]:
    texts = (each.value if each else "" for each in (traits.product, traits.type_, traits.profile))
    return (traits.driver, next(texts), traits.mode != "whole", -traits.memory, *texts)


def _spec(device_class: str, title: str, mode: GPUMode) -> GPUClassSpec:
    return GPUClassSpec(title=title[:_MOST_TITLE], device_class=GPUClassDevices(name=device_class), mode=mode)


def _title(kind: Traits) -> str:
    product = kind.product.value if kind.product else kind.driver
    profile = f", {kind.profile.value}" if kind.profile else ""
    return f"{product}{profile}{_MODE_WORDS.get(kind.mode, '')}"


def _name(device_class: str, kind: Traits) -> str:
    """`<device class>.<product>[-<profile>][-<mode>]` as a DNS subdomain."""
    texts = [each.value for each in (kind.product, kind.profile) if each]
    texts += [kind.mode] if kind.mode in _MODE_WORDS else []
    slug = _NO_NAME.sub("-", "-".join(texts or [kind.driver]).lower()).strip("-")[:63].rstrip("-")
    return f"{device_class}.{slug or 'device'}"[:MAX_SUBDOMAIN]


def _unused(name: str, names: set[str]) -> str:
    """The name, numbered where another kind reads the same."""
    number, free = 2, name
    while free in names:
        free, number = f"{name}-{number}", number + 1
    names.add(free)
    return free
