"""How long the kubelet still waits for the call that runs, for all who wait for something inside it.

The kubelet ends a call of prepare or unprepare after 45 s (pkg/kubelet/cm/dra/plugin, defaultClientCallTimeout).
Whoever waits for a lock, a card or the MPS supervisor asks here how much of that is left, so that the answer comes in
time however many of them are slow. Knows nothing of what they wait for.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

CALL_SECONDS = 40.0  # less than the kubelet's 45, for the answer's way back and the undoing that follows a failure

_end: ContextVar[float | None] = ContextVar("end of the kubelet's call", default=None)


@contextmanager
def of_call(seconds: float = CALL_SECONDS) -> Iterator[None]:
    """Count from now, for this thread."""
    token = _end.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _end.reset(token)


def seconds_left(most: float) -> float:
    """How long to wait: `most`, or what is left of the call where that is less; never below 0."""
    end = _end.get()
    return most if end is None else max(min(most, end - time.monotonic()), 0.0)
