"""Constraints of a ResourceClaim: which attributes its devices must have in common, or must not. Pure.

Follows `matchAttributeConstraint` and `distinctAttributeConstraint` of the structured allocator, with list attributes
(gate DRAListTypeAttributes) as its experimental variant reads them. A constraint is a value: adding a device gives the
next one, so that a search which gives devices back just keeps the older value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from dra.objects import DeviceAttribute

type Kind = Literal["match", "distinct"]
type Value = tuple[str, frozenset[object]]
"""The type of an attribute and its values; Python's True and 1 are kept apart by the type."""


def lookup_attribute(attributes: Mapping[str, DeviceAttribute], driver: str, name: str) -> DeviceAttribute | None:
    """The attribute of that fully qualified name; one without a domain belongs to the driver's (`lookupAttribute`)."""
    found = attributes.get(name)
    if found is not None:
        return found
    domain, slash, identifier = name.partition("/")
    return attributes.get(identifier) if slash and domain == driver else None


def attribute_value(attribute: DeviceAttribute, *, lists: bool) -> Value | None:
    """What a constraint compares; None for a value of unknown type, and for a list where `lists` (the gate) is off."""
    if lists:
        for kind, values in (
            ("int", attribute.ints),
            ("bool", attribute.bools),
            ("string", attribute.strings),
            ("version", attribute.versions),
        ):
            if values:
                return kind, frozenset(values)
        return _scalar(attribute, ("int", "bool", "string", "version"))
    return _scalar(attribute, ("string", "int", "bool", "version"))


def _scalar(attribute: DeviceAttribute, order: tuple[str, ...]) -> Value | None:
    scalars: Mapping[str, object] = {
        "string": attribute.string,
        "int": attribute.int_,
        "bool": attribute.bool_,
        "version": attribute.version,
    }
    return next(((kind, frozenset((scalars[kind],))) for kind in order if scalars[kind] is not None), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """What the devices so far demand of the next. `seen` holds the common values (match), or each device's (distinct).

    `devices` counts those that were added; `seen` has None for a first device whose value has no known type, which the
    scheduler accepts with the gate for lists off (oracle surprise 38).
    """

    kind: Kind
    attribute: str
    lists: bool
    devices: int = 0
    seen: tuple[Value | None, ...] = ()

    def add(self, attribute: DeviceAttribute | None) -> Constraint | None:
        """The constraint with one more device, or None where that device breaks it."""
        if attribute is None:
            return None
        value = attribute_value(attribute, lists=self.lists)
        return self._match(value) if self.kind == "match" else self._distinct(value)

    def _match(self, value: Value | None) -> Constraint | None:
        if self.devices == 0:
            return None if self.lists and value is None else replace(self, devices=1, seen=(value,))
        common = _common(self.seen[0], value)
        return None if common is None else replace(self, devices=self.devices + 1, seen=(common,))

    def _distinct(self, value: Value | None) -> Constraint | None:
        if value is None and (self.lists or self.devices):
            return None
        if any(_common(other, value) is not None for other in self.seen):
            return None
        return replace(self, devices=self.devices + 1, seen=(*self.seen, value))


def _common(one: Value | None, other: Value | None) -> Value | None:
    """Values that both have; values of different types never match."""
    if one is None or other is None or one[0] != other[0]:
        return None
    both = one[1] & other[1]
    return (one[0], both) if both else None
