"""ResourceClaims and templates of namespaces, with the words that people read for their state."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from dra.kube.requests import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from dra.names import ClaimRef, DeviceID
from dra.objects import (
    Condition,
    DeviceRequest,
    DeviceRequestAllocationResult,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
    decode,
)
from gpuinventory.claimstate import (
    BADGES,
    LIMITS_HELD_BY,
    ClaimState,
    ProcessSeen,
    owning_pod,
    process_seen,
    sentence_of,
    state_of,
)
from gpuinventory.models import ClusterObject, Device
from gpuinventory.projection import DeviceState
from gpuinventory.selectors.freshness import clock_ahead
from portal.badge import Badge

_UNHEALTHY = (DeviceState.BLOCKED, DeviceState.MISSING)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenDevice:
    """One device, or one share of it, of a claim. `node`, `product` are "" and `memory` 0 while it is not published.

    `process` is None where its driver does not tell of processes.
    """

    id: DeviceID
    device_request: str
    node: str
    product: str
    mig_profile: str
    memory: int
    consumed: tuple[tuple[str, str], ...]
    conditions: tuple[Condition, ...]
    limits_held_by: str
    process: ProcessSeen | None

    @property
    def percent(self) -> str:
        """The share in percent, "" for a device that has none."""
        return dict(self.consumed).get("sharePercent", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimView:
    """One claim. `pod` is the pod it was made for from a template, `pods` are those that hold it now; `created` is by
    the cluster's clock, which is `clock_ahead` seconds ahead of ours.
    """

    ref: ClaimRef
    created: str
    clock_ahead: float
    labels: dict[str, str]
    state: ClaimState
    sentence: str
    pod: str
    pods: tuple[str, ...]
    asked: tuple[str, ...]
    device_classes: tuple[str, ...]
    allocated_at: str
    devices: tuple[GivenDevice, ...]

    @property
    def badge(self) -> Badge:
        """The state as a badge."""
        return BADGES[self.state]


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateView:
    """One ResourceClaimTemplate. `claim_labels` are copied to every claim made from it (KEP-4381)."""

    namespace: str
    name: str
    uid: str
    created: str
    labels: dict[str, str]
    claim_labels: dict[str, str]


def resource_claims(namespaces: Collection[str], *, labels: dict[str, str] | None = None) -> tuple[ClaimView, ...]:
    """The claims of these namespaces, newest first; with `labels` only those that carry them all. Three queries."""
    rows = ClusterObject.objects.filter(kind=RESOURCE_CLAIMS.kind, namespace__in=namespaces)
    claims = [decode(bytes(row.body), ResourceClaim) for row in rows]
    wanted = (labels or {}).items()
    return claim_views(claim for claim in claims if wanted <= claim.metadata.labels.items())


def resource_claim(namespace: str, name: str) -> ClaimView | None:
    """That claim, or None. Three queries."""
    row = ClusterObject.objects.filter(kind=RESOURCE_CLAIMS.kind, namespace=namespace, name=name).first()
    return claim_views([decode(bytes(row.body), ResourceClaim)])[0] if row else None


def resource_claim_template(namespace: str, name: str) -> TemplateView | None:
    """That template, or None. One query."""
    row = ClusterObject.objects.filter(kind=RESOURCE_CLAIM_TEMPLATES.kind, namespace=namespace, name=name).first()
    return _template(decode(bytes(row.body), ResourceClaimTemplate)) if row else None


def claim_names(namespace: str) -> frozenset[str]:
    """The names of all templates and claims of that namespace. One query."""
    kinds = (RESOURCE_CLAIM_TEMPLATES.kind, RESOURCE_CLAIMS.kind)
    rows = ClusterObject.objects.filter(kind__in=kinds, namespace=namespace)
    return frozenset(rows.values_list("name", flat=True))


def claim_uids(namespaces: Collection[str]) -> frozenset[str]:
    """The uids of all templates and claims of these namespaces. One query."""
    kinds = (RESOURCE_CLAIM_TEMPLATES.kind, RESOURCE_CLAIMS.kind)
    rows = ClusterObject.objects.filter(kind__in=kinds, namespace__in=namespaces)
    return frozenset(rows.values_list("uid", flat=True))


def claim_views(claims: Iterable[ResourceClaim]) -> tuple[ClaimView, ...]:
    """Claims with their devices looked up. Two queries."""
    listed = sorted(claims, key=lambda claim: claim.metadata.name)
    listed.sort(key=lambda claim: claim.metadata.creation_timestamp or "", reverse=True)
    results = [result for claim in listed for result in _results(claim)]
    rows = Device.objects.select_related("pool").filter(
        pool__name__in={result.pool for result in results}, name__in={result.device for result in results}
    )
    devices = {DeviceID(row.pool.driver, row.pool.name, row.name): row for row in rows}
    ahead = clock_ahead()
    return tuple(_view(claim, devices, ahead) for claim in listed)


def _view(claim: ResourceClaim, devices: dict[DeviceID, Device], ahead: float) -> ClaimView:
    unhealthy = {device_id for device_id, row in devices.items() if row.state in _UNHEALTHY}
    state = state_of(claim, unhealthy)
    allocation = claim.status.allocation
    return ClaimView(
        ref=claim.ref,
        created=claim.metadata.creation_timestamp or "",
        clock_ahead=ahead,
        labels=claim.metadata.labels,
        state=state,
        sentence=sentence_of(claim, state),
        pod=owning_pod(claim),
        pods=tuple(consumer.name for consumer in claim.status.reserved_for),
        asked=tuple(_asked(each) for each in claim.spec.devices.requests),
        device_classes=tuple(
            dict.fromkeys(exact.device_class_name for each in claim.spec.devices.requests for exact in _choices(each))
        ),
        allocated_at=(allocation.allocation_timestamp if allocation else "") or "",
        devices=tuple(_given(claim, result, devices) for result in _results(claim)),
    )


def _results(claim: ResourceClaim) -> tuple[DeviceRequestAllocationResult, ...]:
    return claim.status.allocation.devices.results if claim.status.allocation else ()


def _choices(request: DeviceRequest) -> tuple[ExactDeviceRequest, ...]:
    return (request.exactly,) if request.exactly else request.first_available


def _asked(request: DeviceRequest) -> str:
    """A device request in short words, alternatives joined by "or"."""
    return " or ".join(_asked_exactly(exact) for exact in _choices(request))


def _asked_exactly(exact: ExactDeviceRequest) -> str:
    count = "all of" if exact.allocation_mode == "All" else f"{exact.count} \N{MULTIPLICATION SIGN}"
    capacity = exact.capacity.requests if exact.capacity else {}
    parts = [f"{value} %" if name == "sharePercent" else f"{name} {value}" for name, value in sorted(capacity.items())]
    return f"{count} {exact.device_class_name}" + (f", {', '.join(parts)}" if parts else "")


def _given(claim: ResourceClaim, result: DeviceRequestAllocationResult, devices: dict[DeviceID, Device]) -> GivenDevice:
    device_id = DeviceID(result.driver, result.pool, result.device)
    row = devices.get(device_id)
    status = next(
        (
            each
            for each in claim.status.devices
            if DeviceID(each.driver, each.pool, each.device) == device_id and each.share_id == result.share_id
        ),
        None,
    )
    data = (status.data or {}) if status else {}
    return GivenDevice(
        id=device_id,
        device_request=result.request,
        node=row.node if row else "",
        product=row.product if row else "",
        mig_profile=row.mig_profile if row else "",
        memory=row.memory if row else 0,
        consumed=tuple(sorted(result.consumed_capacity.items())),
        conditions=status.conditions if status else (),
        limits_held_by=LIMITS_HELD_BY.get(str(data.get("enforcedBy")), ""),
        process=process_seen(data),
    )


def _template(template: ResourceClaimTemplate) -> TemplateView:
    return TemplateView(
        namespace=template.metadata.namespace,
        name=template.metadata.name,
        uid=template.metadata.uid,
        created=template.metadata.creation_timestamp or "",
        labels=template.metadata.labels,
        claim_labels=template.spec.metadata.labels,
    )
