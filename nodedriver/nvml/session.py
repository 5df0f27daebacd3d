"""The NVML session of this process, which has to be let go for the reset of a card or another driver for it: NVML
keeps every card open, and sees only those that were there when the session began.

Whoever calls NVML uses the session; `away` waits until nobody does, ends it, and begins it anew. Handles of cards,
instances and event sets die with it, so a sequence of calls that keeps one uses the session as a whole (`in_session`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps

import pynvml

from nodedriver.deadline import of_call, seconds_left
from nodedriver.ports import GpuError

_SECONDS = 15.0  # of those who use the session when it is to end; a card that hangs keeps it for longer
_MOST_AWAY = 60.0  # seconds that it is waited for: more than it takes to take it away and to reset a card (15 + 40)

type Run = Callable[[Callable[[], object]], object]  # does one thing, in time or not at all


class Session:
    """Counts its users. `number` changes each time that handles died."""

    def __init__(self) -> None:
        self.number = 0
        self._changed = threading.Condition()
        self._users = 0
        self._asked_for = 0  # by how many threads it is wanted away, or is
        self._is_away = False
        self._is_changing = False  # a thread ends or begins it, outside of the lock since NVML may hang
        self._mine = threading.local()  # how often the thread uses it already

    def used(self) -> AbstractContextManager[None]:
        """Have the session; waits while it is away, or is about to be. May be nested. GpuError where it stays away."""
        return _Use(self._begin, self._end, lambda: not (self._asked_for or self._is_away))

    def joined(self) -> AbstractContextManager[None]:
        """The same for a thread that works for one that has the session."""
        return _Use(self._begin, self._end, lambda: not (self._is_changing or self._is_away))

    @contextmanager
    def away(self, run: Run) -> Iterator[None]:
        """End the session once nobody uses it, and begin it anew when the last who wanted it away is done.

        Not for a thread that uses it. `run` calls NVML. GpuError where others do not let go of it; pynvml's error where
        NVML can't be had again, which each later use then says too, until it can be had after another time away.
        """
        self._take_away(run)
        try:
            yield
        finally:
            self._bring_back(run)

    def _take_away(self, run: Run) -> None:
        with self._changed:
            self._asked_for += 1
            try:
                self._await_nobody()
                if self._is_away:
                    return
            except GpuError:
                self._asked_for -= 1
                self._changed.notify_all()
                raise
            self._is_changing = True
        try:
            with of_call(_SECONDS):
                run(_shutdown)
        except BaseException:
            with self._changed:
                self._asked_for -= 1
                self._is_changing = False
                self._changed.notify_all()
            raise
        with self._changed:
            self._is_away, self._is_changing = True, False
            self._changed.notify_all()

    def _await_nobody(self) -> None:
        seconds = seconds_left(_SECONDS)
        if not self._changed.wait_for(lambda: not (self._users or self._is_changing), timeout=seconds):
            raise GpuError(
                f"no card can be reset while this driver waits for NVML, for more than {seconds:.0f} s now: "
                "its log says for which card"
            )

    def _bring_back(self, run: Run) -> None:
        with self._changed:
            self._asked_for -= 1
            if self._asked_for:
                return
            self._is_changing = True
        try:
            with of_call(_SECONDS):  # however late it is in the kubelet's call: the other cards need it
                run(lambda: pynvml.nvmlInitWithFlags(pynvml.NVML_INIT_FLAG_NO_GPUS))
        finally:
            with self._changed:
                self.number += 1
                self._is_away = self._is_changing = False
                self._changed.notify_all()

    def _begin(self, may: Callable[[], bool]) -> None:
        depth = getattr(self._mine, "depth", 0)
        if not depth:
            seconds = seconds_left(_MOST_AWAY)
            with self._changed:
                if not self._changed.wait_for(may, timeout=seconds):
                    raise GpuError(
                        f"no card can be asked while another one is reset or changes its driver, for more than "
                        f"{seconds:.0f} s now: this driver's log says which; see dmesg, lines with NVRM"
                    )
                self._users += 1
        self._mine.depth = depth + 1

    def _end(self) -> None:
        self._mine.depth -= 1
        if not self._mine.depth:
            with self._changed:
                self._users -= 1
                self._changed.notify_all()


class _Use(AbstractContextManager[None]):
    """A class and no generator: every call of NVML goes through it."""

    def __init__(
        self, begin: Callable[[Callable[[], bool]], None], end: Callable[[], None], may: Callable[[], bool]
    ) -> None:
        self._begin = begin
        self._end = end
        self._may = may

    def __enter__(self) -> None:
        self._begin(self._may)

    def __exit__(self, *_error: object) -> None:
        self._end()


def _shutdown() -> None:
    """NVML that could not be had again after the last time is as good as ended."""
    try:
        pynvml.nvmlShutdown()
    except pynvml.NVMLError_Uninitialized:
        return


SESSION = Session()


def in_session[**P, T](work: Callable[P, T]) -> Callable[P, T]:
    """All calls of `work` in one session."""

    @wraps(work)
    def within(*args: P.args, **kwargs: P.kwargs) -> T:
        with SESSION.used():
            return work(*args, **kwargs)

    return within
