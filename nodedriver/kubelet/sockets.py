"""Unix sockets of the driver: ours are for root alone and go with us, those that dead drivers left are swept away."""

from __future__ import annotations

import socket
from pathlib import Path

import structlog

_log = structlog.get_logger()


def make_room(path: Path) -> None:
    """Make the folder, and remove what a dead driver left under that very name."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
    path.unlink(missing_ok=True)


type Identity = tuple[int, int]


def keep_for_root(path: Path) -> Identity:
    """Close the socket to other users, and return what it is: its name may become another driver's."""
    path.chmod(0o600)
    return _identity(path)


def remove_own(path: Path, own: Identity) -> None:
    """Remove the socket, unless a newer driver has put its own there."""
    try:
        if _identity(path) == own:
            path.unlink()
    except FileNotFoundError:
        _log.debug("socket was gone already", path=str(path))


def sweep(folder: Path, pattern: str) -> None:
    """Remove the sockets of that name pattern at which nobody answers: pods that were killed could not do it.

    The kubelet would try each of them again and again.
    """
    for path in sorted(folder.glob(pattern)):
        if path.is_socket() and _is_dead(path):
            path.unlink(missing_ok=True)
            _log.info("socket of a dead driver removed", path=str(path))


def _identity(path: Path) -> Identity:
    """Inode and time of its last change: a new file may be given the number of one that is gone."""
    found = path.stat()
    return found.st_ino, found.st_ctime_ns


def _is_dead(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1)
        try:
            client.connect(str(path))
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False
