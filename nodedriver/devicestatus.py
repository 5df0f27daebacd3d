"""What a claim's `status.devices` says about our devices (KEP-4817): conditions, and data for people. Pure.

A condition's lastTransitionTime moves only with its status (API conventions), so what was told before counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from dra.names import ClaimUID
from dra.objects import AllocatedDeviceStatus, Condition, DeviceRequestAllocationResult, JsonObject
from dra.quantity import Format, Quantity
from nodedriver.facts import DeviceType, MigPlacement, PciAddress, Vendor
from nodedriver.health.ailments import Ailment, Cause
from nodedriver.holding import Checkpoint, PreparedClaim, PreparedDevice, limits_of, sharers
from nodedriver.sharing import EnforcedBy, enforced_by
from nodedriver.sightings import Sight, told_time

type Told = Sequence[AllocatedDeviceStatus]  # what the claim's status says of our devices now
type Ailing = Callable[[PciAddress, MigPlacement | None], Sequence[Ailment]]
type Speaks = Callable[[str], int]  # of the MPS daemon that serves the device of this UUID
type Seen = Callable[[ClaimUID, str], Sight | None]  # of a claim's device, by its CDI name

READY, MPS_READY, SHARE_ENFORCED = "Ready", "MpsReady", "ShareEnforced"
_TYPES = frozenset({READY, MPS_READY, SHARE_ENFORCED})
_LONGEST_MESSAGE = 1024  # characters; a condition may have 32,768, and nobody reads them
_ENFORCED = {
    EnforcedBy.SERVER: "the MPS server holds every process of this share to its limits",
    EnforcedBy.CLIENT_ENVIRONMENT: (
        "the containers' environment holds processes to this share's limits; the MPS server has the larger ones of "
        "another share, so a process that clears its environment meets those"
    ),
    EnforcedBy.NONE: "no process is held to any memory or compute",
    EnforcedBy.UNKNOWN: (
        "nobody can tell whether processes are held to this share's limits while the MPS supervisor does not answer"
    ),
}
_STATUS = {EnforcedBy.SERVER: "True", EnforcedBy.UNKNOWN: "Unknown"}  # of ShareEnforced, else False


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What a status depends on beside the claim's entry. `now` is RFC 3339."""

    driver_name: str
    checkpoint: Checkpoint
    ailing: Ailing
    seen: Seen
    protocol: Speaks
    now: str


def told_by(driver_name: str, statuses: Told) -> tuple[AllocatedDeviceStatus, ...]:
    """What these statuses say in words of this file; conditions of other types are not ours (binding conditions)."""
    ours = (
        msgspec.structs.replace(each, conditions=tuple(c for c in each.conditions if c.type in _TYPES))
        for each in statuses
        if each.driver == driver_name
    )
    return tuple(each for each in ours if each.conditions or each.data is not None)


def statuses_of(claim: PreparedClaim, told: Told, around: Around) -> tuple[AllocatedDeviceStatus, ...]:
    """What should be told of a prepared claim's devices."""
    return tuple(_status(claim, device, told, around) for device in claim.devices)


def failed_statuses(
    results: Sequence[DeviceRequestAllocationResult], told: Told, error: str, now: str
) -> tuple[AllocatedDeviceStatus, ...]:
    """What should be told of devices that could not be prepared, and why."""
    message = error if len(error) <= _LONGEST_MESSAGE else f"{error[: _LONGEST_MESSAGE - 3]}..."
    ready = Condition(type=READY, status="False", reason="PrepareFailed", message=message)
    return _not_ready(ready, results, told, now)


def interrupted_statuses(
    results: Sequence[DeviceRequestAllocationResult], told: Told, now: str
) -> tuple[AllocatedDeviceStatus, ...]:
    """What should be told of devices that were prepared before the node was restarted, and not yet since."""
    message = (
        "the node was restarted since this was prepared; the kubelet has it prepared anew before a pod that uses the "
        "claim runs again"
    )
    ready = Condition(type=READY, status="Unknown", reason="NotPreparedSinceReboot", message=message)
    return _not_ready(ready, results, told, now)


def _not_ready(
    ready: Condition, results: Sequence[DeviceRequestAllocationResult], told: Told, now: str
) -> tuple[AllocatedDeviceStatus, ...]:
    return tuple(
        AllocatedDeviceStatus(
            driver=result.driver,
            pool=result.pool,
            device=result.device,
            share_id=result.share_id,
            conditions=(_since(ready, _of(told, result), now),),
        )
        for result in results
    )


def allocated(statuses: Told, results: Sequence[DeviceRequestAllocationResult]) -> tuple[AllocatedDeviceStatus, ...]:
    """Those of devices that are allocated to the claim."""
    keys = {(result.pool, result.device, result.share_id) for result in results}
    return tuple(each for each in statuses if _key(each) in keys)


def says_the_same(told: Told, wanted: Told) -> bool:
    """Whether a write would change nothing; the order of entries and of conditions has no meaning."""
    return {_key(each): _content(each) for each in told} == {_key(each): _content(each) for each in wanted}


def says_ready(told: Told) -> bool:
    """Whether a device is called ready."""
    return any(each.type == READY and each.status == "True" for status in told for each in status.conditions)


