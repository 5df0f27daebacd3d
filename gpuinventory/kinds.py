"""The kinds that the read model follows. Which of them a cluster serves is seen when they are listed."""

from __future__ import annotations

from dra.kube.requests import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    EVENTS,
    GPU_CLASSES,
    NAMESPACES,
    NODES,
    PHYSICAL_GPUS,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_QUOTAS,
    RESOURCE_SLICES,
    Resource,
)

FOLLOWED: dict[str, Resource] = {
    resource.kind: resource
    for resource in (
        RESOURCE_SLICES, DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES, DEVICE_TAINT_RULES, NODES, PODS,
        RESOURCE_QUOTAS, NAMESPACES, PRIORITY_CLASSES, GPU_CLASSES, PHYSICAL_GPUS, EVENTS,
    )
}  # fmt: skip
KINDS = tuple(FOLLOWED)
# An object of our own beside those of the cluster: what it can do (gpuinventory.capabilities).
CAPABILITIES = "Capabilities"
