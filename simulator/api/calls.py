"""A request as a value, its path read, and the answers: a body, or a watch that goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from simulator.api.access import Attributes
from simulator.api.failures import ApiError
from simulator.kinds import Kind, served_at
from simulator.store import Change, Object

JSON: Final = "application/json"
_PARTS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One HTTP request. Header names are lower case; a name may stand there more than once."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    def header(self, name: str) -> str:
        """The first value of a header, empty where it is missing."""
        return next((value for key, value in self.headers if key == name), "")


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP response."""

    code: int
    body: bytes
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


def answer(content: Any, code: int = 200, warnings: Iterable[str] = ()) -> Answer:
    """A JSON response, each warning in a header of its own as the API server sends it."""
    told = tuple(("Warning", f'299 - "{text.replace(chr(34), chr(92) + chr(34))}"') for text in warnings)
    return Answer(code, msgspec.json.encode(content), JSON, told)


@dataclass(frozen=True, slots=True)
class Place:
    """What a path means: a kind, perhaps in a namespace, perhaps one object, perhaps a subresource of it."""

    kind: Kind
    namespace: str
    name: str
    subresource: str

    def attributes(self, verb: str) -> Attributes:
        """What rights are asked about it."""
        kind = self.kind
        return Attributes(
            verb=verb, group=kind.group, resource=kind.plural, subresource=self.subresource,
            namespace=self.namespace, name=self.name,
        )  # fmt: skip


def place_of(path: str) -> Place | None:
    """Read a path below /api or /apis; None where the simulator serves nothing."""
    steps = [unquote(step) for step in path.strip("/").split("/")]
    if steps[0] == "api" and len(steps) > _PARTS:
        group, version, rest = "", steps[1], steps[2:]
    elif steps[0] == "apis" and len(steps) > _PARTS + 1:
        group, version, rest = steps[1], steps[2], steps[3:]
    else:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > _PARTS and rest[2] not in {"status", "finalize"}:
        namespace, rest = rest[1], rest[2:]
    kind = served_at(group, version, rest[0])
    if kind is None or len(rest) > _PARTS + 1 or bool(namespace) > kind.namespaced:
        return None
    return _placed(kind, namespace, [*rest[1:], "", ""])


def _placed(kind: Kind, namespace: str, rest: list[str]) -> Place:
    if kind.kind == "Namespace":
        namespace = rest[0]  # rights on a namespace are asked for within it
    return Place(kind, namespace, rest[0], rest[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """A watch that was accepted: `first` are the lines that go out at once, `line_of` tells each later change."""

    kind: Kind
    first: tuple[bytes, ...]
    version: int
    matches: Callable[[Object], bool]
    bookmarks: bool
    seconds: float

    def line_of(self, change: Change) -> bytes | None:
        """The line for a change; None where the watch does not see it.

        An object that comes to match is ADDED, one that ceases to is DELETED, as the API server's cacher tells it.
        """
        now = change.type != "DELETED" and self.matches(change.after)
        before = change.before is not None and self.matches(change.before)
        if not now and not before:
            return None
        if not now:
            gone = change.before if change.before and change.type != "DELETED" else change.after
            meta = gone["metadata"] | {"resourceVersion": str(change.version)}
            return event("DELETED", gone | {"metadata": meta})
        return event("MODIFIED" if before else "ADDED", change.after)

    def bookmark(self, version: int) -> bytes:
        """The line that says how far the watch has come."""
        return bookmark(self.kind, version)


def event(type_: str, content: Any) -> bytes:
    """One line of a watch."""
    return msgspec.json.encode({"type": type_, "object": content}) + b"\n"


def bookmark(kind: Kind, version: int, annotations: Mapping[str, str] | None = None) -> bytes:
    """A BOOKMARK line."""
    meta = {"resourceVersion": str(version), "creationTimestamp": None}
    if annotations:
        meta |= {"annotations": dict(annotations)}  # type: ignore[dict-item]  # the one value that is no text
    return event("BOOKMARK", {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": meta})


def whole_number(query: Mapping[str, str], name: str) -> int:
    """A query parameter that is a number from zero; zero where missing, ApiError 400 for anything else."""
    text = query.get(name, "") or "0"
    if not text.isdecimal():
        raise ApiError("BadRequest", f'{name}: Invalid value: "{text}": must be a whole number from zero')
    return int(text)
