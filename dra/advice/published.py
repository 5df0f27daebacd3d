"""What devices of some nodes publish and have left: the values that a changed wish could ask for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dra.advice.literals import Comparison
from dra.allocation import DeviceView, NodeView, Shape
from dra.capacity import Capacity, Range
from dra.constraints import lookup_attribute
from dra.errors import InvalidQuantityError, InvalidSemverError
from dra.objects.device import DeviceTaint
from dra.objects.resourceclaim import DeviceToleration
from dra.quantity import Quantity, parse_quantity
from dra.semver import parse_semver
from dra.taints import untolerated

MAX_VALUES: Final = 8  # of an attribute that can only be equal: more would be a guess, not a suggestion
_UNMEASURED: Final = 0.5
_NUMBER: Final = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Published:
    """The devices of these nodes, one node of each kind."""

    views: Sequence[NodeView]

    def shapes(self) -> Iterator[Shape]:
        """Every shape once."""
        found = (
            shape
            for view in self.views
            for pool in view.pools
            for each in pool.slices
            for shape in each.layout.distinct
        )
        return iter(dict.fromkeys(found))

    def shares_left(self, capacity: str) -> list[Quantity]:
        """What a request for this capacity could be given by some device, largest first."""
        amounts = {
            amount
            for view in self.views
            for device in view.devices()
            if (amount := _allowed(device, capacity)) is not None
        }
        return sorted(amounts, key=lambda amount: -amount.nano)

    def untolerated(self, tolerations: Sequence[DeviceToleration]) -> list[DeviceTaint]:
        """The first taint of each shape that keeps it away, each once whenever it was added."""
        found: dict[tuple[str, str, str], DeviceTaint] = {}
        for shape in self.shapes():
            taint = untolerated(shape.taints, tolerations)
            if taint is not None:
                found.setdefault((taint.key, taint.value, taint.effect), taint)
        return list(found.values())

    def nearest(self, comparison: Comparison) -> list[str | int]:
        """Published values that the literal could become, nearest first: below it for `>=` and `>`, above it for `<=`
        and `<`, any other for `==`.
        """
        values = {value for shape in self.shapes() if (value := _value(shape, comparison)) is not None}
        values.discard(comparison.value)
        if comparison.relation == "==":
            return sorted(values, key=lambda value: (_distance(value, comparison.value), str(value)))[:MAX_VALUES]
        limit = _order(comparison.value, comparison.wrapper)
        if limit is None:
            return []
        down = comparison.relation in {">=", ">"}
        orders = {value: order for value in values if (order := _order(value, comparison.wrapper)) is not None}
        beyond = [value for value, order in orders.items() if (order < limit if down else order > limit)]
        return sorted(beyond, key=lambda value: orders[value], reverse=down)


def _allowed(device: DeviceView, name: str) -> Quantity | None:
    """The most that one share of this capacity can be now."""
    capacity = device.shape.capacities.get(name)
    if capacity is None:
        return None
    consumed = device.pool.use.consumed.get(device.name, {}).get(name, 0)
    left = Quantity(capacity.value.nano - consumed, capacity.value.format)
    return _rounded_down(left, capacity) if left.nano > 0 else None


def _rounded_down(left: Quantity, capacity: Capacity) -> Quantity | None:
    policy = capacity.policy
    if policy is None:
        return left
    if policy.valid_range is not None:
        return _down_to_step(left, policy.valid_range)
    if policy.valid_values:
        return max((value for value in policy.valid_values if value <= left), default=None)
    return left


def _down_to_step(left: Quantity, span: Range) -> Quantity | None:
    most = min(left, span.maximum) if span.maximum is not None else left
    if span.minimum is None or most < span.minimum:
        return None
    if span.step is None or span.step.nano <= 0:
        return most
    return Quantity(most.nano - (most.nano - span.minimum.nano) % span.step.nano, most.format)


def _value(shape: Shape, comparison: Comparison) -> str | int | None:
    """The value that the comparison sees, as it would be written in a literal of the same kind."""
    name = f"{comparison.domain or shape.driver}/{comparison.identifier}"
    if comparison.source == "capacity":
        bare = comparison.identifier if name.startswith(f"{shape.driver}/") else name
        found = shape.device.capacity.get(name) or shape.device.capacity.get(bare)
        return found.value if found is not None and comparison.wrapper == "quantity" else None
    attribute = lookup_attribute(shape.attributes, shape.driver, name)
    if attribute is None:
        return None
    if comparison.wrapper == "semver":
        return attribute.version
    if comparison.wrapper:
        return None
    return attribute.int_ if isinstance(comparison.value, int) else attribute.string


def _order(value: str | int, wrapper: str) -> tuple[object, ...] | None:
    """What the value is compared by; None for a malformed one, and for a text, which has no order here."""
    if isinstance(value, int):
        return (value,)
    try:
        match wrapper:
            case "quantity":
                return (parse_quantity(value).nano,)
            case "semver":
                return parse_semver(value).precedence
            case _:
                return None
    except (InvalidQuantityError, InvalidSemverError):
        return None


def _distance(one: str | int, other: str | int) -> tuple[bool, float]:
    """How unlike two values are: by wording, then by numbers: 7g.80gb is nearer to 4g.40gb than to 1g.10gb."""
    wording = _NUMBER.sub("#", str(one)) != _NUMBER.sub("#", str(other))
    numbers = zip(_NUMBER.findall(str(one)), _NUMBER.findall(str(other)), strict=False)
    return wording, sum(abs(float(left) - float(right)) for left, right in numbers)


def relative_size(before: str | int, after: str | int, wrapper: str) -> float:
    """How large the step from one literal to another is, from 0 to 1; a half where there is nothing to measure."""
    one, other = _order(before, wrapper), _order(after, wrapper)
    match one, other:
        case (int() as old,), (int() as new,) if max(abs(old), abs(new)):
            return min(1.0, abs(old - new) / max(abs(old), abs(new)))
        case _:
            return _UNMEASURED
