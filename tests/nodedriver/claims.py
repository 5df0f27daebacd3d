"""Builders of allocated resource claims and configurations, as the scheduler would leave them."""

from dra.objects import DeviceAllocationConfiguration, DeviceRequestAllocationResult, JsonObject, ObjectMeta
from dra.objects.deviceclass import OpaqueConfiguration
from dra.objects.resourceclaim import AllocationResult, DeviceAllocationResult, ResourceClaim, ResourceClaimStatus

DRIVER = "gpu.portico.dev"
NODE = "node-1"


def gpu_config(sharing: JsonObject | None = None, **extra: object) -> JsonObject:
    """A GpuConfig document with that sharing."""
    document: JsonObject = {"apiVersion": f"resource.{DRIVER}/v1alpha1", "kind": "GpuConfig", **extra}
    return document if sharing is None else {**document, "sharing": sharing}


def mig_config(sharing: JsonObject | None = None, **extra: object) -> JsonObject:
    """A MigDeviceConfig document with that sharing."""
    return gpu_config(sharing, kind="MigDeviceConfig", **extra)


def mps(percentage: int | None = None, memory: str | None = None) -> JsonObject:
    """An MPS document with the limits that are given."""
    limits = {"defaultActiveThreadPercentage": percentage, "defaultPinnedDeviceMemoryLimit": memory}
    given = {name: value for name, value in limits.items() if value is not None}
    return gpu_config({"strategy": "MPS", **({"mpsConfig": given} if given else {})})


def time_slicing(interval: str | None = None) -> JsonObject:
    sliced = {} if interval is None else {"timeSlicingConfig": {"interval": interval}}
    return gpu_config({"strategy": "TimeSlicing", **sliced})


def of_class(parameters: JsonObject, *requests: str, driver: str = DRIVER) -> DeviceAllocationConfiguration:
    opaque = OpaqueConfiguration(driver=driver, parameters=parameters)
    return DeviceAllocationConfiguration(source="FromClass", requests=requests, opaque=opaque)


def of_claim(parameters: JsonObject, *requests: str, driver: str = DRIVER) -> DeviceAllocationConfiguration:
    opaque = OpaqueConfiguration(driver=driver, parameters=parameters)
    return DeviceAllocationConfiguration(source="FromClaim", requests=requests, opaque=opaque)


def given(
    device: str, share: int | None = None, *, request: str = "gpu", memory: str = "0", admin: bool = False
) -> DeviceRequestAllocationResult:
    """One result. Without a share the device was allocated whole by an API server without shares."""
    consumed = {} if share is None else {"sharePercent": str(share), "memory": memory}
    return DeviceRequestAllocationResult(
        request=request,
        driver=DRIVER,
        pool=NODE,
        device=device,
        admin_access=admin,
        share_id=None if share is None else f"00000000-0000-4000-8000-{share:012d}",
        consumed_capacity=consumed,
    )


def given_slots(device: str, slots: int) -> DeviceRequestAllocationResult:
    """One result of a time-sliced device."""
    return DeviceRequestAllocationResult(
        request="gpu",
        driver=DRIVER,
        pool=NODE,
        device=device,
        share_id=f"00000000-0000-4000-8000-{slots:012d}",
        consumed_capacity={"slots": str(slots), "memory": "0"},
    )


def allocated(
    *results: DeviceRequestAllocationResult,
    config: tuple[DeviceAllocationConfiguration, ...] = (),
    name: str = "claim",
    uid: str = "11111111-1111-4111-8111-111111111111",
) -> ResourceClaim:
    """A claim with that allocation."""
    allocation = AllocationResult(devices=DeviceAllocationResult(results=results, config=config))
    return ResourceClaim(
        metadata=ObjectMeta(name=name, namespace="ml-team", uid=uid), status=ResourceClaimStatus(allocation=allocation)
    )
