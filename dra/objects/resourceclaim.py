"""ResourceClaim and ResourceClaimTemplate: what a workload asks for and what it was given (resource.k8s.io/v1)."""

from __future__ import annotations

from typing import Literal

import msgspec

from dra.names import ClaimRef, ClaimUID
from dra.objects.deviceclass import DeviceSelector, OpaqueConfiguration
from dra.objects.meta import ApiStruct, Int64, JsonObject, ObjectMeta, QuantityText
from dra.objects.nodeselector import NodeSelector
from dra.objects.resourceslice import API_VERSION


class CapacityRequirements(ApiStruct, frozen=True, kw_only=True):
    """Least capacity per device; quantities as texts. For a shared device it is what the share consumes."""

    requests: dict[str, QuantityText] = {}


class DeviceToleration(ApiStruct, frozen=True, kw_only=True):
    """Which taints of a device do not matter."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class DeviceDerivedAttribute(ApiStruct, frozen=True, kw_only=True):
    """An attribute that a constraint may name, computed by CEL from each device (gate DRADerivedAttributes)."""

    name: str
    expression: str


class ExactDeviceRequest(ApiStruct, frozen=True, kw_only=True):
    """Devices of one class. Mode ExactCount takes `count` of them (default 1), All takes every match."""

    device_class_name: str
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = "ExactCount"
    count: Int64 = 1
    admin_access: bool = False
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DeviceDerivedAttribute, ...] = ()


class DeviceSubRequest(ExactDeviceRequest, frozen=True, kw_only=True):
    """One alternative of a `firstAvailable` list; it is referred to as `<request>/<name>`."""

    name: str


class DeviceRequest(ApiStruct, frozen=True, kw_only=True):
    """One entry of a ResourceClaim: exactly one of `exactly` and `first_available`."""

    name: str
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(ApiStruct, frozen=True, kw_only=True):
    """What devices of the named requests must have in common, or must not."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(ApiStruct, frozen=True, kw_only=True):
    """A configuration for the drivers of the named requests (all, when none is named)."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueConfiguration | None = None


class DeviceClaim(ApiStruct, frozen=True, kw_only=True):
    """What is asked for."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(ApiStruct, frozen=True, kw_only=True):
    """The immutable wish."""

    devices: DeviceClaim = DeviceClaim()


class DeviceRequestAllocationResult(ApiStruct, frozen=True, kw_only=True):
    """One allocated device, or one share of it. `request` may be `<request>/<subrequest>`."""

    request: str
    driver: str
    pool: str
    device: str
    admin_access: bool = False
    share_id: str | None = msgspec.field(name="shareID", default=None)
    consumed_capacity: dict[str, QuantityText] = {}
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    skip_node_operations: tuple[str, ...] = ()

    @property
    def device_request(self) -> str:
        """The base name of the request, which kubelet and containers use (`main` of `main/sub`)."""
        return self.request.partition("/")[0]


class DeviceAllocationConfiguration(ApiStruct, frozen=True, kw_only=True):
    """A configuration that holds for the allocation, and whether the class or the claim brought it."""

    source: Literal["FromClass", "FromClaim"]
    requests: tuple[str, ...] = ()
    opaque: OpaqueConfiguration | None = None


class DeviceAllocationResult(ApiStruct, frozen=True, kw_only=True):
    """All devices of a ResourceClaim. Later entries of `config` override earlier ones."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(ApiStruct, frozen=True, kw_only=True):
    """What the scheduler gave, and from which nodes it can be used."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ResourceClaimConsumerReference(ApiStruct, frozen=True, kw_only=True):
    """Who may use the claim now."""

    resource: str
    name: str
    uid: str
    api_group: str = ""


class Condition(ApiStruct, frozen=True, kw_only=True):
    """A metav1.Condition."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class AllocatedDeviceStatus(ApiStruct, frozen=True, kw_only=True):
    """What a driver says about one allocated device (KEP-4817)."""

    driver: str
    pool: str
    device: str
    share_id: str | None = msgspec.field(name="shareID", default=None)
    conditions: tuple[Condition, ...] = ()
    data: JsonObject | None = None


class ResourceClaimStatus(ApiStruct, frozen=True, kw_only=True):
    """Allocation, users and device status."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(ApiStruct, frozen=True, kw_only=True):
    """One resource claim."""

    api_version: str = API_VERSION
    kind: str = "ResourceClaim"
    metadata: ObjectMeta
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()

    @property
    def ref(self) -> ClaimRef:
        """The identity of this resource claim."""
        return ClaimRef(self.metadata.namespace, self.metadata.name, ClaimUID(self.metadata.uid))


class ResourceClaimTemplateSpec(ApiStruct, frozen=True, kw_only=True):
    """The claim that each pod gets; only labels and annotations are allowed as its metadata."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(ApiStruct, frozen=True, kw_only=True):
    """One template."""

    api_version: str = API_VERSION
    kind: str = "ResourceClaimTemplate"
    metadata: ObjectMeta
    spec: ResourceClaimTemplateSpec
