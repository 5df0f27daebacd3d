"""Polling: a page carries the version of what it shows, and a poll for that version is answered with nothing."""

from __future__ import annotations

from collections.abc import Iterable

from claims.models import GpuRequest
from gpuinventory.selectors import revision
from portal.http import SignedInRequest, wants_part

SINCE = "since"


def version_of(rows: Iterable[GpuRequest] = ()) -> str:
    """A text that changes with the read model and with each of these rows."""
    changes = [row.changed_at.timestamp() for row in rows]
    return f"{revision()}-{len(changes)}-{max(changes, default=0):.6f}"


def knows(request: SignedInRequest, version: str) -> bool:
    """Whether the page that polls shows this version already."""
    return wants_part(request) and request.GET.get(SINCE) == version
