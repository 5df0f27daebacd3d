"""Devices of resource claims that wait for another mode of their card, and what their status says of it. Pure.

The scheduler copies a device's binding conditions into the allocation, writes that, and then waits for the conditions
in `status.devices` before it binds the pod (KEP-5007). It looks for a device's status by driver, pool and device.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dra.kube.requests import Request
from dra.names import ClaimRef
from dra.objects import AllocatedDeviceStatus, Condition, ResourceClaim
from dra.objects.resourceclaim import DeviceRequestAllocationResult
from nodedriver.cardmodes import CardMode
from nodedriver.facts import PciAddress
from nodedriver.inventory import DeviceRecord, mode_failed, mode_ready
from nodedriver.statusapply import status_request


@dataclass(frozen=True, slots=True)
class Naming:
    """Whose devices they are."""

    driver_name: str
    pool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaited:
    """One such device of one claim. `mode` is what its card must be in, None for admin access, which changes nothing.

    `said` are the two conditions as its status has them.
    """

    ref: ClaimRef
    device: str
    share_id: str | None
    gpu: PciAddress
    mode: CardMode | None
    said: tuple[Condition, ...] = ()

    @property
    def is_settled(self) -> bool:
        """Whether the scheduler was told how it ended."""
        return any(condition.status == "True" for condition in self.said)


def awaited_of(claim: ResourceClaim, naming: Naming, records: Mapping[str, DeviceRecord]) -> tuple[Awaited, ...]:
    """The devices of ours that this claim was allocated and that wait, or waited."""
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation else ()
    ours = (each for each in results if (each.driver, each.pool) == (naming.driver_name, naming.pool))
    return tuple(
        _awaited(claim, result, naming, records[result.device])
        for result in ours
        if mode_ready(naming.driver_name) in result.binding_conditions and result.device in records
    )


def _awaited(
    claim: ResourceClaim, result: DeviceRequestAllocationResult, naming: Naming, record: DeviceRecord
) -> Awaited:
    ours = mode_ready(naming.driver_name), mode_failed(naming.driver_name)
    place = result.driver, result.pool, result.device, result.share_id
    statuses = (each for each in claim.status.devices if (each.driver, each.pool, each.device, each.share_id) == place)
    return Awaited(
        ref=claim.ref,
        device=result.device,
        share_id=result.share_id,
        gpu=record.gpu,
        mode=None if result.admin_access else record.mode,
        said=tuple(condition for status in statuses for condition in status.conditions if condition.type in ours),
    )


def conditions_request(naming: Naming, devices: Iterable[Awaited]) -> Request:
    """What all devices of one claim are to say, as a server-side apply.

    Its field manager is not that of the rest of the status (`claimstatus`): neither then takes back what the other
    says, and the conditions stay as long as the allocation.
    """
    said = tuple(devices)
    ref = said[0].ref
    statuses = (
        AllocatedDeviceStatus(
            driver=naming.driver_name,
            pool=naming.pool,
            device=each.device,
            share_id=each.share_id,
            conditions=each.said,
        )
        for each in said
        if each.said
    )
    return status_request(f"{naming.driver_name}/mode", ref, statuses)
