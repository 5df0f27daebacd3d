"""The NVML session of this process, which has to be let go for the reset of a card: NVML keeps every card open.

Whoever calls NVML uses the session; `away` waits until nobody does, ends it, and begins it anew. Handles of cards,
instances and event sets die with it, so a sequence of calls that keeps one uses the session as a whole (`in_session`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps

import pynvml

from nodedriver.ports import GpuError

QUIET_SECONDS = 25.0  # until the calls that run have come back; more than anyone waits for one (`patience`)


class Session:
    """Counts its users. `number` changes each time that handles died."""

    def __init__(self) -> None:
        self.number = 0
        self._free = threading.Condition()
        self._users = 0
        self._away = False
        self._mine = threading.local()  # how often the thread uses it already

    @contextmanager
    def used(self) -> Iterator[None]:
        """Have the session; waits while it is away. May be nested."""
        depth = getattr(self._mine, "depth", 0)
        if not depth:
            self._enter()
        self._mine.depth = depth + 1
        try:
            yield
        finally:
            self._mine.depth = depth
            if not depth:
                self._leave()

    @contextmanager
    def away(self) -> Iterator[None]:
        """End the session once nobody uses it, and begin it anew afterwards. Not for a thread that uses it.

        GpuError where a call of NVML does not come back, so that it can't end. pynvml's error where NVML can't be had
        again: each later use then says so.
        """
        with self._free:
            self._free.wait_for(lambda: not self._away)
            self._away = True
            if not self._free.wait_for(lambda: not self._users, QUIET_SECONDS):
                self._away = False
                self._free.notify_all()
                raise GpuError(
                    f"NVML can't be let go: a call of it has not come back for {QUIET_SECONDS:.0f} s. While a card "
                    "hangs no other can be reset; drain the node and restart it."
                )
        try:
            pynvml.nvmlShutdown()
            try:
                yield
            finally:
                pynvml.nvmlInitWithFlags(pynvml.NVML_INIT_FLAG_NO_GPUS)
        finally:
            with self._free:
                self.number += 1
                self._away = False
                self._free.notify_all()

    def _enter(self) -> None:
        with self._free:
            self._free.wait_for(lambda: not self._away)
            self._users += 1

    def _leave(self) -> None:
        with self._free:
            self._users -= 1
            self._free.notify_all()


SESSION = Session()


def in_session[**P, T](work: Callable[P, T]) -> Callable[P, T]:
    """All calls of `work` in one session."""

    @wraps(work)
    def within(*args: P.args, **kwargs: P.kwargs) -> T:
        with SESSION.used():
            return work(*args, **kwargs)

    return within
