"""ResourceQuota, read for its limits and what is used of them (core/v1)."""

from __future__ import annotations

from dra.objects.meta import ApiStruct, ObjectMeta, QuantityText


class ResourceQuotaSpec(ApiStruct, frozen=True, kw_only=True):
    """The limit of each counted key; quantities as texts."""

    hard: dict[str, QuantityText] = {}


class ResourceQuotaStatus(ApiStruct, frozen=True, kw_only=True):
    """What the quota controller enforces and has counted."""

    hard: dict[str, QuantityText] = {}
    used: dict[str, QuantityText] = {}


class ResourceQuota(ApiStruct, frozen=True, kw_only=True):
    """One quota of a namespace."""

    api_version: str = "v1"
    kind: str = "ResourceQuota"
    metadata: ObjectMeta
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()
