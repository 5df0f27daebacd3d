"""ResourceQuotas as read; none where the kind is not followed or not there."""

from __future__ import annotations

from collections.abc import Iterator

from dra.errors import DraError
from dra.objects import ResourceQuota, decode
from gpuinventory.models import ClusterObject

KIND = "ResourceQuota"


def resource_quotas(namespace: str) -> tuple[ResourceQuota, ...]:
    """The quotas of a namespace by name; one that can't be read is left out. One query."""
    rows = ClusterObject.objects.filter(kind=KIND, namespace=namespace).order_by("name")
    return tuple(_readable(bytes(row.body) for row in rows))


def _readable(bodies: Iterator[bytes]) -> Iterator[ResourceQuota]:
    for body in bodies:
        try:
            yield decode(body, ResourceQuota)
        except DraError:
            continue  # the quota itself is enforced by the API server all the same
