"""Why the service ends: a signal of the operating system, or the kubelet's refusal. Ends nothing itself."""

from __future__ import annotations

import signal
from queue import SimpleQueue

# None, or the error that ends us. No Event, since a signal's handler may interrupt the very thread that holds its lock.
type Stop = SimpleQueue[Exception | None]


class RegistrationRefusedError(Exception):
    """The kubelet does not want this driver. The text is its reason."""


def stop_at_signal() -> Stop:
    """What is told once SIGTERM or SIGINT comes. For the main thread (Python's rule for handlers)."""
    stop: Stop = SimpleQueue()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.put(None))
    return stop
