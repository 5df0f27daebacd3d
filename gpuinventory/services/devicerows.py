"""Device and counter rows made equal to what is wanted, by the keys of their pools. Only what differs is written.

The pools are locked by the caller. A first fill writes a million device rows, so no model instances are made for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

from django.db import connection

from gpuinventory.models import CounterSet, Device
from gpuinventory.projection import CounterSets, DeviceRow

BATCH = 200
_COLUMNS: Final = DeviceRow.__struct_fields__
_values: Final = attrgetter(*_COLUMNS)


def write_devices(wanted_of: Mapping[int, Sequence[DeviceRow]]) -> None:
    """The devices of these pools."""
    wanted = {(pool, row.name): row for pool, rows in wanted_of.items() for row in rows}
    stored = {
        (pool, values[0]): (pk, values)
        for pool, pk, *values in Device.objects.filter(pool__in=wanted_of).values_list("pool_id", "pk", *_COLUMNS)
    }
    _delete([pk for key, (pk, _) in stored.items() if key not in wanted])
    _insert([(pool, *_values(row)) for (pool, name), row in wanted.items() if (pool, name) not in stored])
    _update([(pk, wanted[key], values) for key, (pk, values) in stored.items() if key in wanted])


def write_counter_sets(wanted_of: Mapping[int, CounterSets]) -> None:
    """The counter sets of these pools."""
    wanted = {(pool, name): _plain(counters) for pool, sets in wanted_of.items() for name, counters in sets.items()}
    rows = CounterSet.objects.filter(pool__in=wanted_of).values_list("pool_id", "name", "pk", "counters")
    stored = {(pool, name): (pk, counters) for pool, name, pk, counters in rows}
    gone = [pk for key, (pk, _) in stored.items() if key not in wanted]
    if gone:
        CounterSet.objects.filter(pk__in=gone).delete()
    CounterSet.objects.bulk_create(
        [
            CounterSet(pool_id=pool, name=name, counters=counters)
            for (pool, name), counters in wanted.items()
            if (pool, name) not in stored or stored[pool, name][1] != counters
        ],
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=["pool", "name"],
        update_fields=["counters"],
    )


def _plain(counters: Mapping[str, tuple[str, str]]) -> dict[str, list[str]]:
    return {name: list(pair) for name, pair in counters.items()}


def _delete(keys: Sequence[int]) -> None:
    for start in range(0, len(keys), BATCH):
        Device.objects.filter(pk__in=keys[start : start + BATCH]).delete()


def _insert(rows: Sequence[tuple[Any, ...]]) -> None:
    if not rows:
        return
    names = ", ".join(map(connection.ops.quote_name, ("pool_id", *_COLUMNS)))
    marks = ", ".join(["%s"] * (len(_COLUMNS) + 1))
    with connection.cursor() as cursor:
        cursor.executemany(
            f"INSERT INTO {connection.ops.quote_name(Device._meta.db_table)} ({names}) VALUES ({marks})",  # noqa: S608, SLF001 - our own names
            rows,
        )


def _update(pairs: Iterable[tuple[int, DeviceRow, Sequence[Any]]]) -> None:
    """Rows whose stored values differ, in the columns in which any of them does."""
    changed: list[Device] = []
    columns: set[str] = set()
    for pk, row, stored in pairs:
        values = dict(zip(_COLUMNS, _values(row), strict=True))
        different = {name for name, before in zip(_COLUMNS, stored, strict=True) if values[name] != before}
        if different:
            columns |= different
            changed.append(Device(pk=pk, **values))
    if changed:
        Device.objects.bulk_update(changed, sorted(columns), batch_size=BATCH)
