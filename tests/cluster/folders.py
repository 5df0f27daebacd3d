"""The data folders of clusters: each has an owner, and one whose owner is dead is stale.

All lie below one short base, since a unix socket's path ends at 107 bytes (unix(7)) and a plugin's socket lies deep.
This module makes, lists and removes folders and mounts; it stops no process.
"""

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.processes import ProcessId

# Not tempfile's folder: TMPDIR may be long, and a next run must look at the same place.
BASE = Path("/tmp") / f"portico-{os.getuid()}"
KEPT_LOGS = 5


def create(base: Path = BASE) -> Path:
    """A fresh folder that belongs to this process."""
    with lock(base):
        folder = Path(tempfile.mkdtemp(prefix="c-", dir=base))
        (folder / "log").mkdir()
        (folder / "owner.stat").write_text(Path("/proc/self/stat").read_text())
    return folder


def stale(base: Path = BASE) -> list[Path]:
    """Folders whose owner is gone; to be asked and acted on under `lock`."""
    return [folder for folder in sorted(base.glob("c-*")) if not _owned(folder)]


def _owned(folder: Path) -> bool:
    record = folder / "owner.stat"
    owner = ProcessId.read(record) if record.exists() else None
    return owner is not None and owner.alive()


@contextmanager
def lock(base: Path = BASE) -> Iterator[None]:
    """Only one run at a time makes or sweeps folders."""
    base.mkdir(mode=0o700, exist_ok=True)
    if base.is_symlink() or base.stat().st_uid != os.getuid():
        raise PermissionError(f"{base} belongs to somebody else: remove it, or run as its owner")
    with (base / "lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def mounts_below(folder: Path) -> list[Path]:
    """Mount points under a folder, the deepest first, so that this is the order to unmount in."""
    points = [_unescaped(line.split()[4]) for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return sorted((Path(point) for point in points if point.startswith(f"{folder}/")), reverse=True)


def _unescaped(text: str) -> str:
    # proc(5): space, tab, newline and backslash stand as three octal digits.
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def unmount_below(folder: Path) -> None:
    # Lazily, since a process that was just killed may hold a mount for some milliseconds more.
    for point in mounts_below(folder):
        subprocess.run(["umount", "-l", point], check=True, capture_output=True)


def remove(folder: Path) -> None:
    """Unmount what lies below and remove the folder; never deletes through a mount."""
    unmount_below(folder)
    if left := mounts_below(folder):
        raise OSError(f"{left[0]} is still mounted, so {folder} was not removed")
    shutil.rmtree(folder)


def keep_logs(folder: Path) -> Path:
    """Copy the logs of a cluster that is about to go to `logs` beside its folder; the newest few copies stay."""
    kept = folder.parent / "logs" / folder.name
    shutil.copytree(folder / "log", kept)
    for old in sorted(kept.parent.iterdir(), key=lambda path: path.stat().st_mtime)[:-KEPT_LOGS]:
        shutil.rmtree(old)
    return kept
