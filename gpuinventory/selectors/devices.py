"""Devices as the table lists them: filtered by SQL, with holders, counters and taints of the page's rows only."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from django.core.paginator import Page, Paginator
from django.db.models import Exists, OuterRef, Q, QuerySet

from dra.kube.requests import RESOURCE_SLICES
from dra.names import DeviceID
from dra.objects import DeviceTaint, ResourceSlice, decode
from gpuinventory.models import AllocatedDevice, ClusterObject, CounterSet, Device, Pool
from gpuinventory.projection import SHARE, DeviceState
from gpuinventory.selectors.nodes import NodeView, nodes_by_name
from portal.badge import Badge

PAGE = 50
BADGES: dict[DeviceState, Badge] = {
    DeviceState.FREE: Badge("neutral", "○", "Free"),
    DeviceState.PARTLY_HELD: Badge("team", "◑", "Partly held"),
    DeviceState.HELD: Badge("others", "●", "Held"),
    DeviceState.EXCLUDED: Badge("others", "⊖", "Excluded"),
    DeviceState.BLOCKED: Badge("bad", "⊘", "Blocked"),
    DeviceState.UNKNOWN: Badge("unknown", "?", "Unknown"),
    DeviceState.MISSING: Badge("wait", "!", "Missing"),
}

_HELD = (DeviceState.HELD, DeviceState.PARTLY_HELD)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFilter:
    """What the address asks for. `everything` lists MIG placements that nobody holds too, 25 for each H100."""

    state: str = ""
    product: str = ""
    node: str = ""
    text: str = ""
    everything: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HolderView:
    """One claim on a device. `percent` is None where the device is not shared."""

    namespace: str
    claim: str
    pods: tuple[str, ...]
    device_request: str
    percent: int | None
    consumed: tuple[tuple[str, str], ...]
    admin_access: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterView:
    """One counter of a card: what is left of how much, as quantities."""

    name: str
    left: str
    total: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceView:
    """One row of the table."""

    id: DeviceID
    node: NodeView
    product: str
    device_type: str
    mig_profile: str
    memory: int
    state: DeviceState
    shareable: bool
    percent_used: int
    holders: tuple[HolderView, ...]
    taints: tuple[DeviceTaint, ...]
    counters: tuple[CounterView, ...]
    mine: bool

    @property
    def badge(self) -> Badge:
        """The state as a badge; what is held by the reader's own namespaces stands out."""
        badge = BADGES[self.state]
        return replace(badge, tone="mine") if self.mine and self.state in _HELD else badge

    @property
    def memory_left(self) -> CounterView | None:
        """The counter that says most about a card that is cut in parts."""
        return next((counter for counter in self.counters if counter.name == "memory"), None)


@dataclass(frozen=True, slots=True)
class DeviceList:
    """One page of devices; `pager` is Django's, for the links."""

    rows: tuple[DeviceView, ...]
    pager: Page[Device]


def list_devices(wanted: DeviceFilter, *, namespaces: Collection[str] | None, page: int = 1) -> DeviceList:
    """Devices that match, 50 a page. With `namespaces` only those that claims of these namespaces hold, and of the
    holders only those claims.
    """
    rows = (
        _matching(wanted, namespaces).select_related("pool").order_by("node", "pool__driver", "pool__name", "position")
    )
    pager = Paginator(rows, PAGE).get_page(page)
    return DeviceList(device_views(pager.object_list, namespaces), pager)


def device_views(devices: Iterable[Device], namespaces: Collection[str] | None) -> tuple[DeviceView, ...]:
    """Rows with what belongs to them. Four queries, one more where a device is tainted."""
    listed = list(devices)
    holders = _holders(listed, namespaces)
    counters = _counters(listed)
    taints = _taints(listed)
    nodes = nodes_by_name({device.node for device in listed})
    return tuple(
        DeviceView(
            id=device_id(device),
            node=nodes.get(device.node, NodeView(device.node, "")),
            product=device.product,
            device_type=device.device_type,
            mig_profile=device.mig_profile,
            memory=device.memory,
            state=DeviceState(device.state),
            shareable=device.shareable,
            percent_used=device.percent_used,
            holders=tuple(holders.get(device_id(device), ())),
            taints=taints.get(device_id(device), ()),
            counters=counters.get((device.pool_id, device.counter_set), ()),
            mine=namespaces is not None and device_id(device) in holders,
        )
        for device in listed
    )


