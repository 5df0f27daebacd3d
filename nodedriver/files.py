"""Files that others read while we write: replaced whole and durably, or removed; and read again only once replaced.

The text is written beside its place, under a name that no container runtime reads as a CDI spec and that the next write
takes over, so a writer that dies leaves the old file or the new one and nothing that grows.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from pathlib import Path

_USUAL_MODE = 0o666  # less the process's umask (open(2))


def write_atomically(path: Path, content: bytes, *, mode: int | None = None) -> None:
    """Replace the file by this content, which is on the disk when this returns. One writer per path at a time.

    `mode` are its permissions, where they are to be others than usual.
    """
    folder, aside = _beside(path)
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _USUAL_MODE)
    try:
        if mode is not None:
            os.fchmod(descriptor, mode)
        _write_all(descriptor, content)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(aside, path)  # noqa: PTH105 - Path takes longer, and each prepare writes three files
    _sync_folder(folder)


def remove_if_present(path: Path) -> None:
    """Remove the file, durably; one that is absent is fine."""
    folder, aside = _beside(path)
    _unlink(aside)
    if _unlink(path):
        _sync_folder(folder)


class KeptFile[T]:
    """What a file says that is only ever replaced whole: decoded once for each file that comes in its place.

    The file is held open meanwhile, so that no other one gets its inode number. Threads may read at the same time.
    """

    def __init__(self, path: Path, decode: Callable[[bytes], T]) -> None:
        """`decode` may raise what it likes: nothing is kept then."""
        self._path = str(path)
        self._decode = decode
        self._kept: _Open[T] | None = None

    def read(self) -> T:
        """What it says now. OSError where it can't be read, and what `decode` raises."""
        kept = self._kept
        if kept is None or kept.stamp != _stamp(os.stat(self._path)):  # noqa: PTH116 - Path takes twice as long
            self._kept = kept = _Open(os.open(self._path, os.O_RDONLY), self._decode)
        return kept.content


class _Open[T]:
    """One file, as long as somebody keeps it."""

    def __init__(self, descriptor: int, decode: Callable[[bytes], T]) -> None:
        weakref.finalize(self, os.close, descriptor)
        found = os.fstat(descriptor)
        self.stamp = _stamp(found)
        self.content = decode(os.pread(descriptor, found.st_size, 0))


def _stamp(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_ino, found.st_size, found.st_mtime_ns


def _write_all(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def _beside(path: Path) -> tuple[str, str]:
    """The file's folder, and where its next text is written."""
    folder, name = os.path.split(path)
    return folder, f"{folder}/.{name}.next"


def _unlink(path: Path | str) -> bool:
    """Whether there was such a file."""
    try:
        os.unlink(path)  # noqa: PTH108 - as above
    except FileNotFoundError:
        return False
    return True


def _sync_folder(folder: str) -> None:
    """A rename lasts only when its folder is synced too (rename(2), fsync(2))."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
