"""The API server's answer to a value: an object, a page of a list, or an error by meaning. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from dra.kube.errors import RefusedError, refused
from dra.objects.meta import ApiStruct, ObjectMeta, decode

_SENTENCE = 2000  # foreign text is cut before it reaches a page or a log


class Status(ApiStruct, frozen=True, kw_only=True):
    """A metav1.Status: why the server said no."""

    code: int = 0
    reason: str = ""
    message: str = ""


class ListMeta(ApiStruct, frozen=True, kw_only=True):
    """Where a list ends and how to go on."""

    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class _RawList(ApiStruct, frozen=True, kw_only=True):
    metadata: ListMeta
    items: tuple[msgspec.Raw, ...] | None = None  # Go clients write an empty list as null


class Header(ApiStruct, frozen=True, kw_only=True):
    """An object's metadata, without the cost of reading the rest."""

    metadata: ObjectMeta


@dataclass(frozen=True, slots=True)
class Page:
    """One page: each object's bytes as received, and the token of the next page ("" at the end)."""

    items: tuple[bytes, ...]
    resource_version: str
    continue_token: str


def parse_page(body: bytes) -> Page:
    """Read a list without reading its objects."""
    raw = decode(body, _RawList)
    items = tuple(bytes(item) for item in raw.items or ())
    return Page(items, raw.metadata.resource_version, raw.metadata.continue_)


def parse_refusal(code: int, body: bytes) -> RefusedError:
    """The error in a failed answer; a body that is no Status (a proxy's page) is quoted, cut to a readable length."""
    try:
        status = msgspec.json.decode(body, type=Status)
    except msgspec.MsgspecError:
        status = Status(message=body.decode(errors="replace").strip())
    message = status.message or f"the API server answered {code} without a reason"
    return refused(code=status.code or code, reason=status.reason, message=message[:_SENTENCE])
