"""Versioned objects in memory: one counter of resourceVersions, a history for watches, finalizers, preconditions.

Pure: times and uids are handed in, nobody waits here. Objects are plain JSON values and never changed once stored;
whoever reads one may keep it and must not write to it. Knows no validation, no rights, no HTTP.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final, Literal

from dra.errors import DraError
from simulator.kinds import Kind

type Object = dict[str, Any]
type EventType = Literal["ADDED", "MODIFIED", "DELETED"]

HISTORY: Final = 10_000  # changes that a watch can still start from


class StoreError(DraError):
    """A write or read that the store refuses; `reason` is the word of `metav1.StatusReason`, `name` the object's."""

    reason = "InternalError"

    def __init__(self, message: str, *, name: str = "") -> None:
        super().__init__(message)
        self.name = name


class NotFoundError(StoreError):
    """No such object."""

    reason = "NotFound"


class AlreadyExistsError(StoreError):
    """An object of that name is there."""

    reason = "AlreadyExists"


class ConflictError(StoreError):
    """The object is not the one, or not the version, that the writer knew."""

    reason = "Conflict"


class ExpiredError(StoreError):
    """The history does not reach back that far."""

    reason = "Expired"


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a write needs from outside: the time (RFC 3339, seconds, in UTC) and a fresh uid."""

    now: str
    uid: str


@dataclass(frozen=True, slots=True)
class Preconditions:
    """Which object a delete is meant for; empty fields ask nothing."""

    uid: str = ""
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """One step of the history. `before` is None for a new object; `after` of a deletion is the last state."""

    version: int
    type: EventType
    kind: Kind
    before: Object | None
    after: Object


class Store:
    """All objects. Not safe between threads: its owner serialises the calls."""

    def __init__(self, *, history: int = HISTORY) -> None:
        self._objects: dict[Kind, dict[tuple[str, str], Object]] = {}
        self._changes: deque[Change] = deque(maxlen=history)
        self._listeners: list[Callable[[Change], None]] = []
        self._version = 1

    @property
    def version(self) -> int:
        """The newest resourceVersion."""
        return self._version

    def listen(self, listener: Callable[[Change], None]) -> None:
        """Call `listener` after each change, in the writer's thread; it must be quick and must not write."""
        self._listeners.append(listener)

    def get(self, kind: Kind, name: str, namespace: str = "") -> Object:
        """The object, or NotFoundError in the API server's words."""
        found = self._objects.get(kind, {}).get((namespace, name))
        if found is None:
            raise NotFoundError(f'{kind.qualified} "{name}" not found', name=name)
        return found

    def find(self, kind: Kind, name: str, namespace: str = "") -> Object | None:
        """The object or None."""
        return self._objects.get(kind, {}).get((namespace, name))

    def all(self, kind: Kind, namespace: str = "") -> list[Object]:
        """All objects of the kind (in one namespace where given), ordered by namespace and name."""
        objects = self._objects.get(kind, {})
        return [objects[key] for key in sorted(objects) if not namespace or key[0] == namespace]

    def changes_since(self, version: int, kind: Kind) -> list[Change]:
        """The changes of the kind after `version`, oldest first; ExpiredError where some are forgotten."""
        if version < self._version and (not self._changes or version < self._changes[0].version - 1):
            oldest = self._changes[0].version - 1 if self._changes else self._version
            raise ExpiredError(f"too old resource version: {version} ({oldest})")
        newer = list(takewhile(lambda change: change.version > version, reversed(self._changes)))
        return [change for change in reversed(newer) if change.kind == kind]

    def create(self, kind: Kind, given: Object, stamp: Stamp) -> Object:
        """Store a new object under its name with uid, creation time, generation; AlreadyExistsError where taken."""
        made = made_new(kind, given, stamp)
        meta = made["metadata"]
        key = (meta.get("namespace", ""), meta["name"])
        if key in self._objects.get(kind, {}):
            raise AlreadyExistsError(f'{kind.qualified} "{meta["name"]}" already exists', name=meta["name"])
        return self._keep(kind, key, "ADDED", made)

    def replace(self, kind: Kind, given: Object, *, subresource: str = "") -> Object:
        """Write the object, or with `subresource="status"` its status alone. An equal object is no change.

        ConflictError for another resourceVersion or uid than the stored one's, where the given object names any.
        The last finalizer taken from an object that is being deleted removes it.
        """
        meta = given["metadata"]
        key = (meta.get("namespace", ""), meta["name"])
        before = self.get(kind, key[1], key[0])
        after = changed(kind, before, given, subresource)
        if after == before:
            return before
        if _may_go(after["metadata"]):
            return self._drop(kind, key, after)
        return self._keep(kind, key, "MODIFIED", after)

    def delete(
        self,
        kind: Kind,
        key: tuple[str, str],
        stamp: Stamp,
        preconditions: Preconditions | None = None,
        grace_seconds: int = 0,
    ) -> Object:
        """Remove the object at (namespace, name), or mark it while finalizers hold it; gives its last state.

        With `grace_seconds` it is marked too and stays until it is deleted with none, as a pod that a kubelet runs.
        """
        before = self.get(kind, key[1], key[0])
        _hold_deletion(kind, before, preconditions or Preconditions())
        meta = before["metadata"]
        if "deletionTimestamp" in meta:
            grace_seconds = min(grace_seconds, meta["deletionGracePeriodSeconds"])
        if not meta.get("finalizers") and not grace_seconds:
            return self._drop(kind, key, before)
        marked = {"deletionTimestamp": stamp.now} | meta | {"deletionGracePeriodSeconds": grace_seconds}
        if marked == meta:
            return before
        if kind.generation and "deletionTimestamp" not in meta:
            marked["generation"] = meta.get("generation", 0) + 1
        return self._keep(kind, key, "MODIFIED", before | {"metadata": marked})

    def _keep(self, kind: Kind, key: tuple[str, str], type_: EventType, given: Object) -> Object:
        kept = self._versioned(given)
        objects = self._objects.setdefault(kind, {})
        before = objects.get(key)
        objects[key] = kept
        self._remember(Change(self._version, type_, kind, before, kept))
        return kept

    def _drop(self, kind: Kind, key: tuple[str, str], last: Object) -> Object:
        before = self._objects[kind].pop(key)
        gone = self._versioned(last)
        self._remember(Change(self._version, "DELETED", kind, before, gone))
        return gone

    def _versioned(self, given: Object) -> Object:
        self._version += 1
        return given | {"metadata": given["metadata"] | {"resourceVersion": str(self._version)}}

    def _remember(self, change: Change) -> None:
        self._changes.append(change)
        for listener in self._listeners:
            listener(change)