def device_id(device: Device) -> DeviceID:
    """The identity of a row; its pool must have been selected."""
    return DeviceID(device.pool.driver, device.pool.name, device.name)


def unsettled_pools() -> tuple[Pool, ...]:
    """Pools whose rows may be wrong: being updated, contradictory, or gone. One query."""
    return tuple(Pool.objects.exclude(state="complete").order_by("node", "driver", "name"))


def filter_choices() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Products and nodes that there are. Two queries."""
    products = Device.objects.exclude(product="").values_list("product", flat=True).distinct().order_by("product")
    nodes = Device.objects.exclude(node="").values_list("node", flat=True).distinct().order_by("node")
    return tuple(products), tuple(nodes)


def _matching(wanted: DeviceFilter, namespaces: Collection[str] | None) -> QuerySet[Device]:
    rows = Device.objects.all()
    if not wanted.everything:
        rows = rows.filter(Q(mig_profile="") | Q(holders__gt=0))
    if wanted.state:
        rows = rows.filter(state=wanted.state)
    if wanted.product:
        rows = rows.filter(product=wanted.product)
    if wanted.node:
        rows = rows.filter(node=wanted.node)
    if wanted.text:
        held = _allocations_on_row().filter(
            Q(claim_name__icontains=wanted.text) | Q(claim_namespace__icontains=wanted.text)
        )
        text = Q(name__icontains=wanted.text) | Q(node__icontains=wanted.text) | Q(product__icontains=wanted.text)
        rows = rows.filter(text | Q(mig_profile__icontains=wanted.text) | (Exists(held) if namespaces is None else Q()))
    if namespaces is not None:
        rows = rows.filter(Exists(_allocations_on_row().filter(claim_namespace__in=namespaces)))
    return rows


def _allocations_on_row() -> QuerySet[AllocatedDevice]:
    return AllocatedDevice.objects.filter(
        driver=OuterRef("pool__driver"), pool=OuterRef("pool__name"), device=OuterRef("name")
    )


def _holders(devices: list[Device], namespaces: Collection[str] | None) -> dict[DeviceID, list[HolderView]]:
    wanted = {device_id(device): device for device in devices}
    rows = AllocatedDevice.objects.filter(
        pool__in={each.pool for each in wanted}, device__in={each.device for each in wanted}
    ).order_by("claim_namespace", "claim_name", "device_request")
    if namespaces is not None:
        rows = rows.filter(claim_namespace__in=namespaces)
    found: dict[DeviceID, list[HolderView]] = {}
    for row in rows:
        key = DeviceID(row.driver, row.pool, row.device)
        if key in wanted:
            found.setdefault(key, []).append(_holder(row, shareable=wanted[key].shareable))
    return found


def _holder(row: AllocatedDevice, *, shareable: bool) -> HolderView:
    share = row.consumed.get(SHARE)
    return HolderView(
        namespace=row.claim_namespace,
        claim=row.claim_name,
        pods=tuple(row.pods),
        device_request=row.device_request,
        percent=int(share) if shareable and share and share.isdecimal() else None,
        consumed=tuple((name, value) for name, value in sorted(row.consumed.items()) if value != "0"),
        admin_access=row.admin_access,
    )


def _counters(devices: list[Device]) -> dict[tuple[int, str], tuple[CounterView, ...]]:
    rows = CounterSet.objects.filter(pool__in={device.pool_id for device in devices}).filter(
        name__in={device.counter_set for device in devices}
    )
    return {
        (row.pool_id, row.name): tuple(
            CounterView(name=name, left=left, total=total) for name, (left, total) in row.counters.items()
        )
        for row in rows
    }


def _taints(devices: list[Device]) -> dict[DeviceID, tuple[DeviceTaint, ...]]:
    names = {device.slice_name for device in devices if device.tainted}
    if not names:
        return {}
    found: dict[DeviceID, tuple[DeviceTaint, ...]] = {}
    for row in ClusterObject.objects.filter(kind=RESOURCE_SLICES.kind, name__in=names):
        slice_ = decode(bytes(row.body), ResourceSlice)
        for device in slice_.spec.devices:
            found[DeviceID(row.driver, row.pool, device.name)] = device.taints
    return found
