"""What `/metrics` and `/healthz` of the driver say, gathered anew for each look. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import structlog

from dra.slices import SliceContent
from nodedriver import metrics
from nodedriver.checkpoint import CheckpointError
from nodedriver.exposition import text
from nodedriver.prepared import PreparedClaims

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """The driver as it is watched. `published` gives the slices in the API server, `kubelet` what is wrong there."""

    driver_name: str
    node_name: str
    requests: metrics.Requests
    prepared: PreparedClaims
    published: Callable[[], Sequence[SliceContent]]
    kubelet: Callable[[], Mapping[str, str]]

    def metrics(self) -> bytes:
        """All metrics; those of the checkpoint are left out while it can't be read, which `/healthz` tells."""
        node = {"node": self.node_name, "driver": self.driver_name}
        families = [*self.requests.families(self.driver_name), *metrics.of_published(node, self.published())]
        try:
            families += metrics.of_prepared(node, self.prepared.read().claims.values())
        except (CheckpointError, OSError) as error:
            _log.warning("metrics without the checkpoint's", error=str(error))
        return text(families)

    def health(self) -> dict[str, str]:
        """By check what is wrong, "" where nothing is."""
        return {**self.kubelet(), "checkpoint": self._checkpoint()}

    def _checkpoint(self) -> str:
        try:
            self.prepared.read()
        except (CheckpointError, OSError) as error:
            return str(error)
        return ""
