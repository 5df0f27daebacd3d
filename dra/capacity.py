"""Consumable capacity: what a share consumes once policies have rounded its request (KEP-5075). Pure.

Follows `consumable_capacity.go` of the structured allocator. A request that a policy refuses skips the device; one that
cannot be computed with (negative, past 64 bits) aborts the whole allocation there, and is a CapacityError here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dra.errors import DraError
from dra.objects import CapacityRequestPolicy, DeviceCapacity
from dra.quantity import Quantity, parse_quantity

_MAX_INT64: Final = 2**63 - 1
_MIN_INT64: Final = -(2**63)
_NANO: Final = 10**9
_NANO_PER_MILLI: Final = 10**6
_NOT_REPRESENTABLE: Final = "capacity request cannot be represented in the device's range arithmetic"


class CapacityError(DraError):
    """The scheduler aborts on this request; the text is its own. `crashes` where its code would panic."""

    def __init__(self, message: str, *, crashes: bool = False) -> None:
        super().__init__(message)
        self.crashes = crashes


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """What a share may consume: from `minimum` in steps up to `maximum`."""

    minimum: Quantity | None
    maximum: Quantity | None
    step: Quantity | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How a request for a share is rounded. `valid_values` are ascending."""

    default: Quantity | None
    valid_range: Range | None
    valid_values: tuple[Quantity, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """One capacity of a device, parsed."""

    value: Quantity
    policy: Policy | None


type Capacities = Mapping[str, Capacity]
"""By name as spelt in the slice: requests must spell it the same."""
type Amounts = Mapping[str, Quantity]


def compile_capacities(capacity: Mapping[str, DeviceCapacity]) -> Capacities:
    """The capacities of a device, parsed; InvalidQuantityError on a malformed one."""
    return {
        name: Capacity(value=parse_quantity(each.value), policy=_policy(each.request_policy))
        for name, each in capacity.items()
    }


def _policy(policy: CapacityRequestPolicy | None) -> Policy | None:
    if policy is None:
        return None
    span = policy.valid_range
    return Policy(
        default=_parsed(policy.default),
        valid_range=Range(minimum=_parsed(span.min), maximum=_parsed(span.max), step=_parsed(span.step))
        if span
        else None,
        valid_values=tuple(map(parse_quantity, policy.valid_values)),
    )


def _parsed(text: str | None) -> Quantity | None:
    return None if text is None else parse_quantity(text)


def demand(capacities: Capacities, requested: Amounts, *, fractional: bool) -> Amounts | None:
    """What one allocation consumes of each capacity, or None where this device cannot give it even when unused.

    `fractional` is the gate DRAFractionalCapacityRange. CapacityError where the scheduler aborts, whatever else holds
    (`CmpRequestOverCapacity` resolves all capacities before it judges any).
    """
    if requested and not requested.keys() <= capacities.keys():
        return None
    amounts = {name: _amount(name, capacities[name], requested.get(name), fractional) for name in sorted(capacities)}
    if any(refusal(capacities[name], amounts[name], fractional=fractional) for name in amounts):
        return None
    return amounts


def _amount(name: str, capacity: Capacity, requested: Quantity | None, fractional: bool) -> Quantity:  # noqa: FBT001
    try:
        amount = rounded(capacity, requested, fractional=fractional)
    except CapacityError as fault:
        raise CapacityError(f'capacity "{name}": {fault}', crashes=fault.crashes) from fault
    if amount.nano < 0:
        raise CapacityError(f'capacity "{name}": capacity value is negative')
    return amount


def rounded(capacity: Capacity, requested: Quantity | None, *, fractional: bool) -> Quantity:
    """What a request consumes after rounding (`calculateConsumedCapacity`); CapacityError as for `demand`."""
    policy = capacity.policy
    if requested is None:
        return policy.default if policy is not None and policy.default is not None else capacity.value
    if policy is None:
        return requested
    if policy.valid_range is not None and policy.valid_range.minimum is not None:
        return _into_range(requested, policy.valid_range, policy.valid_range.minimum, fractional=fractional)
    return next((value for value in policy.valid_values if requested <= value), requested)


def refusal(capacity: Capacity, amount: Quantity, *, fractional: bool) -> str:
    """Why the amount can never be taken of this capacity, or "": its policy (`violatesPolicy`), or its size."""
    policy = capacity.policy
    if policy is not None and not _is_default(amount, policy):
        if policy.valid_range is not None:
            if policy.valid_range.maximum is not None and policy.valid_range.maximum < amount:
                return f"{amount} is more than the maximum {policy.valid_range.maximum} for one share"
            if _between_steps(amount, policy.valid_range, fractional=fractional):
                return f"{amount} is no step of {policy.valid_range.step} from {policy.valid_range.minimum}"
        elif policy.valid_values and all(amount.nano != value.nano for value in policy.valid_values):
            return f"{amount} is none of the valid values {', '.join(map(str, policy.valid_values))}"
    return f"{amount} is more than the device has, {capacity.value}" if capacity.value < amount else ""


def _is_default(amount: Quantity, policy: Policy) -> bool:
    """Whether the policy accepts the amount as its default unseen. Go compares structs: format, form and text count."""
    default = policy.default
    if default is None or default.power is None:
        return False
    return default == amount and (default.format, default.power, default.text) == (
        amount.format,
        amount.power,
        amount.text,
    )


def _into_range(requested: Quantity, span: Range, minimum: Quantity, *, fractional: bool) -> Quantity:
    """`roundUpRange`: at least the minimum, then up to the next step."""
    if requested < minimum:
        return minimum
    if span.step is None:
        return requested
    unit = _NANO_PER_MILLI if _counts_in_milli(span, fractional=fractional) else _NANO
    if unit == _NANO_PER_MILLI and _exact_milli(requested) is None:
        raise CapacityError(f"{_NOT_REPRESENTABLE}: request {requested} is not a representable milli value")
    if unit == _NANO and requested.nano > _MAX_INT64 * _NANO:
        raise CapacityError(f"{_NOT_REPRESENTABLE}: request {requested} exceeds MaxInt64")
    start, step = _units(minimum, unit), _step(span.step, unit)
    added = _units(requested, unit) - start
    steps = _truncated(added, step) + (1 if added % step else 0)
    total = start + steps * step
    if total > _MAX_INT64:
        limit = "the milli-value range" if unit == _NANO_PER_MILLI else "MaxInt64"
        raise CapacityError(f"{_NOT_REPRESENTABLE}: rounding request {requested} up to the next step passes {limit}")
    whole, rest = divmod(total * unit, _NANO)
    return Quantity.of(whole, span.step.format) if not rest else Quantity(total * unit, span.step.format, power=-3)


def _truncated(numerator: int, denominator: int) -> int:
    """Go's division, toward zero."""
    quotient = abs(numerator) // abs(denominator)
    return quotient if (numerator >= 0) == (denominator >= 0) else -quotient


def _units(quantity: Quantity, unit: int) -> int:
    """That many units of so many nano, rounded away from zero as `Value` and `MilliValue` do."""
    nano = quantity.nano
    return -(-nano // unit) if nano >= 0 else nano // unit


def _step(step: Quantity, unit: int) -> int:
    units = _units(step, unit)
    if units == 0:
        raise CapacityError("panic: runtime error: integer divide by zero", crashes=True)
    return units


def _between_steps(amount: Quantity, span: Range, *, fractional: bool) -> bool:
    if span.step is None:
        return False
    if span.minimum is None:
        raise CapacityError("panic: runtime error: invalid memory address or nil pointer dereference", crashes=True)
    in_milli = _counts_in_milli(span, fractional=fractional)
    if in_milli and _exact_milli(amount) is None:
        return True
    unit = _NANO_PER_MILLI if in_milli else _NANO
    return (_units(amount, unit) - _units(span.minimum, unit)) % _step(span.step, unit) != 0


def _counts_in_milli(span: Range, *, fractional: bool) -> bool:
    """`useMilli`: with the gate on, wherever the whole range is exact in milli units and the step is at least one."""
    if not fractional:
        return False
    bounds = [each for each in (span.minimum, span.maximum, span.step) if each is not None]
    if any(_exact_milli(each) is None for each in bounds):
        return False
    return span.step is None or span.step.nano >= _NANO_PER_MILLI


def _exact_milli(quantity: Quantity) -> int | None:
    """The value in milli units where that is lossless (`safeMilliValue`)."""
    milli, rest = divmod(quantity.nano, _NANO_PER_MILLI)
    return milli if not rest and _MIN_INT64 <= milli <= _MAX_INT64 else None
