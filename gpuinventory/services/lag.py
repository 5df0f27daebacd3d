"""How far the rows are behind the cluster, and how far its clock is ahead of ours. Pure.

Lag is the time from a change, by the clock of the API server that wrote it, until its row is written here, by the same
clock: so a clock of ours that is wrong changes nothing. Only changes that are newer than all seen before count, since
an object does not tell of every write (`dra.kube.watch.written_at`). Both are to a second or so: that is what the API
server tells.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from dra.kube.watch import WatchEvent, written_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """`lag` and `clock_ahead` in seconds; None where the API server did not tell its time, or nothing changed yet."""

    changed_at: datetime | None = None
    lag: float | None = None
    clock_ahead: float | None = None

    def after(self, events: Iterable[WatchEvent], server_time: datetime | None, now: datetime) -> Measured:
        """The same after these events, which are written now."""
        ahead = (server_time - now).total_seconds() if server_time else self.clock_ahead
        times = [moment for event in events if (moment := written_at(event))]
        latest = max(times, default=None)
        if latest is None or (self.changed_at is not None and latest <= self.changed_at):
            return Measured(changed_at=self.changed_at, lag=self.lag, clock_ahead=ahead)
        lag = max(0.0, (server_time - latest).total_seconds()) if server_time else None
        return Measured(changed_at=latest, lag=lag, clock_ahead=ahead)
