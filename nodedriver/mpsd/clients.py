"""Which claim an MPS client is of: the driver marks the environment of its containers.

A client that took the variable out of its environment is of no claim here; its container's end ends it.
"""

from __future__ import annotations

import contextlib
import signal

from nodedriver.marks import marked_with
from nodedriver.mpsd.record import PROC, ProcessId, start_time


def is_of(pid: int, claim: str) -> bool:
    """Whether that process is of that claim; one that has ended is of none."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
        return claim in marked_with((PROC / str(pid) / "environ").read_bytes())
    return False


def kill(pid: int, seconds: float) -> bool:
    """End that process, and say whether it ended in time."""
    started = start_time(pid)
    if started is None:
        return True
    process = ProcessId(pid, started)
    process.send(signal.SIGKILL)
    return process.wait(seconds)
