"""The files of a wish as one ZIP. The same files give the same bytes, on every machine: no times, no compression."""

from __future__ import annotations

from io import BytesIO
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from claims.manifests import Files

_EARLIEST = (1980, 1, 1, 0, 0, 0)  # the first moment that a ZIP can tell
_UNIX = 3  # the system whose file modes the archive carries, whichever system made it
_READABLE = 0o100644


def archive(files: Files) -> bytes:
    """The archive's bytes; its entries stand in the order of the tabs."""
    stream = BytesIO()
    with ZipFile(stream, "w", ZIP_STORED) as archived:
        for file in files.all:
            entry = ZipInfo(file.name, _EARLIEST)
            entry.create_system, entry.external_attr = _UNIX, _READABLE << 16
            archived.writestr(entry, file.content)
    return stream.getvalue()