def _may_go(meta: Object) -> bool:
    return "deletionTimestamp" in meta and not meta.get("finalizers") and not meta["deletionGracePeriodSeconds"]


def made_new(kind: Kind, given: Object, stamp: Stamp) -> Object:
    """The object as it would be created: kind, uid and time filled in, without a resourceVersion of its own."""
    meta = {key: value for key, value in given["metadata"].items() if key not in _SERVERS_OWN}
    meta |= {"uid": stamp.uid, "creationTimestamp": stamp.now}
    if kind.generation:
        meta["generation"] = 1
    return {"apiVersion": kind.api_version, "kind": kind.kind, **given, "metadata": meta}


def changed(kind: Kind, before: Object, given: Object, subresource: str = "") -> Object:
    """What `before` becomes when `given` is written over it: the server's own fields stay, generation grows with spec.

    Without a subresource the status stays (where it is one); with "status" all but status and managers stay.
    """
    meta = given["metadata"]
    _hold_preconditions(kind, before, Preconditions(meta.get("uid", ""), meta.get("resourceVersion", "")))
    own = {key: before["metadata"][key] for key in _SERVERS_OWN if key in before["metadata"]}
    if subresource == "status":
        managed = {"managedFields": meta["managedFields"]} if "managedFields" in meta else {}
        after = _with(before, "status", given.get("status"))
        return after | {"metadata": before["metadata"] | managed}
    after = {"apiVersion": kind.api_version, "kind": kind.kind, **given}
    if kind.status:
        after = _with(after, "status", before.get("status"))
    after["metadata"] = {key: value for key, value in meta.items() if key not in _SERVERS_OWN} | own
    if kind.generation and _content(after) != _content(before):
        after["metadata"]["generation"] = before["metadata"].get("generation", 0) + 1
    return after


_SERVERS_OWN: Final = (
    "uid", "creationTimestamp", "resourceVersion", "generation", "deletionTimestamp", "deletionGracePeriodSeconds",
    "selfLink",
)  # fmt: skip


def _with(given: Object, field: str, value: Any) -> Object:
    rest = {key: each for key, each in given.items() if key != field}
    return rest if value is None else rest | {field: value}


def _content(stored: Object) -> Object:
    """What a generation counts: everything but metadata and status."""
    return {key: value for key, value in stored.items() if key not in {"metadata", "status"}}


def _hold_preconditions(kind: Kind, stored: Object, asked: Preconditions) -> None:
    """ConflictError in the API server's words (apiserver/pkg/registry/generic/registry/store.go, api/storage)."""
    meta = stored["metadata"]
    name = meta["name"]
    start = f'Operation cannot be fulfilled on {kind.qualified} "{name}": '
    if asked.uid and asked.uid != meta["uid"]:
        raise ConflictError(
            f"{start}Precondition failed: UID in precondition: {asked.uid}, UID in object meta: {meta['uid']}"
        )
    if asked.resource_version and asked.resource_version != meta["resourceVersion"]:
        raise ConflictError(
            f"{start}the object has been modified; please apply your changes to the latest version and try again"
        )


def _hold_deletion(kind: Kind, stored: Object, asked: Preconditions) -> None:
    """ConflictError as `_hold_preconditions`, in the words of apiserver/pkg/registry/rest/delete.go."""
    meta = stored["metadata"]
    group = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    start = f'Operation cannot be fulfilled on {group} "{meta["name"]}": '
    if asked.uid and asked.uid != meta["uid"]:
        raise ConflictError(
            f"{start}the UID in the precondition ({asked.uid}) does not match the UID in record ({meta['uid']}). "
            "The object might have been deleted and then recreated"
        )
    if asked.resource_version and asked.resource_version != meta["resourceVersion"]:
        raise ConflictError(
            f"{start}the ResourceVersion in the precondition ({asked.resource_version}) does not match the "
            f"ResourceVersion in record ({meta['resourceVersion']}). The object might have been modified"
        )
