"""What is kept of an object before it is compared and stored. Pure.

Kinds that change all the time without news (heartbeats, managed fields) are cut to what somebody reads; all others are
kept as received. Two objects whose kept part is equal are the same to the read model.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from dra.errors import InvalidObjectError
from dra.objects import JsonObject

_METADATA = (
    "name", "namespace", "uid", "labels", "ownerReferences", "creationTimestamp", "deletionTimestamp",
)  # fmt: skip
_POD_SPEC = (
    "nodeName", "resourceClaims", "schedulingGates", "nodeSelector", "affinity", "tolerations", "priorityClassName",
    "priority", "schedulerName", "overhead", "resources",
)  # fmt: skip
_CONTAINER = ("name", "resources", "restartPolicy")
_POD_STATUS = (
    "phase", "reason", "message", "startTime", "resourceClaimStatuses", "extendedResourceClaimStatus", "resources",
    "allocatedResources",
)  # fmt: skip
_CONTAINER_STATUSES = ("initContainerStatuses", "containerStatuses")
_GIVEN = ("name", "allocatedResources", "resources")
_NODE_STATUS = ("allocatable", "declaredFeatures")
_CONDITION = ("type", "status", "reason", "message", "lastTransitionTime")
_EVENT = (
    "involvedObject",
    "reason",
    "message",
    "type",
    "count",
    "firstTimestamp",
    "lastTimestamp",
    "eventTime",
    "series",
)
_TOLD_ABOUT = frozenset({"Pod", "ResourceClaim"})


def is_trimmed(kind: str) -> bool:
    """Whether objects of this kind are cut before they are compared."""
    return kind in _TRIMMED


def kept(kind: str, body: bytes) -> bytes | None:
    """The part of the object that is stored; None where it is of no concern (events of other kinds)."""
    trim = _TRIMMED.get(kind)
    if trim is None:
        return body
    try:
        content = msgspec.json.decode(body, type=dict)
        found = trim(content)
    except (msgspec.MsgspecError, RecursionError, AttributeError, TypeError) as error:
        raise InvalidObjectError(f"{kind}: not the form of such an object: {error}") from error
    return None if found is None else msgspec.json.encode(found)


def _node(content: JsonObject) -> JsonObject:
    status = content.get("status") or {}
    return {
        "metadata": _metadata(content),
        "spec": content.get("spec") or {},
        "status": _some(status, _NODE_STATUS) | {"conditions": _conditions(status)},
    }


def _pod(content: JsonObject) -> JsonObject:
    spec, status = content.get("spec") or {}, content.get("status") or {}
    containers = {
        key: [_some(each, _CONTAINER) for each in spec.get(key) or ()] for key in ("initContainers", "containers")
    }
    return {
        "metadata": _metadata(content),
        "spec": _some(spec, _POD_SPEC) | containers,
        "status": _some(status, _POD_STATUS) | {"conditions": _conditions(status)} | _given(status),
    }


def _given(status: JsonObject) -> JsonObject:
    """What containers were given, which counts while a pod is resized; without their states and restarts."""
    kept = {key: [_some(each, _GIVEN) for each in status.get(key) or ()] for key in _CONTAINER_STATUSES}
    return {key: found for key, each in kept.items() if (found := [one for one in each if len(one) > 1])}


def _event(content: JsonObject) -> JsonObject | None:
    if (content.get("involvedObject") or {}).get("kind") not in _TOLD_ABOUT:
        return None
    return {"metadata": _metadata(content)} | _some(content, _EVENT)


def _namespace(content: JsonObject) -> JsonObject:
    return {"metadata": _metadata(content)}


def _without_managers(content: JsonObject) -> JsonObject:
    return content | {"metadata": _metadata(content)}


def _metadata(content: JsonObject) -> JsonObject:
    """Without annotations: agents write heartbeats into them, and nobody here reads them."""
    return _some(content.get("metadata") or {}, _METADATA)


def _conditions(status: JsonObject) -> list[JsonObject]:
    """Without the times of heartbeats and probes."""
    return [_some(each, _CONDITION) for each in status.get("conditions") or ()]


def _some(content: JsonObject, keys: tuple[str, ...]) -> JsonObject:
    return {key: content[key] for key in keys if content.get(key) is not None}


_TRIMMED: dict[str, Callable[[JsonObject], JsonObject | None]] = {
    "Node": _node,
    "Pod": _pod,
    "Event": _event,
    "Namespace": _namespace,
    "ResourceQuota": _without_managers,
    "PriorityClass": _without_managers,
}
