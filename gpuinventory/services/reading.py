"""Bytes as received to a struct, without letting one odd object stop a whole stream."""

from __future__ import annotations

import msgspec
import structlog

from dra.errors import InvalidObjectError
from dra.objects import decode
from gpuinventory.services.trimming import kept

_log = structlog.get_logger(__name__)


def read_object[S: msgspec.Struct](body: bytes, kind: type[S]) -> S | None:
    """The object, or None where it can't be read: it is then kept as bytes, shown nowhere, and told in the log."""
    try:
        return decode(body, kind)
    except InvalidObjectError as error:
        _log.warning("object not readable", kind=kind.__name__, error=str(error))
        return None


def keep_of(kind: str, body: bytes) -> bytes | None:
    """The part of the object that is stored, None where it is of no concern or can't be read, which the log tells."""
    try:
        return kept(kind, body)
    except InvalidObjectError as error:
        _log.warning("object not readable", kind=kind, error=str(error))
        return None
