"""Lock files of the node: one per GPU, and a short one for the checkpoint. Knows nothing of what they protect.

flock(2) files and not locks in memory, since two driver pods overlap in an update. Each acquisition opens the file
anew, so two threads exclude each other like two processes; the kernel frees what a killed process held.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from nodedriver.deadline import seconds_left
from nodedriver.facts import PciAddress

_POLL = 0.02  # seconds between tries; flock has no waiting with a deadline


class LockTimeoutError(Exception):
    """Another call held a lock for too long. The text names the lock and the seconds waited."""


class Locks:
    """The lock files of one folder. `deadline` is how many seconds an acquisition may wait in all."""

    def __init__(self, folder: Path, *, deadline: float) -> None:
        self._folder = folder
        self._deadline = deadline
        folder.mkdir(parents=True, exist_ok=True, mode=0o750)

    @contextmanager
    def gpus(self, addresses: Iterable[PciAddress]) -> Iterator[None]:
        """Hold the locks of these GPUs, always taken in the order of their addresses: two calls can't deadlock."""
        give_up = time.monotonic() + seconds_left(self._deadline)
        with ExitStack() as stack:
            for address in sorted(set(addresses)):
                stack.enter_context(self._held(f"gpu-{address}", give_up))
            yield

    @contextmanager
    def checkpoint(self) -> Iterator[None]:
        """Hold the checkpoint's lock, for one read and write. Taken after GPU locks, never before."""
        with self._held("checkpoint", time.monotonic() + self._deadline):
            yield

    @contextmanager
    def _held(self, name: str, give_up: float) -> Iterator[None]:
        path = self._folder / f"{name}.lock"
        with path.open("ab") as file:
            while not _try(file.fileno()):
                if time.monotonic() >= give_up:
                    raise LockTimeoutError(
                        f"the lock {path.name} was not free within {self._deadline:g} s: "
                        "another call works on the same device; the kubelet tries again"
                    )
                time.sleep(_POLL)
            yield


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
