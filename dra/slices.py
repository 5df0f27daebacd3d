"""The slices that a pool should consist of, against those that exist: what to create, update and delete, as values.

Rules of a driver's duty (k8s.io/dynamic-resource-allocation/resourceslice): one generation and one slice count on all
slices of a pool; a new generation only when more than one slice has to be written, so that readers never see half a
change; names in order, since the scheduler takes slices by name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from dra.errors import InvalidQuantityError
from dra.names import MAX_SUBDOMAIN
from dra.objects import (
    CounterSet,
    Device,
    DeviceTaint,
    ObjectMeta,
    OwnerReference,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
    to_json,
)
from dra.quantity import parse_quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceContent:
    """One slice of a pool: devices or counter sets (never both, API rule). `index` decides its place in the order."""

    index: int
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolContent:
    """A node-local pool as it should be; `owner` is the Node, so that the slices go with it."""

    driver: str
    node: str
    owner: OwnerReference
    slices: tuple[SliceContent, ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """What makes the existing slices equal to the wanted ones; to be done in this order: delete, create, update.

    Slices to update and delete carry the resourceVersion and uid of what was seen, as preconditions.
    """

    delete: tuple[ResourceSlice, ...] = ()
    create: tuple[ResourceSlice, ...] = ()
    update: tuple[ResourceSlice, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.delete or self.create or self.update)


def slice_name(index: int, driver: str, node: str) -> str:
    """The object name of a slice: name order is index order. A name that is too long ends in a digest of itself."""
    name = f"{index:05x}-{driver}-{node}"
    if len(name) <= MAX_SUBDOMAIN:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:12]
    return f"{name[: MAX_SUBDOMAIN - 13].rstrip('-.')}-{digest}"


def changes(pool: PoolContent, existing: tuple[ResourceSlice, ...]) -> Changes:
    """Compare the pool with the slices of this driver and node that exist.

    `existing` may come in any order and half written: whatever was interrupted before is completed.
    """
    by_name = {slice_.metadata.name: slice_ for slice_ in existing}
    drafts = tuple(_draft(pool, content, by_name) for content in pool.slices)
    names = {draft.metadata.name for draft in drafts}
    delete = tuple(slice_ for slice_ in existing if slice_.metadata.name not in names)
    stale = [draft for draft in drafts if not _is_published(draft, by_name.get(draft.metadata.name))]
    several = len(stale) > 1 or bool(delete) or any(draft.metadata.name not in by_name for draft in stale)
    if not several:
        return Changes(update=tuple(stale))
    generation = 1 + max((slice_.spec.pool.generation for slice_ in existing), default=0)
    written = [_with_generation(draft, generation) for draft in drafts]
    return Changes(
        delete=delete,
        create=tuple(slice_ for slice_ in written if slice_.metadata.name not in by_name),
        update=tuple(slice_ for slice_ in written if slice_.metadata.name in by_name),
    )


def dropped_fields(sent: ResourceSlice, received: ResourceSlice) -> tuple[str, ...]:
    """The fields of the spec that the API server did not keep, such as `spec.devices.allowMultipleAllocations`.

    A server drops what its feature gates do not know. Positions in lists are left out of the paths.
    """
    return tuple(sorted(set(_lost(to_json(sent.spec), to_json(received.spec), "spec"))))


def _draft(pool: PoolContent, content: SliceContent, by_name: Mapping[str, ResourceSlice]) -> ResourceSlice:
    """The slice with the generation of the pool that exists, and with what the server has set in it."""
    name = slice_name(content.index, pool.driver, pool.node)
    found = by_name.get(name)
    metadata = ObjectMeta(name=name, owner_references=(pool.owner,))
    spec = ResourceSliceSpec(
        driver=pool.driver,
        node_name=pool.node,
        pool=ResourcePool(
            name=pool.node,
            generation=max((slice_.spec.pool.generation for slice_ in by_name.values()), default=1),
            resource_slice_count=len(pool.slices),
        ),
        devices=content.devices,
        shared_counters=content.shared_counters,
    )
    draft = ResourceSlice(metadata=metadata, spec=spec)
    return _with_server_set(draft, found) if found else draft


def _with_server_set(draft: ResourceSlice, found: ResourceSlice) -> ResourceSlice:
    metadata = msgspec.structs.replace(
        draft.metadata, uid=found.metadata.uid, resource_version=found.metadata.resource_version
    )
    devices_before = {device.name: device for device in found.spec.devices}
    spec = msgspec.structs.replace(
        draft.spec,
        devices=tuple(_with_times(device, devices_before.get(device.name)) for device in draft.spec.devices),
    )
    return msgspec.structs.replace(draft, metadata=metadata, spec=spec)


def _with_times(device: Device, before: Device | None) -> Device:
    """The device with the times that the server gave its taints; else each write would start them anew."""
    if before is None or not device.taints:
        return device
    times = {_taint_key(taint): taint.time_added for taint in before.taints}
    taints = tuple(
        msgspec.structs.replace(taint, time_added=taint.time_added or times.get(_taint_key(taint)))
        for taint in device.taints
    )
    return msgspec.structs.replace(device, taints=taints)


def _taint_key(taint: DeviceTaint) -> tuple[str, str, str]:
    return taint.key, taint.value, taint.effect


def _is_published(draft: ResourceSlice, found: ResourceSlice | None) -> bool:
    if found is None or found.metadata.owner_references != draft.metadata.owner_references:
        return False
    return _same(to_json(draft.spec), to_json(found.spec))


def _with_generation(draft: ResourceSlice, generation: int) -> ResourceSlice:
    pool = msgspec.structs.replace(draft.spec.pool, generation=generation)
    return msgspec.structs.replace(draft, spec=msgspec.structs.replace(draft.spec, pool=pool))


def _same(one: object, other: object) -> bool:
    return not any(_lost(one, other, "")) and not any(_lost(other, one, ""))


def _lost(sent: object, received: object, path: str) -> Iterator[str]:
    """Paths of what is in `sent` and not, or not equal, in `received`."""
    if isinstance(sent, dict) and isinstance(received, dict):
        for key, value in sent.items():
            yield from _lost(value, received.get(key), f"{path}.{key}")
    elif isinstance(sent, tuple) and isinstance(received, tuple) and len(sent) == len(received):
        for one, other in zip(sent, received, strict=True):
            yield from _lost(one, other, path)
    elif not _equal_leaves(sent, received):
        yield path


def _equal_leaves(one: object, other: object) -> bool:
    if one == other:
        return True
    try:
        return isinstance(one, str) and isinstance(other, str) and parse_quantity(one) == parse_quantity(other)
    except InvalidQuantityError:
        return False
