"""Make the rows equal to what the API server said, in one transaction or the caller's. Writes only what changed.

Level, not edge: rows follow from the objects alone, so a doubled event or a whole new list changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q

from dra.kube.requests import RESOURCE_CLAIMS, RESOURCE_SLICES
from dra.objects import ApiStruct, ObjectMeta
from dra.pools import PoolID
from gpuinventory.models import ClusterObject
from gpuinventory.services.allocations import write_allocations
from gpuinventory.services.changelog import bump_revision, record_deleted
from gpuinventory.services.pools import mark_pools, project_pools
from gpuinventory.services.reading import keep_of, read_object
from gpuinventory.services.trimming import is_trimmed

BATCH = 200  # rows per statement; SQLite binds a limited number of values


@dataclass(frozen=True, slots=True)
class Seen:
    """One object as the API server told it: its metadata and its bytes. A deleted one has no bytes."""

    metadata: ObjectMeta
    body: bytes | None

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.metadata.namespace, self.metadata.name


class _PoolName(ApiStruct, frozen=True, kw_only=True):
    name: str


class _SliceSpec(ApiStruct, frozen=True, kw_only=True):
    driver: str
    pool: _PoolName


class _SlicePlace(ApiStruct, frozen=True, kw_only=True):
    """A ResourceSlice as far as its row needs it: reading all devices costs ten times as much."""

    spec: _SliceSpec


@transaction.atomic(savepoint=False)
def ingest(kind: str, seen: Iterable[Seen], *, settle: bool = True) -> int:
    """Write these objects; the number of rows that changed. Of several words about one object the last counts.

    Without `settle` the pools they concern are only marked, to be brought up to date when a list is complete.
    """
    latest = {each.key: each for each in _kept(kind, seen)}
    stored = _stored(kind, latest)
    changed = [each for each in latest.values() if each.body is not None and _state(kind, each) != stored.get(each.key)]
    deleted = [each.key for each in latest.values() if each.body is None and each.key in stored]
    return _write(kind, changed, deleted, settle=settle)


@transaction.atomic(savepoint=False)
def forget_others(kind: str, listed: set[tuple[str, str]]) -> int:
    """After a whole list: delete the rows of objects that are not in it, and mark their pools."""
    rows = ClusterObject.objects.filter(kind=kind).values_list("namespace", "name")
    return _write(kind, [], [key for key in rows.iterator() if key not in listed], settle=False)


def _write(kind: str, changed: Sequence[Seen], deleted: Sequence[tuple[str, str]], *, settle: bool) -> int:
    if not changed and not deleted:
        return 0
    at = bump_revision()
    pools = _pools_of(kind, [each.key for each in changed] + list(deleted)) if kind == RESOURCE_SLICES.kind else set()
    rows = [_row(kind, each, at) for each in changed]
    ClusterObject.objects.bulk_create(
        rows,
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=["kind", "namespace", "name"],
        update_fields=["uid", "resource_version", "driver", "pool", "body", "changed_at_revision"],
    )
    for part in _parts(deleted):
        ClusterObject.objects.filter(_any_of(part), kind=kind).delete()
    record_deleted(kind, deleted, at)
    pools |= {PoolID(row.driver, row.pool) for row in rows if row.driver}
    if kind == RESOURCE_CLAIMS.kind:
        pools |= write_allocations([each.body for each in changed if each.body is not None], deleted)
    if settle:
        project_pools(pools)
    else:
        mark_pools(pools)
    return len(changed) + len(deleted)


def _kept(kind: str, seen: Iterable[Seen]) -> Iterable[Seen]:
    """Each with the part that is stored; without those that are of no concern."""
    if not is_trimmed(kind):
        return seen
    cut = ((each, each.body and keep_of(kind, each.body)) for each in seen)
    return [Seen(each.metadata, body) for each, body in cut if body is not None or each.body is None]


def _state(kind: str, each: Seen) -> tuple[str, str | bytes | None]:
    """What a row is compared by: the version, or the kept part where versions change without news."""
    return each.metadata.uid, each.body if is_trimmed(kind) else each.metadata.resource_version


def _stored(kind: str, latest: dict[tuple[str, str], Seen]) -> dict[tuple[str, str], tuple[str, str | bytes | None]]:
    """The same of the rows that are there, by key."""
    found: dict[tuple[str, str], tuple[str, str | bytes | None]] = {}
    for part in _parts(list(latest)):
        rows = ClusterObject.objects.filter(_any_of(part), kind=kind)
        column = "body" if is_trimmed(kind) else "resource_version"
        for namespace, name, uid, state in rows.values_list("namespace", "name", "uid", column):
            found[namespace, name] = (uid, bytes(state) if is_trimmed(kind) else state)
    return found


def _pools_of(kind: str, keys: list[tuple[str, str]]) -> set[PoolID]:
    """The pools that these slices belonged to so far; a slice may move from one to another."""
    found: set[PoolID] = set()
    for part in _parts(keys):
        rows = ClusterObject.objects.filter(_any_of(part), kind=kind).values_list("driver", "pool")
        found |= {PoolID(driver, pool) for driver, pool in rows}
    return found


def _row(kind: str, each: Seen, at: int) -> ClusterObject:
    body = each.body or b""
    slice_ = read_object(body, _SlicePlace) if kind == RESOURCE_SLICES.kind else None
    return ClusterObject(
        kind=kind,
        namespace=each.metadata.namespace,
        name=each.metadata.name,
        uid=each.metadata.uid,
        resource_version=each.metadata.resource_version,
        driver=slice_.spec.driver if slice_ else "",
        pool=slice_.spec.pool.name if slice_ else "",
        body=body,
        changed_at_revision=at,
    )


def _any_of(keys: Sequence[tuple[str, str]]) -> Q:
    """Rows with these keys: one list of names per namespace."""
    by_namespace: dict[str, list[str]] = {}
    for namespace, name in keys:
        by_namespace.setdefault(namespace, []).append(name)
    condition = Q(pk__in=[])
    for namespace, names in by_namespace.items():
        condition |= Q(namespace=namespace, name__in=names)
    return condition


def _parts(keys: Sequence[tuple[str, str]]) -> Iterable[Sequence[tuple[str, str]]]:
    return (keys[start : start + BATCH] for start in range(0, len(keys), BATCH))
