"""DeviceClass: which devices an administrator offers under one name (resource.k8s.io/v1)."""

from __future__ import annotations

from dra.objects.meta import ApiStruct, JsonObject, ObjectMeta
from dra.objects.resourceslice import API_VERSION


class CelSelector(ApiStruct, frozen=True, kw_only=True):
    """A CEL expression over `device`."""

    expression: str


class DeviceSelector(ApiStruct, frozen=True, kw_only=True):
    """One selector; all selectors of a list must be true."""

    cel: CelSelector | None = None


class OpaqueConfiguration(ApiStruct, frozen=True, kw_only=True):
    """Parameters for one driver: a JSON object of at most 10 KiB that only this driver reads."""

    driver: str
    parameters: JsonObject


class DeviceClassConfiguration(ApiStruct, frozen=True, kw_only=True):
    """A configuration that a class adds to every ResourceClaim that uses it."""

    opaque: OpaqueConfiguration | None = None


class DeviceClassSpec(ApiStruct, frozen=True, kw_only=True):
    """Selectors, configuration and the extended resource that the class answers for."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(ApiStruct, frozen=True, kw_only=True):
    """One device class."""

    api_version: str = API_VERSION
    kind: str = "DeviceClass"
    metadata: ObjectMeta
    spec: DeviceClassSpec = DeviceClassSpec()
