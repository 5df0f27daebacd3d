"""The time that actors live by: it stands still, goes as the wall's or several times as fast. Pure.

Objects keep the wall's time, since portal and driver compare it with their own; only when workloads come and go follows
this clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dra.errors import DraError

RATES: Final = (0, 1, 10)


class ClockError(DraError):
    """A rate that the clock does not have."""


@dataclass(slots=True)
class Clock:
    """`rate` seconds pass here in each second of a steady clock, whose readings are handed in."""

    rate: int = 1
    _passed: float = 0.0
    _since: float | None = None

    def seconds(self, steady: float) -> float:
        """How much time passed here since the first reading."""
        if self._since is not None:
            self._passed += (steady - self._since) * self.rate
        self._since = steady
        return self._passed

    def set_rate(self, rate: object, steady: float) -> None:
        """Go on at another rate from now; ClockError for one that is not among `RATES`."""
        if rate not in RATES or isinstance(rate, bool):
            raise ClockError(f"rate: {rate!r} is none of {', '.join(map(str, RATES))} (0 stands still)")
        self.seconds(steady)
        self.rate = int(str(rate))
