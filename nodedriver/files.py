"""Files that others read while we write: replaced whole and durably, or removed.

The text is written beside its place, under a name that no container runtime reads as a CDI spec and that the next write
takes over, so a writer that dies leaves the old file or the new one and nothing that grows.
"""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(path: Path, content: bytes, *, mode: int | None = None) -> None:
    """Replace the file by this content, which is on the disk when this returns. One writer per path at a time.

    `mode` are its permissions, where they are to be others than usual.
    """
    aside = _aside(path)
    with aside.open("wb") as file:
        if mode is not None:
            os.fchmod(file.fileno(), mode)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)
    _sync_folder(path.parent)


def remove_if_present(path: Path) -> None:
    """Remove the file, durably; one that is absent is fine."""
    _aside(path).unlink(missing_ok=True)
    if path.exists():
        path.unlink(missing_ok=True)
        _sync_folder(path.parent)


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.next")


def _sync_folder(folder: Path) -> None:
    """A rename lasts only when its folder is synced too (rename(2), fsync(2))."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
