"""One device with everything its page shows: attributes and capacities as published, shares, counters."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from dra.kube.requests import RESOURCE_SLICES
from dra.names import DeviceID
from dra.objects import Device as PublishedDevice
from dra.objects import ResourceSlice, decode
from gpuinventory.models import ClusterObject, Device, Pool
from gpuinventory.selectors.devices import CounterView, DeviceView, HolderView, device_views
from gpuinventory.selectors.freshness import clock_ahead

_SLICE = "memory-slice-"


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of the share bar: from where, how wide, in percent; `holder` None for what another team holds."""

    start: int
    width: int
    holder: HolderView | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceDetail:
    """What the device page shows beyond the row. The cluster's clock is `clock_ahead` seconds ahead of ours."""

    view: DeviceView
    pool: Pool
    slice_name: str
    attributes: tuple[tuple[str, str], ...]
    capacities: tuple[tuple[str, str], ...]
    segments: tuple[Segment, ...]
    neighbours: tuple[Device, ...]
    clock_ahead: float

    @property
    def memory_slices(self) -> tuple[bool, ...]:
        """Whether each memory slice of the card is taken, from the first to the last."""
        return tuple(counter.left == "0" for counter in self.view.counters if counter.name.startswith(_SLICE))

    @property
    def sums(self) -> tuple[CounterView, ...]:
        """The other counters of the card."""
        return tuple(counter for counter in self.view.counters if not counter.name.startswith(_SLICE))

    @property
    def selector(self) -> str:
        """CEL that selects exactly this device by its uuid, "" where it publishes none."""
        uuid = dict(self.attributes).get("uuid", "")
        domain = self.view.id.driver
        return f'device.driver == "{domain}" && device.attributes["{domain}"].uuid == "{uuid}"' if uuid else ""


def device_detail(wanted: DeviceID, *, namespaces: Collection[str] | None) -> DeviceDetail | None:
    """The device, or None. With `namespaces` also None unless a claim of these namespaces holds it, and only their
    claims are named.
    """
    row = (
        Device.objects.select_related("pool")
        .filter(pool__driver=wanted.driver, pool__name=wanted.pool, name=wanted.device)
        .first()
    )
    if row is None:
        return None
    (view,) = device_views([row], namespaces)
    if namespaces is not None and not view.holders:
        return None
    published = _published(row)
    return DeviceDetail(
        view=view,
        pool=row.pool,
        slice_name=row.slice_name,
        attributes=_attributes(published, wanted.driver),
        capacities=_capacities(published),
        segments=_segments(view),
        neighbours=_neighbours(row) if namespaces is None else (),
        clock_ahead=clock_ahead(),
    )


def _published(row: Device) -> PublishedDevice | None:
    found = ClusterObject.objects.filter(kind=RESOURCE_SLICES.kind, name=row.slice_name).first()
    devices = decode(bytes(found.body), ResourceSlice).spec.devices if found else ()
    return next((device for device in devices if device.name == row.name), None)


def _attributes(device: PublishedDevice | None, driver: str) -> tuple[tuple[str, str], ...]:
    attributes = device.attributes if device else {}
    return tuple(sorted((name.removeprefix(f"{driver}/"), _text(each.value)) for name, each in attributes.items()))


def _text(value: object) -> str:
    match value:
        case None:
            return "a kind of value that this portal does not know"
        case bool():
            return "yes" if value else "no"
        case tuple():
            return ", ".join(_text(each) for each in value)
        case _:
            return str(value)


def _capacities(device: PublishedDevice | None) -> tuple[tuple[str, str], ...]:
    capacity = device.capacity if device else {}
    return tuple(sorted((name, each.value) for name, each in capacity.items()))


def _segments(view: DeviceView) -> tuple[Segment, ...]:
    """Named shares first, then what others hold as one piece: its size is a number, its holders are not told."""
    segments: list[Segment] = []
    at = 0
    for holder in view.holders:
        width = view.percent_used - at if holder.percent is None else min(holder.percent, view.percent_used - at)
        if width > 0 and not holder.admin_access:
            segments.append(Segment(at, width, holder))
            at += width
    if at < view.percent_used:
        segments.append(Segment(at, view.percent_used - at, None))
    return tuple(segments)


def _neighbours(row: Device) -> tuple[Device, ...]:
    """Devices of the same card that are held or blocked, and the whole card."""
    if not row.counter_set:
        return ()
    same_card = Device.objects.filter(pool=row.pool, counter_set=row.counter_set).exclude(pk=row.pk)
    return tuple(same_card.exclude(state__in=["free", "excluded"]).order_by("position"))
