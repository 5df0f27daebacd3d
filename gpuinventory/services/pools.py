"""Write the rows of pools anew from slices and allocations: only rows that differ are touched.

Slices and claims are streamed side by side, and both change a pool's rows. So the pools' rows are locked first, in the
order of driver and name, and all else is read after: the later one sees what the earlier one committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import batched

from django.db.models import Q

from dra.kube.requests import RESOURCE_SLICES
from dra.objects import DeviceRequestAllocationResult, ResourceSlice
from dra.pools import Pool as PublishedPool
from dra.pools import PoolID, read_pools
from gpuinventory.models import AllocatedDevice, ClusterObject, Pool
from gpuinventory.projection import Allocations, Projection, project
from gpuinventory.services.devicerows import write_counter_sets, write_devices
from gpuinventory.services.reading import read_object

NOT_PUBLISHED = "missing"
BATCH = 200
TOGETHER = 20  # pools that are read and written at once: few statements each, and little memory
_COLUMNS = ("node", "state", "reason", "generation", "slices_seen", "slices_wanted", "dirty")


def project_pools(pool_ids: Iterable[PoolID]) -> None:
    """Bring the rows of these pools up to date."""
    for some in batched(sorted(pool_ids), TOGETHER):
        _project(some)


def mark_pools(pool_ids: Iterable[PoolID]) -> None:
    """Leave these pools to `dirty_pools`: a list tells a pool's slices far apart, and once for all is enough."""
    rows = [Pool(driver=pool_id.driver, name=pool_id.name, dirty=True) for pool_id in sorted(pool_ids)]
    _put(rows, ["dirty"])


def dirty_pools(limit: int) -> list[PoolID]:
    """The first of the pools whose rows are still to follow."""
    rows = Pool.objects.filter(dirty=True).order_by("driver", "name")
    return [PoolID(driver, name) for driver, name in rows.values_list("driver", "name")[:limit]]


def _project(pool_ids: Sequence[PoolID]) -> None:
    rows = _locked(pool_ids)
    published, allocated = _published(pool_ids), _allocations_on(pool_ids)
    projections = {each: project(published.get(each), allocated.get(each, {})) for each in pool_ids}
    gone = {each for each in pool_ids if each not in published and not projections[each].devices}
    if gone:
        Pool.objects.filter(pk__in=[rows[each].pk for each in gone]).delete()
    _write({rows[each].pk: projections[each] for each in pool_ids if each not in gone})
    _put([_row(each, published.get(each)) for each in pool_ids if each not in gone], _COLUMNS)


def _write(projections: Mapping[int, Projection]) -> None:
    write_devices({pool: projection.devices for pool, projection in projections.items()})
    write_counter_sets({pool: projection.counter_sets for pool, projection in projections.items()})


def _locked(pool_ids: Sequence[PoolID]) -> dict[PoolID, Pool]:
    """The pools' rows, which are made where there is none."""
    Pool.objects.bulk_create([Pool(driver=each.driver, name=each.name) for each in pool_ids], ignore_conflicts=True)
    rows = Pool.objects.select_for_update().filter(_any_of(pool_ids, "name")).order_by("driver", "name")
    return {PoolID(row.driver, row.name): row for row in rows}


def _published(pool_ids: Sequence[PoolID]) -> dict[PoolID, PublishedPool]:
    """What the slices say of these pools; one without slices is left out."""
    rows = ClusterObject.objects.filter(_any_of(pool_ids, "pool"), kind=RESOURCE_SLICES.kind)
    slices = (read_object(bytes(body), ResourceSlice) for body in rows.values_list("body", flat=True))
    return read_pools(slice_ for slice_ in slices if slice_)


def _allocations_on(pool_ids: Sequence[PoolID]) -> dict[PoolID, Allocations]:
    """What is allocated of each pool, by device name."""
    found: dict[PoolID, dict[str, list[DeviceRequestAllocationResult]]] = {}
    for row in AllocatedDevice.objects.filter(_any_of(pool_ids, "pool")):
        result = DeviceRequestAllocationResult(
            request=row.device_request,
            driver=row.driver,
            pool=row.pool,
            device=row.device,
            admin_access=row.admin_access,
            consumed_capacity=row.consumed,
        )
        found.setdefault(PoolID(row.driver, row.pool), {}).setdefault(row.device, []).append(result)
    return dict(found)


def _row(pool_id: PoolID, published: PublishedPool | None) -> Pool:
    return Pool(
        driver=pool_id.driver,
        name=pool_id.name,
        node=published.node_name if published else "",
        state=published.state if published else NOT_PUBLISHED,
        reason=published.reason if published else "no slice of this pool is published any more",
        generation=published.generation if published else 0,
        slices_seen=len(published.slices) if published else 0,
        slices_wanted=published.wanted if published else 0,
        dirty=False,
    )


def _put(rows: Sequence[Pool], columns: Sequence[str]) -> None:
    Pool.objects.bulk_create(
        rows, batch_size=BATCH, update_conflicts=True, unique_fields=["driver", "name"], update_fields=columns
    )


def _any_of(pool_ids: Iterable[PoolID], column: str) -> Q:
    """Rows of these pools, which `column` names: one list of names per driver."""
    names: dict[str, list[str]] = {}
    for each in pool_ids:
        names.setdefault(each.driver, []).append(each.name)
    condition = Q(pk__in=[])
    for driver, some in names.items():
        condition |= Q(**{"driver": driver, f"{column}__in": some})
    return condition
