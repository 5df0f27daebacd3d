"""What devices publish that a person can pick from: attributes to match on, and taints to tolerate. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from dra.allocation import Snapshot
from dra.objects import DeviceTaint
from dra.taints import PREVENTING
from gpuinventory.gpuclasses.fleetshapes import FleetShape, shapes_of

STANDARD: Final = "resource.kubernetes.io/"
"""Attributes whose meaning Kubernetes defines for all drivers, such as the PCIe root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeSeen:
    """An attribute by its full name, on how many devices it is, and how many different values it has there."""

    name: str
    devices: int
    values: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaintSeen:
    """A taint that keeps devices from claims. `devices` have it from their driver; `rules` add it to others."""

    taint: DeviceTaint
    devices: int
    rules: int


def attributes_of(taken: Iterable[FleetShape]) -> tuple[AttributeSeen, ...]:
    """Every attribute of these devices but those that name one piece of hardware; what Kubernetes defines comes first,
    then what most devices have.
    """
    devices: Counter[str] = Counter()
    values: dict[str, set[object]] = {}
    for each in taken:
        for key, attribute in each.shape.attributes.items():
            name = key if "/" in key else f"{each.shape.driver}/{key}"
            devices[name] += each.devices
            values.setdefault(name, set()).add(attribute.value)
    found = (AttributeSeen(name=name, devices=number, values=len(values[name])) for name, number in devices.items())
    return tuple(sorted(found, key=lambda each: (not each.name.startswith(STANDARD), -each.devices, each.name)))


def taints_of(snapshot: Snapshot) -> tuple[TaintSeen, ...]:
    """Every taint that keeps devices away, each once whenever it was added."""
    devices: Counter[tuple[str, str, str]] = Counter()
    rules: Counter[tuple[str, str, str]] = Counter()
    for each in shapes_of(snapshot):
        for key in {_key(taint) for taint in each.shape.taints}:
            devices[key] += each.devices
    for rule in snapshot.taint_rules.values():
        rules[_key(rule.spec.taint)] += 1
    keys = sorted(key for key in devices.keys() | rules.keys() if key[2] in PREVENTING)
    return tuple(
        TaintSeen(taint=DeviceTaint(key=key, value=value, effect=effect), devices=devices[whole], rules=rules[whole])
        for whole in keys
        for key, value, effect in [whole]
    )


def _key(taint: DeviceTaint) -> tuple[str, str, str]:
    return taint.key, taint.value, taint.effect
