"""Lock files of the node: one per GPU, and a short one for the checkpoint. Knows nothing of what they protect.

flock(2) files, since two driver pods overlap in an update; the kernel frees what a killed process held. Threads of one
process wait for each other in memory first, where the next one is woken at once.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
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
        self._threads: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        folder.mkdir(parents=True, exist_ok=True, mode=0o750)

    @contextmanager
    def gpus(self, addresses: Iterable[PciAddress]) -> Iterator[None]:
        """Hold the locks of these GPUs, always taken in the order of their addresses: two calls can't deadlock."""
        give_up = time.monotonic() + seconds_left(self._deadline)
        with ExitStack() as stack:
            for address in sorted(set(addresses)):
                stack.enter_context(self._held(f"gpu-{address}", give_up))
            yield

    def checkpoint(self) -> AbstractContextManager[None]:
        """Hold the checkpoint's lock, for one read and write. Taken after GPU locks, never before."""
        return self._held("checkpoint", time.monotonic() + self._deadline)

    @contextmanager
    def _held(self, name: str, give_up: float) -> Iterator[None]:
        """Among the threads of this process, then among processes."""
        lock = self._threads[name]
        if not lock.acquire(timeout=max(give_up - time.monotonic(), 0)):
            raise self._timeout(name)
        try:
            descriptor = os.open(f"{self._folder}/{name}.lock", os.O_WRONLY | os.O_CREAT, 0o666)
            try:
                self._wait_for(descriptor, name, give_up)
                yield
            finally:
                os.close(descriptor)
        finally:
            lock.release()

    def _wait_for(self, descriptor: int, name: str, give_up: float) -> None:
        while not _try(descriptor):
            if time.monotonic() >= give_up:
                raise self._timeout(name)
            time.sleep(_POLL)

    def _timeout(self, name: str) -> LockTimeoutError:
        return LockTimeoutError(
            f"the lock {name}.lock was not free within {self._deadline:g} s: "
            "another call works on the same device; the kubelet tries again"
        )


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
