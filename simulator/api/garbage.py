"""What follows from a deletion: owned objects go too, quotas count anew. Namespaces are not deleted here.

A real cluster has controllers for this, a moment later; here it is done within the write that causes it.
"""

from __future__ import annotations

from typing import Final

from simulator import kinds
from simulator.api.admission import recounted
from simulator.kinds import KINDS, of_object
from simulator.store import ConflictError, Object, Preconditions, Stamp, Store

_MARK: Final = "deletionTimestamp"
_POD_GRACE: Final = 30  # terminationGracePeriodSeconds of a pod that names none


def delete(
    store: Store, target: Object, stamp: Stamp, conditions: Preconditions | None = None, grace_seconds: int = 0
) -> Object:
    """Delete one object and do what follows; gives its last state."""
    kind = of_object(target["apiVersion"], target["kind"])
    if kind is None:
        raise ConflictError(f"{target['kind']} is not served")
    key = _key(target)
    last = store.delete(kind, key, stamp, conditions, grace_seconds)
    if store.find(kind, key[1], key[0]) is None:
        _after_deletion(store, last, stamp)
    return last


def grace_of(stored: Object) -> int:
    """How long an object may take to end, in seconds: a pod on a node until its kubelet is done with it, others not."""
    if stored["kind"] != kinds.POD.kind or not stored.get("spec", {}).get("nodeName"):
        return 0
    if stored.get("status", {}).get("phase") in {"Succeeded", "Failed"}:
        return 0
    return int(stored["spec"].get("terminationGracePeriodSeconds", _POD_GRACE))


def after_write(store: Store, before: Object, stored: Object, stamp: Stamp) -> Object:
    """What follows from a replace: a quota counts anew; an object whose last finalizer went is gone."""
    kind = of_object(stored["apiVersion"], stored["kind"])
    if kind == kinds.RESOURCE_QUOTA and before.get("spec") != stored.get("spec"):
        return recount(store, stored)
    if kind is not None and _MARK in stored["metadata"] and store.find(kind, *reversed(_key(stored))) is None:
        _after_deletion(store, stored, stamp)
    return stored


def recount(store: Store, quota: Object) -> Object:
    """Write the quota's status as its controller does."""
    return store.replace(kinds.RESOURCE_QUOTA, quota | {"status": recounted(store, quota)}, subresource="status")


def _after_deletion(store: Store, gone: Object, stamp: Stamp) -> None:
    for dependent in _dependents(store, gone["metadata"]["uid"]):
        delete(store, dependent, stamp, None, grace_of(dependent))
    if namespace := gone["metadata"].get("namespace", ""):
        for quota in store.all(kinds.RESOURCE_QUOTA, namespace):
            recount(store, quota)


def _dependents(store: Store, uid: str) -> list[Object]:
    """Objects whose only owner left is that one."""
    found = []
    for kind in KINDS:
        for stored in store.all(kind):
            owners = [owner["uid"] for owner in stored["metadata"].get("ownerReferences", ())]
            if owners == [uid]:
                found.append(stored)
    return found


def _key(stored: Object) -> tuple[str, str]:
    return (stored["metadata"].get("namespace", ""), stored["metadata"]["name"])
