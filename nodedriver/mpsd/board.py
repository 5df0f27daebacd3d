"""How each daemon is, for whoever watches: one report a device, and a revision that grows with each change."""

from __future__ import annotations

import threading
import time

from nodedriver.ports import MpsReport, MpsReports


class Board:
    """The reports of all daemons. For several threads at once."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._reports: dict[str, MpsReport] = {}
        self._revision = time.time_ns()  # so that another supervisor's are others

    def put(self, report: MpsReport) -> bool:
        """Replace the report of its device; whether it says anything new."""
        with self._changed:
            if self._reports.get(report.device) == report:
                return False
            self._reports[report.device] = report
            self._turn()
            return True

    def drop(self, device: str) -> None:
        """Forget a device whose daemon is wanted no more."""
        with self._changed:
            if self._reports.pop(device, None) is not None:
                self._turn()

    def watch(self, revision: int, seconds: float) -> MpsReports:
        """All reports, as soon as they are not of that revision, or when the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._revision != revision, timeout=seconds)
            return MpsReports(revision=self._revision, daemons=tuple(self._reports.values()))

    def _turn(self) -> None:
        self._revision += 1
        self._changed.notify_all()
