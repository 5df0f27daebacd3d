"""The fleet as allocation reads it, kept equal to the store change by change. Pure.

A change costs what `dra.allocation.Snapshot` says, never a reading of the whole store.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

import msgspec

from dra.allocation import Snapshot
from dra.objects import DeviceClass, DeviceTaintRule, Node, Pod, ResourceClaim, ResourceSlice
from dra.objects.meta import decode
from simulator import kinds
from simulator.kinds import Kind
from simulator.store import Change, Object, Store

_STRUCTS: Final[dict[Kind, type[msgspec.Struct]]] = {
    kinds.NODE: Node,
    kinds.RESOURCE_SLICE: ResourceSlice,
    kinds.DEVICE_CLASS: DeviceClass,
    kinds.RESOURCE_CLAIM: ResourceClaim,
    kinds.DEVICE_TAINT_RULE: DeviceTaintRule,
    kinds.POD: Pod,
}
_WITH: Final[dict[Kind, Callable[[Snapshot, Any], Snapshot]]] = {
    kinds.NODE: Snapshot.with_node,
    kinds.RESOURCE_SLICE: Snapshot.with_slice,
    kinds.DEVICE_CLASS: Snapshot.with_class,
    kinds.RESOURCE_CLAIM: Snapshot.with_claim,
    kinds.DEVICE_TAINT_RULE: Snapshot.with_taint_rule,
}
_WITHOUT: Final[dict[Kind, Callable[[Snapshot, str], Snapshot]]] = {
    kinds.NODE: Snapshot.without_node,
    kinds.RESOURCE_SLICE: Snapshot.without_slice,
    kinds.DEVICE_CLASS: Snapshot.without_class,
    kinds.DEVICE_TAINT_RULE: Snapshot.without_taint_rule,
}


class Fleet:
    """One store's fleet. `chances` counts the changes that may let a pod come to a node that could not before."""

    def __init__(self, store: Store) -> None:
        self._snapshot = Snapshot.build(nodes=(), slices=(), classes=())
        self._changes: deque[Change] = deque()
        self.chances = 0
        for kind, with_object in _WITH.items():
            for stored in store.all(kind):
                self._snapshot = with_object(self._snapshot, read(kind, stored))
        store.listen(self._hear)

    def snapshot(self) -> Snapshot:
        """The fleet now."""
        while self._changes:
            self._snapshot = _after(self._snapshot, self._changes.popleft())
        return self._snapshot

    def _hear(self, change: Change) -> None:
        if change.kind in _WITH:
            self._changes.append(change)
        self.chances += _helps(change)


def read(kind: Kind, stored: Object) -> Any:
    """The stored object as its struct."""
    return decode(msgspec.json.encode(stored), _STRUCTS[kind])


def _after(snapshot: Snapshot, change: Change) -> Snapshot:
    if change.type != "DELETED":
        return _WITH[change.kind](snapshot, read(change.kind, change.after))
    meta = change.after["metadata"]
    if change.kind == kinds.RESOURCE_CLAIM:
        return snapshot.without_claim(meta["namespace"], meta["name"])
    return _WITHOUT[change.kind](snapshot, meta["name"])


def _helps(change: Change) -> bool:
    """Whether it may help a waiting pod: anything of the fleet, and whatever gives something back."""
    if change.kind == kinds.POD:
        return change.type == "DELETED" or _phase(change.after) != _phase(change.before or {})
    if change.kind != kinds.RESOURCE_CLAIM:
        return change.kind in _WITH
    was_held = bool(change.before and change.before.get("status", {}).get("allocation"))
    return change.type != "MODIFIED" or (was_held and not change.after.get("status", {}).get("allocation"))


def _phase(pod: Object) -> str:
    return str(pod.get("status", {}).get("phase", ""))
