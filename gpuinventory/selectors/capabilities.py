"""What the cluster can do, as it was last seen."""

from __future__ import annotations

import msgspec

from gpuinventory.capabilities import NOT_SEEN, Capabilities
from gpuinventory.kinds import CAPABILITIES
from gpuinventory.models import ClusterObject


def capabilities() -> Capabilities:
    """The last look; `NOT_SEEN` where there was none. One query."""
    body = ClusterObject.objects.filter(kind=CAPABILITIES).values_list("body", flat=True).first()
    return read_capabilities(bytes(body)) if body else NOT_SEEN


def read_capabilities(body: bytes) -> Capabilities:
    """The stored form."""
    return msgspec.json.decode(body, type=Capabilities)
