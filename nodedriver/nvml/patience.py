"""A thread for each card, in which NVML is asked about it, and a deadline for whoever waits for the answer.

A call into NVML can't be interrupted. Where one does not come back, its thread is given up: whoever waits is let go
with an error, what is asked of this card is refused at once until the thread comes back, and it then stops before its
next call, since its asker may have undone what it was to do. Other cards have threads of their own and go on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, cast

from nodedriver.deadline import seconds_left
from nodedriver.ports import GpuError

# Of one card, for all that a step asks: destroying a GPU instance takes about 1 s, look-ups under load up to 10 s.
SECONDS = 20.0


class CardHangsError(GpuError):
    """NVML did not come back in time. The text names the card, the call and the seconds."""


class _GivenUpError(GpuError):
    """Nobody waits for this work any more; seen by its own thread only."""


class _Work:
    """One thing to ask, and its answer or error once `done` is released: a lock costs a quarter of an event."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self.done = threading.Lock()
        self.done.acquire()
        self.given_up = False
        self.call = "NVML"
        self.answer: object = None
        self.error: Exception | None = None

    def do(self) -> None:
        _current.work = self
        try:
            self.answer = self._work()
        except Exception as error:  # noqa: BLE001 - it is raised again where the answer is waited for
            self.error = error
        finally:
            self.done.release()


class _Desk:
    """The thread of one card. What is asked waits its turn."""

    def __init__(self, name: str) -> None:
        self._waiting: SimpleQueue[_Work | None] = SimpleQueue()
        self.current: _Work | None = None
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def put(self, work: _Work | None) -> None:
        """Do it as soon as what came before is done; None ends the thread."""
        self._waiting.put(work)

    def _run(self) -> None:
        while (work := self._waiting.get()) is not None:
            if not work.given_up:
                self.current = work
                work.do()
                self.current = None


_current = threading.local()


class Patience:
    """The threads, one for each subject, such as `GPU 0000:65:00.0`."""

    def __init__(self, seconds: float = SECONDS) -> None:
        """`seconds` is the longest that anyone waits."""
        self._seconds = seconds
        self._desks: dict[str, _Desk] = {}
        self._lock = threading.Lock()

    def ask[T](self, subject: str, work: Callable[[], T]) -> T:
        """The answer of `work`, or its error; CardHangsError where it does not come in time."""
        desk, seconds = self._desk(subject), seconds_left(self._seconds)
        before = desk.current
        if before is not None and before.given_up:
            raise CardHangsError(_why(subject, before.call, "still has not come back"))
        wanted = _Work(work)
        desk.put(wanted)
        if not wanted.done.acquire(timeout=seconds):
            wanted.given_up = True
            busy = desk.current or wanted
            raise CardHangsError(_why(subject, busy.call, f"has not come back within {seconds:.0f} s"))
        if wanted.error is not None:
            raise wanted.error
        return cast("T", wanted.answer)

    def close(self) -> None:
        """End the threads; one that hangs ends with the process."""
        with self._lock:
            for desk in self._desks.values():
                desk.put(None)
            self._desks.clear()

    def _desk(self, subject: str) -> _Desk:
        with self._lock:
            if subject not in self._desks:
                self._desks[subject] = _Desk(subject)
            return self._desks[subject]


def about_to_call(function: Callable[..., Any]) -> None:
    """Note which function is called next; stops work that nobody waits for any more."""
    work: _Work | None = getattr(_current, "work", None)
    if work is None:
        return
    if work.given_up:
        raise _GivenUpError(f"nobody waits for {function.__name__} any more")
    work.call = function.__name__


def _why(subject: str, call: str, what: str) -> str:
    return (
        f"{subject}: {call} {what}. Nothing is asked of it until it does; the kernel log (dmesg, lines with NVRM) says "
        "more. If it stays so, drain the node, then reset the card or restart the node."
    )
