"""What `/metrics` and `/healthz` of the supervisor say, gathered anew for each look. Changes nothing.

Healthy is a supervisor that answers at its socket. How its daemons are is told as numbers alone: a probe that ended the
supervisor for a daemon's sake would end the work of every client.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import structlog

from nodedriver.exposition import Family, text
from nodedriver.mps import MpsClient
from nodedriver.ports import MpsError, MpsReport, MpsState

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """One supervisor's. `client` asks at the socket, as the driver does."""

    driver_name: str
    node_name: str
    client: MpsClient

    def metrics(self) -> bytes:
        """The daemons that should run, by state; nothing while the socket does not answer, which `/healthz` tells."""
        try:
            states = Counter(report.state for report in self._reports())
        except MpsError as error:
            _log.warning("metrics without the daemons'", error=str(error))
            return b""
        node = {"node": self.node_name, "driver": self.driver_name}
        samples = tuple(("", {**node, "state": state.value}, states[state]) for state in MpsState)
        return text((Family("mpsd_daemons", "gauge", "MPS control daemons that should run, by state.", samples),))

    def health(self) -> dict[str, str]:
        """By check what is wrong, "" where nothing is."""
        try:
            self._reports()
        except MpsError as error:
            return {"socket": str(error)}
        return {"socket": ""}

    def _reports(self) -> tuple[MpsReport, ...]:
        return self.client.watch(0, 0).daemons
