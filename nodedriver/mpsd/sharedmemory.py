"""A /dev/shm of its own for each control daemon, which the containers of its clients get too.

MPS clients and servers share memory there. The node's own /dev/shm would show every tenant the others' memory; so the
daemon runs in a mount namespace in which a folder of ours stands in that place. The mount ends with the daemon.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

# util-linux; the shell is replaced by the daemon, which so keeps the process id that we started.
_ENTER = ("unshare", "--mount", "--propagation", "private", "sh", "-c")
_BIND = 'mount --bind "$0" /dev/shm && exec "$@"'


def can_isolate(folder: Path) -> bool:
    """Whether this process may make mount namespaces, tried with that folder; it takes CAP_SYS_ADMIN."""
    command = with_shared_memory(folder, ("true",))
    try:
        done = subprocess.run(command, env={"PATH": os.defpath}, check=False, capture_output=True)  # noqa: S603 - our own words
    except FileNotFoundError:
        return False
    return done.returncode == 0


def with_shared_memory(folder: Path, command: tuple[str, ...]) -> tuple[str, ...]:
    """The command, run with the folder as its /dev/shm."""
    return (*_ENTER, _BIND, str(folder), *command)