def _status(claim: PreparedClaim, device: PreparedDevice, told: Told, around: Around) -> AllocatedDeviceStatus:
    before = _of(told, device)
    return AllocatedDeviceStatus(
        driver=around.driver_name,
        pool=device.pool,
        device=device.device,
        share_id=device.share_id,
        conditions=tuple(_conditions(claim, device, before, around)),
        data=_data(claim, device, before, around),
    )


def _conditions(
    claim: PreparedClaim, device: PreparedDevice, before: AllocatedDeviceStatus | None, around: Around
) -> Iterator[Condition]:
    ready = Condition(type=READY, status="True", reason="Prepared", message=f"{device.device} is prepared")
    yield _since(ready, before, claim.prepared_at or around.now)
    if not device.admin_access:
        shared = (condition for condition in (_mps_ready(device, around), _share_enforced(device, around)) if condition)
        yield from (_since(condition, before, around.now) for condition in shared)


def _mps_ready(device: PreparedDevice, around: Around) -> Condition | None:
    if device.mps is None:
        return None
    fault = _daemon_fault(device, around)
    if fault is None:
        return Condition(type=MPS_READY, status="True", reason="DaemonReady", message="its MPS daemon answers")
    if fault.is_untold:
        message = (
            f"the MPS supervisor has not answered since {fault.since}, so nobody can tell how its MPS daemon is: see "
            "whether the supervisor's pod (nodedriver.mpsd) runs on the node, and what its log says"
        )
        return Condition(type=MPS_READY, status="Unknown", reason="SupervisorSilent", message=message)
    return Condition(type=MPS_READY, status="False", reason="DaemonFault", message=str(fault))


def _daemon_fault(device: PreparedDevice, around: Around) -> Ailment | None:
    return next((each for each in around.ailing(device.gpu, device.placement) if each.cause is Cause.MPS), None)


def _share_enforced(device: PreparedDevice, around: Around) -> Condition | None:
    if device.mps is None and not device.slot_count:
        return None
    enforcer = _enforcer(device, around)
    status = _STATUS.get(enforcer, "False")
    return Condition(type=SHARE_ENFORCED, status=status, reason=enforcer.value, message=_ENFORCED[enforcer])


def _data(
    claim: PreparedClaim, device: PreparedDevice, before: AllocatedDeviceStatus | None, around: Around
) -> JsonObject:
    """What people and the portal are shown: the device's mode, its share, its limits and who enforces them."""
    data: JsonObject = {"mode": device.type.value, "uuid": device.uuid, "enforcedBy": EnforcedBy.NONE.value}
    if device.admin_access:
        return data
    data |= _share_data(device, around)
    if not _is_in_nvml(device):
        return data
    told = (before.data or {}).get("lastProcessSeen") if before else None
    last = told_time(told if isinstance(told, str) else None, around.seen(claim.uid, device.cdi_device_id))
    return data | {"lastProcessSeen": last or ""}


def _is_in_nvml(device: PreparedDevice) -> bool:
    """Whether its processes can be seen: not those of a virtual machine, and of no other vendor's card."""
    return device.vendor is Vendor.NVIDIA and device.type is not DeviceType.VFIO


def _share_data(device: PreparedDevice, around: Around) -> JsonObject:
    if device.slot_count:
        return {"sharing": "TimeSlicing", "slots": device.slots}
    if device.mps is None:
        return {}
    data: JsonObject = {
        "sharing": "MPS", "sharePercent": device.share, "enforcedBy": _enforcer(device, around).value
    }  # fmt: skip
    if device.mps.thread_percentage is not None:
        data["activeThreadPercentage"] = device.mps.thread_percentage
    if device.mps.memory_limit is not None:
        data["pinnedDeviceMemoryLimit"] = str(Quantity.of(device.mps.memory_limit, Format.BINARY_SI))
    return data


def _enforcer(device: PreparedDevice, around: Around) -> EnforcedBy:
    if device.mps is None:
        return EnforcedBy.NONE
    shares = limits_of(sharers(device, around.checkpoint.claims.values()))
    enforcer = enforced_by(device.mps, shares, around.protocol(device.uuid))
    fault = _daemon_fault(device, around)
    return EnforcedBy.UNKNOWN if fault and fault.is_untold and enforcer is not EnforcedBy.NONE else enforcer


def _since(condition: Condition, told: AllocatedDeviceStatus | None, now: str) -> Condition:
    """The condition with the time since when its status has been so."""
    before = next((each for each in told.conditions if each.type == condition.type), None) if told else None
    kept = before.last_transition_time if before and before.status == condition.status else None
    return msgspec.structs.replace(condition, last_transition_time=kept or now)


def _of(told: Told, device: PreparedDevice | DeviceRequestAllocationResult) -> AllocatedDeviceStatus | None:
    key = device.pool, device.device, device.share_id
    return next((each for each in told if _key(each) == key), None)


def _key(status: AllocatedDeviceStatus) -> tuple[str, str, str | None]:
    return status.pool, status.device, status.share_id


def _content(status: AllocatedDeviceStatus) -> object:
    return {each.type: each for each in status.conditions}, status.data
