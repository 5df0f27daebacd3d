"""What controllers act with: the store to read, and writes that meet the API server's own checks. Pure.

Whoever calls holds the lock of the store. Creating goes through defaults, validation and quota as a client's request
does; status writes and deletions go to the store and what follows from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import msgspec

from simulator import kinds
from simulator.api import garbage
from simulator.api.calls import Call, Place
from simulator.api.server import ApiServer
from simulator.api.writing import Writer
from simulator.kinds import Kind
from simulator.store import Object, Store

SCHEDULER: Final = "default-scheduler"


@dataclass(frozen=True, slots=True)
class Told:
    """What an event says."""

    reporter: str
    reason: str
    message: str
    warning: bool = True


class Hands:
    """One controller's way to the objects; `name` stands in what it writes as the field manager."""

    def __init__(self, server: ApiServer, name: str = "simulator") -> None:
        self._server = server
        self._name = name

    @property
    def store(self) -> Store:
        """The objects, for reading."""
        return self._server.store

    @property
    def now(self) -> str:
        """The present, as objects carry it."""
        return self._server.stamp().now

    def fresh_uid(self) -> str:
        """A uid that nothing has."""
        return self._server.stamp().uid

    def create(self, kind: Kind, given: Object) -> Object:
        """The object made from it; ApiError or StoreError in the API server's words where it is refused."""
        call = Call(method="POST", path="", headers=(("user-agent", self._name),), body=msgspec.json.encode(given))
        place = Place(kind, given["metadata"].get("namespace", ""), "", "")
        return Writer(self.store, self._server.schema, call, place, self._server.stamp()).create()[0]

    def replace(self, kind: Kind, given: Object) -> Object:
        """Write all but the status, and do what follows where its last finalizer went."""
        before = self.store.get(kind, given["metadata"]["name"], given["metadata"].get("namespace", ""))
        stored = self.store.replace(kind, given)
        return garbage.after_write(self.store, before, stored, self._server.stamp())

    def set_status(self, kind: Kind, given: Object, fields: Mapping[str, Any]) -> Object:
        """Write these fields of the status; one that is None goes."""
        status = {key: value for key, value in (given.get("status", {}) | fields).items() if value is not None}
        return self.store.replace(kind, given | {"status": status}, subresource="status")

    def delete(self, target: Object, *, at_once: bool = False) -> None:
        """Delete it with what it owns, as a client does; a pod on a node ends when its kubelet deletes it at once."""
        grace = 0 if at_once else garbage.grace_of(target)
        garbage.delete(self.store, target, self._server.stamp(), None, grace)

    def tell(self, about: Object, told: Told) -> None:
        """An event about the object; said again, the same event counts on."""
        meta = about["metadata"]
        namespace = meta.get("namespace", "default")
        mark = sha256(f"{meta['uid']}/{told.reason}/{told.message}".encode()).hexdigest()[:16]
        name, now = f"{meta['name']}.{mark}", self.now
        found = self.store.find(kinds.EVENT, name, namespace)
        if found is not None:
            self.store.replace(kinds.EVENT, found | {"count": found["count"] + 1, "lastTimestamp": now})
            return
        event = {"metadata": {"name": name, "namespace": namespace}, "involvedObject": _reference(about)}
        self.store.create(kinds.EVENT, event | _words(told, now), self._server.stamp())

    def forget_events(self, before: str) -> None:
        """Drop events last told of before that time."""
        for event in self.store.all(kinds.EVENT):
            if event.get("lastTimestamp", event["metadata"]["creationTimestamp"]) < before:
                self.delete(event)


def _reference(about: Object) -> Object:
    meta = about["metadata"]
    place = {"namespace": meta["namespace"]} if "namespace" in meta else {}
    identity = {key: meta[key] for key in ("name", "uid", "resourceVersion")}
    return {"apiVersion": about["apiVersion"], "kind": about["kind"], **place, **identity}


def _words(told: Told, now: str) -> Object:
    return {
        "type": "Warning" if told.warning else "Normal",
        "reason": told.reason,
        "message": told.message,
        "source": {"component": told.reporter},
        "reportingComponent": told.reporter,
        "reportingInstance": "",
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }


def controller_of(meta: Object) -> str:
    """The uid of the object's managing owner, empty where it has none."""
    return next((owner["uid"] for owner in meta.get("ownerReferences", ()) if owner.get("controller")), "")


def owned_by(owner: Object) -> list[Object]:
    """The ownerReferences of what this object manages."""
    identity = {key: owner["metadata"][key] for key in ("name", "uid")}
    return [{"apiVersion": owner["apiVersion"], "kind": owner["kind"], **identity, "controller": True}]


def is_over(pod: Object) -> bool:
    """Whether the pod ran and will not run again."""
    return pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}


def is_going(stored: Object) -> bool:
    """Whether it is being deleted."""
    return "deletionTimestamp" in stored["metadata"]


def with_condition(conditions: list[Object], new: Object) -> list[Object]:
    """The conditions with this one in place of one of its type, whose time stays while its status does."""
    before = next((each for each in conditions if each["type"] == new["type"]), None)
    if before is not None and before["status"] == new["status"]:
        new = new | {"lastTransitionTime": before["lastTransitionTime"]}
    return [*(each for each in conditions if each["type"] != new["type"]), new]
