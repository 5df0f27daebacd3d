"""Whether the devices of an allocated resource claim are ready for a pod: what binding conditions say (KEP-5007). Pure.

A device with `bindingConditions` is allocated first and made ready then: the scheduler binds no pod of its claim before
all those conditions are true in `status.devices`, and gives the allocation up where a `bindingFailureConditions` is.
"""

from __future__ import annotations

from dataclasses import dataclass

from dra.objects import Condition, DeviceRequestAllocationResult, ResourceClaim


@dataclass(frozen=True, slots=True)
class Unready:
    """The first device that is not ready. `failed` is the failure condition that is true; `said` the binding condition
    that is not, None where the driver said nothing of it yet.
    """

    device: DeviceRequestAllocationResult
    failed: Condition | None = None
    said: Condition | None = None


def waits_for_devices(claim: ResourceClaim) -> bool:
    """Whether some allocated device has binding conditions, be they true by now or not."""
    return any(result.binding_conditions for result in _results(claim))


def unready(claim: ResourceClaim) -> Unready | None:
    """The first device that is not ready; None where all are (kube-scheduler `isClaimReadyForBinding`, 1.37.2).

    A failure of a later device does not count before the earlier ones are ready. Shares of one device have one answer:
    its first status.
    """
    found = (_unready(claim, result) for result in _results(claim) if result.binding_conditions)
    return next((each for each in found if each is not None), None)


def _results(claim: ResourceClaim) -> tuple[DeviceRequestAllocationResult, ...]:
    return claim.status.allocation.devices.results if claim.status.allocation else ()


def _unready(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> Unready | None:
    said = _said(claim, result)
    for name in result.binding_failure_conditions:
        if name in said and said[name].status == "True":
            return Unready(result, failed=said[name])
    for name in result.binding_conditions:
        if name not in said or said[name].status != "True":
            return Unready(result, said=said.get(name))
    return None


def _said(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> dict[str, Condition]:
    place = result.driver, result.pool, result.device
    for status in claim.status.devices:
        if (status.driver, status.pool, status.device) == place:
            return {condition.type: condition for condition in status.conditions}
    return {}
