"""Write the device rows of pools anew from slices and allocations: only rows that differ are touched.

Slices and claims are streamed side by side, and both change a pool's rows. So each pool's row is locked first, in the
order of driver and name, and read after: the later one sees what the earlier one committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Final

from django.db import connection

from dra.kube.requests import RESOURCE_SLICES
from dra.objects import DeviceRequestAllocationResult, ResourceSlice
from dra.pools import Pool as PublishedPool
from dra.pools import PoolID, read_pools
from gpuinventory.models import AllocatedDevice, ClusterObject, CounterSet, Device, Pool
from gpuinventory.projection import DeviceRow, Projection, project
from gpuinventory.services.reading import read_object

NOT_PUBLISHED = "missing"
BATCH = 200
_COLUMNS: Final = DeviceRow.__struct_fields__
_values: Final = attrgetter(*_COLUMNS)


def project_pools(pool_ids: Iterable[PoolID]) -> None:
    """Bring the rows of these pools up to date."""
    for pool_id in sorted(pool_ids):
        Pool.objects.bulk_create([Pool(driver=pool_id.driver, name=pool_id.name)], ignore_conflicts=True)
        row = Pool.objects.select_for_update().get(driver=pool_id.driver, name=pool_id.name)
        _project(row, pool_id)


def mark_pools(pool_ids: Iterable[PoolID]) -> None:
    """Leave these pools to `dirty_pools`: a list tells a pool's slices far apart, and once for all is enough."""
    rows = [Pool(driver=pool_id.driver, name=pool_id.name, dirty=True) for pool_id in sorted(pool_ids)]
    Pool.objects.bulk_create(
        rows,
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=["driver", "name"],
        update_fields=["dirty"],
    )


def dirty_pools(limit: int) -> list[PoolID]:
    """The first of the pools whose rows are still to follow."""
    rows = Pool.objects.filter(dirty=True).order_by("driver", "name")
    return [PoolID(driver, name) for driver, name in rows.values_list("driver", "name")[:limit]]


def _project(row: Pool, pool_id: PoolID) -> None:
    slices = (read_object(body, ResourceSlice) for body in slice_bodies(pool_id))
    published = read_pools(slice_ for slice_ in slices if slice_).get(pool_id)
    projection = project(published, allocations_on(pool_id))
    if published is None and not projection.devices:
        row.delete()
        return
    _write_pool(row, published)
    _write_devices(row, projection)
    _write_counter_sets(row, projection)


def slice_bodies(pool_id: PoolID) -> Sequence[bytes]:
    """The bytes of the pool's slices."""
    rows = ClusterObject.objects.filter(kind=RESOURCE_SLICES.kind, driver=pool_id.driver, pool=pool_id.name)
    return [bytes(body) for body in rows.values_list("body", flat=True)]


def allocations_on(pool_id: PoolID) -> Mapping[str, Sequence[DeviceRequestAllocationResult]]:
    """What is allocated of the pool, by device name."""
    found: dict[str, list[DeviceRequestAllocationResult]] = {}
    for row in AllocatedDevice.objects.filter(driver=pool_id.driver, pool=pool_id.name):
        result = DeviceRequestAllocationResult(
            request=row.device_request,
            driver=row.driver,
            pool=row.pool,
            device=row.device,
            admin_access=row.admin_access,
            consumed_capacity=row.consumed,
        )
        found.setdefault(row.device, []).append(result)
    return found


def _write_pool(row: Pool, published: PublishedPool | None) -> None:
    row.node = published.node_name if published else ""
    row.state = published.state if published else NOT_PUBLISHED
    row.reason = published.reason if published else "no slice of this pool is published any more"
    row.generation = published.generation if published else 0
    row.slices_seen = len(published.slices) if published else 0
    row.slices_wanted = published.wanted if published else 0
    row.dirty = False
    row.save()


def _write_devices(pool: Pool, projection: Projection) -> None:
    existing = {row.name: row for row in pool.devices.all()}
    wanted = {row.name: row for row in projection.devices}
    if existing.keys() - wanted.keys():
        pool.devices.filter(name__in=existing.keys() - wanted.keys()).delete()
    changes = {name: _set(existing[name], row) for name, row in wanted.items() if name in existing}
    columns = sorted(set[str]().union(*changes.values()))
    _insert_devices(pool, [row for name, row in wanted.items() if name not in existing])
    if columns:
        Device.objects.bulk_update([existing[name] for name in changes if changes[name]], columns, batch_size=BATCH)


def _insert_devices(pool: Pool, rows: Sequence[DeviceRow]) -> None:
    """Without model instances: a first fill writes a million rows, and they are most of its time."""
    if not rows:
        return
    names = ", ".join(map(connection.ops.quote_name, ("pool_id", *_COLUMNS)))
    marks = ", ".join(["%s"] * (len(_COLUMNS) + 1))
    with connection.cursor() as cursor:
        cursor.executemany(
            f"INSERT INTO {connection.ops.quote_name(Device._meta.db_table)} ({names}) VALUES ({marks})",  # noqa: S608, SLF001 - our own names
            [(pool.pk, *_values(row)) for row in rows],
        )


def _set(row: Device, wanted: DeviceRow) -> set[str]:
    """Set the columns that differ; their names."""
    different = {name: getattr(wanted, name) for name in _COLUMNS if getattr(row, name) != getattr(wanted, name)}
    for name, value in different.items():
        setattr(row, name, value)
    return set(different)


def _write_counter_sets(pool: Pool, projection: Projection) -> None:
    wanted = {
        name: {counter: list(pair) for counter, pair in sets.items()} for name, sets in projection.counter_sets.items()
    }
    existing = {row.name: row for row in pool.counter_sets.all()}
    pool.counter_sets.filter(name__in=existing.keys() - wanted.keys()).delete()
    CounterSet.objects.bulk_create(
        [CounterSet(pool=pool, name=name, counters=wanted[name]) for name in wanted if name not in existing]
    )
    changed = [existing[name] for name in wanted if name in existing and existing[name].counters != wanted[name]]
    for row in changed:
        row.counters = wanted[row.name]
    CounterSet.objects.bulk_update(changed, ["counters"])
