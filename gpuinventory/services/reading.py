"""Bytes as received to a struct, without letting one odd object stop a whole stream."""

from __future__ import annotations

import msgspec
import structlog

from dra.errors import InvalidObjectError
from dra.objects import decode

_log = structlog.get_logger(__name__)


def read_object[S: msgspec.Struct](body: bytes, kind: type[S]) -> S | None:
    """The object, or None where it can't be read: it is then kept as bytes, shown nowhere, and told in the log."""
    try:
        return decode(body, kind)
    except InvalidObjectError as error:
        _log.warning("object not readable", kind=kind.__name__, error=str(error))
        return None
