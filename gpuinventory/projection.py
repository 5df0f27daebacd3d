"""A pool's slices and the allocations on it to the rows that pages list. Pure: the same objects give the same rows.

So history does not matter: whatever order events came in, the rows follow from what there is now.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache

import msgspec

from dra.counters import Left, counters_left, fits
from dra.errors import InvalidQuantityError
from dra.objects import Device, DeviceRequestAllocationResult, ResourceSlice
from dra.pools import Pool, PoolState
from dra.quantity import parse_quantity

BLOCKING_EFFECTS = frozenset({"NoSchedule", "NoExecute"})
WHOLE = 100
SHARE = "sharePercent"
# Names that drivers give to the same fact, ours first.
_PRODUCT = ("productName", "product", "model", "device", "name")
_TYPE = ("deviceType", "type")
_MIG_PROFILE = ("migProfile", "profile")
_MEMORY = ("memory", "vram")


class DeviceState(StrEnum):
    """What may be done with a device now."""

    FREE = "free"
    PARTLY_HELD = "partly"
    HELD = "held"
    EXCLUDED = "excluded"  # another device of the same card holds what this one needs
    BLOCKED = "blocked"
    UNKNOWN = "unknown"
    MISSING = "missing"  # allocated, and no longer published


class DeviceRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The columns of one device. A first fill makes a million: a struct is made ten times as fast as a dataclass."""

    name: str
    node: str = ""
    slice_name: str = ""
    position: int = 0
    product: str = ""
    device_type: str = ""
    mig_profile: str = ""
    memory: int = 0
    counter_set: str = ""
    shareable: bool = False
    tainted: bool = False
    state: DeviceState
    percent_used: int = 0
    holders: int = 0


type CounterSets = Mapping[str, Mapping[str, tuple[str, str]]]
"""For every counter set `{counter: (left, total)}`, quantities as texts."""


@dataclass(frozen=True, slots=True)
class Projection:
    """All rows of a pool."""

    devices: tuple[DeviceRow, ...]
    counter_sets: CounterSets


type Allocations = Mapping[str, Sequence[DeviceRequestAllocationResult]]


def project(pool: Pool | None, allocations: Allocations) -> Projection:
    """The rows of a pool; `allocations` go by device name. Without slices only the missing devices are left."""
    published = list(_published(pool)) if pool else []
    allocated = {name: [each for each in given if not each.admin_access] for name, given in allocations.items()}
    left = _left(pool, [device for _, device in published if allocated.get(device.name)])
    rows = [
        _row(_Place(pool, slice_, position), device, allocated.get(device.name, ()), left)
        for position, (slice_, device) in enumerate(published)
        if pool
    ]
    known = {device.name for _, device in published}
    missing = sorted(name for name, given in allocated.items() if given and name not in known)
    rows += [_missing(pool, name, len(rows) + i, allocated[name]) for i, name in enumerate(missing)]
    sets = {
        name: {counter: (str(state.left), str(state.total)) for counter, state in counters.items()}
        for name, counters in left.items()
    }
    return Projection(tuple(rows), sets)


def is_blocked(device: Device) -> bool:
    """Whether a taint keeps new pods off the device, or drives them away."""
    return any(taint.effect in BLOCKING_EFFECTS for taint in device.taints)


def percent_used(device: Device, allocated: Sequence[DeviceRequestAllocationResult]) -> int:
    """How much of a device is allocated, from 0 to 100: by share where it has one, else by its most used capacity."""
    if not allocated:
        return 0
    if not device.allow_multiple_allocations:
        return WHOLE
    capacities = {SHARE: device.capacity[SHARE]} if SHARE in device.capacity else device.capacity
    used = [_fraction(name, capacity.value, allocated) for name, capacity in capacities.items()]
    return min(WHOLE, round(max(used, default=Fraction(1)) * WHOLE))


def memory_of(device: Device, driver: str) -> int:
    """Bytes of memory that the device publishes, 0 where it publishes none that we know."""
    for name in _spellings(driver, _MEMORY):
        if name in device.capacity:
            return _bytes_of(device.capacity[name].value)
    return 0


def _published(pool: Pool) -> Iterator[tuple[ResourceSlice, Device]]:
    """Devices once each. While a pool is being updated, those of older slices count as still there."""
    seen: set[str] = set()
    older = ((slice_, device) for slice_ in pool.outdated for device in slice_.spec.devices)
    every = [*pool.devices(), *(older if pool.state is PoolState.INCOMPLETE else ())]
    for slice_, device in every:
        if device.name not in seen:
            seen.add(device.name)
            yield slice_, device


def _left(pool: Pool | None, allocated: list[Device]) -> Left:
    if pool is None or pool.state is not PoolState.COMPLETE:
        return {}
    return counters_left(pool.counter_sets().values(), allocated)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a device is published; `position` counts in its pool."""

    pool: Pool
    slice_: ResourceSlice
    position: int


def _row(place: _Place, device: Device, allocated: Sequence[DeviceRequestAllocationResult], left: Left) -> DeviceRow:
    driver = place.pool.id.driver
    used = percent_used(device, allocated)
    return DeviceRow(
        name=device.name,
        node=device.node_name or place.slice_.spec.node_name or "",
        slice_name=place.slice_.metadata.name,
        position=place.position,
        product=_text(device, driver, _PRODUCT)[:128],
        device_type=_text(device, driver, _TYPE)[:64],
        mig_profile=_text(device, driver, _MIG_PROFILE)[:64],
        memory=memory_of(device, driver),
        counter_set=device.consumes_counters[0].counter_set if device.consumes_counters else "",
        shareable=device.allow_multiple_allocations,
        tainted=is_blocked(device),
        state=_state(place.pool, device, used, held=bool(allocated), left=left),
        percent_used=used,
        holders=len(allocated),
    )


def _state(pool: Pool, device: Device, used: int, *, held: bool, left: Left) -> DeviceState:
    if pool.state is PoolState.INCOMPLETE:
        return DeviceState.UNKNOWN
    if pool.state is PoolState.INVALID or is_blocked(device):
        return DeviceState.BLOCKED
    if held:
        return DeviceState.PARTLY_HELD if used < WHOLE else DeviceState.HELD
    return DeviceState.FREE if fits(device, left) else DeviceState.EXCLUDED


def _missing(pool: Pool | None, name: str, position: int, allocated: list[DeviceRequestAllocationResult]) -> DeviceRow:
    return DeviceRow(
        name=name,
        node=pool.node_name if pool else "",
        position=position,
        state=DeviceState.MISSING,
        holders=len(allocated),
    )


def _fraction(name: str, total: str, allocated: Sequence[DeviceRequestAllocationResult]) -> Fraction:
    try:
        whole = parse_quantity(total)
        used = [parse_quantity(each.consumed_capacity.get(name, "0")) for each in allocated]
    except InvalidQuantityError:
        return Fraction(0)
    return Fraction(sum(each.nano for each in used), whole.nano) if whole.nano else Fraction(0)


def _text(device: Device, driver: str, names: tuple[str, ...]) -> str:
    """The first of these attributes that is a text, and not an empty one."""
    for name in _spellings(driver, names):
        found = device.attributes.get(name)
        if found and (text := found.string or found.version):
            return text
    return ""


@lru_cache(maxsize=256)
def _spellings(driver: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Each name as the driver may write it: short, and with its domain."""
    return tuple(spelling for name in names for spelling in (name, f"{driver}/{name}"))


def _bytes_of(quantity: str) -> int:
    try:
        return parse_quantity(quantity).value
    except InvalidQuantityError:
        return 0
