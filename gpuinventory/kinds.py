"""The kinds that the read model follows."""

from __future__ import annotations

from dra.kube.requests import (
    DEVICE_CLASSES,
    NODES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)

FOLLOWED: dict[str, Resource] = {
    resource.kind: resource
    for resource in (RESOURCE_SLICES, DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES, NODES)
}
KINDS = tuple(FOLLOWED)
