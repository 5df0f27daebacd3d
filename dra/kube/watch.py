"""A line of a watch to an event, and the version to go on from. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import msgspec

from dra.kube.responses import Header, parse_refusal
from dra.objects.meta import ApiStruct, decode

INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class _ManagedFields(ApiStruct, frozen=True, kw_only=True):
    time: str = ""


class _WrittenMeta(ApiStruct, frozen=True, kw_only=True):
    creation_timestamp: str = ""
    managed_fields: tuple[_ManagedFields, ...] = ()


class _Written(ApiStruct, frozen=True, kw_only=True):
    metadata: _WrittenMeta


class _RawEvent(ApiStruct, frozen=True, kw_only=True):
    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
    object: msgspec.Raw


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One change. `ends_list` marks the bookmark after the initial events; a bookmark carries no object."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    object: bytes
    resource_version: str
    ends_list: bool


def parse_event(line: bytes) -> WatchEvent:
    """Read one line. An ERROR event is raised: GoneError asks for a new list, the others mean what their code says."""
    raw = decode(line, _RawEvent)
    if raw.type == "ERROR":
        raise parse_refusal(500, bytes(raw.object))
    metadata = decode(raw.object, Header).metadata
    ends_list = raw.type == "BOOKMARK" and metadata.annotations.get(INITIAL_EVENTS_END) == "true"
    return WatchEvent(raw.type, bytes(raw.object), metadata.resource_version, ends_list)


def written_at(event: WatchEvent) -> datetime | None:
    """When the API server wrote this state of the object, by its own clock in whole seconds, as far as the object says.

    That is the newest time of its managed fields, else its creation. Some writes leave no such trace (a pod's binding,
    a deletion with its grace period), and then the time is one of an earlier write; None where there is none.
    """
    if event.type not in ("ADDED", "MODIFIED"):
        return None
    metadata = decode(event.object, _Written).metadata
    latest = max((each.time for each in metadata.managed_fields), default="") or metadata.creation_timestamp
    try:
        return datetime.fromisoformat(latest)
    except ValueError:
        return None
