"""ResourceClaims to the rows that say who holds which device. Rewritten with their claim."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Q

from dra.objects import DeviceRequestAllocationResult, ResourceClaim
from dra.pools import PoolID
from gpuinventory.models import AllocatedDevice
from gpuinventory.services.reading import read_object

BATCH = 200


def write_allocations(bodies: Sequence[bytes], deleted: Sequence[tuple[str, str]]) -> set[PoolID]:
    """Replace the rows of these claims and drop those of deleted ones; the pools whose devices that concerns."""
    claims = [claim for body in bodies if (claim := read_object(body, ResourceClaim))]
    keys = [(claim.metadata.namespace, claim.metadata.name) for claim in claims]
    before = _pools_of([*keys, *deleted])
    for part in _parts([*keys, *deleted]):
        AllocatedDevice.objects.filter(_any_of(part)).delete()
    rows = [_row(claim, result) for claim in claims for result in _results(claim)]
    AllocatedDevice.objects.bulk_create(rows, batch_size=BATCH)
    return before | {PoolID(row.driver, row.pool) for row in rows}


def _results(claim: ResourceClaim) -> Sequence[DeviceRequestAllocationResult]:
    return claim.status.allocation.devices.results if claim.status.allocation else ()


def _row(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> AllocatedDevice:
    return AllocatedDevice(
        driver=result.driver,
        pool=result.pool,
        device=result.device,
        share_id=result.share_id or "",
        device_request=result.request,
        admin_access=result.admin_access,
        consumed=result.consumed_capacity,
        claim_namespace=claim.metadata.namespace,
        claim_name=claim.metadata.name,
        claim_uid=claim.metadata.uid,
        pods=[consumer.name for consumer in claim.status.reserved_for],
    )


def _pools_of(keys: Sequence[tuple[str, str]]) -> set[PoolID]:
    found: set[PoolID] = set()
    for part in _parts(keys):
        rows = AllocatedDevice.objects.filter(_any_of(part)).values_list("driver", "pool").distinct()
        found |= {PoolID(driver, pool) for driver, pool in rows}
    return found


def _any_of(keys: Sequence[tuple[str, str]]) -> Q:
    condition = Q(pk__in=[])
    for namespace, name in keys:
        condition |= Q(claim_namespace=namespace, claim_name=name)
    return condition


def _parts(keys: Sequence[tuple[str, str]]) -> list[Sequence[tuple[str, str]]]:
    return [keys[start : start + BATCH] for start in range(0, len(keys), BATCH)]
