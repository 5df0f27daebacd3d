"""How long to wait before what ended is started again: not at all the first time, ever longer while it keeps ending."""

from __future__ import annotations

FIRST_DELAY = 1.0  # seconds, after a second end soon after the first; doubled from there
LONGEST_DELAY = 30.0
RAN_WELL = 60.0  # seconds after which an end counts as the first again


class Backoff:
    """The delays of one thing. Times are in seconds, of any clock that never goes back."""

    def __init__(self) -> None:
        self._ended = float("-inf")
        self._delay = 0.0

    def delay(self, now: float) -> float:
        """It has ended, now: how long to wait before the next start."""
        if now - self._ended - self._delay > RAN_WELL:
            self._delay = 0.0
        else:
            self._delay = min(max(self._delay * 2, FIRST_DELAY), LONGEST_DELAY)
        self._ended = now
        return self._delay
