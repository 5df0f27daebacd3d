"""What the scheduler writes once a node is chosen: allocations, reservations, the wait for devices, the binding. Pure.

As DynamicResources' PreBind and DefaultBinder do (kubernetes/pkg/scheduler/framework/plugins, 1.37.2).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from dra.extended import SpecialClaim
from dra.objects import AllocationResult, DeviceRequestAllocationResult
from simulator import kinds
from simulator.claims import EXTENDED, FINALIZER, consumer, is_reserved
from simulator.hands import SCHEDULER, Hands, Told, owned_by, with_condition
from simulator.store import Object

BINDING_SECONDS: Final = 600  # DynamicResourcesArgs.bindingTimeout


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A pod, its node and claims, and what was found for each claim that was not allocated yet, by its name."""

    pod: Object
    node: str
    claims: tuple[Object, ...]
    results: dict[str, AllocationResult]
    special: SpecialClaim | None = None
    special_result: AllocationResult | None = None


@dataclass(frozen=True, slots=True)
class Binding:
    """Whether devices let the pod be bound: `ready`, or why never, or neither and the pod has to wait."""

    ready: bool
    fault: str = ""


def reserve(hands: Hands, wanted: Reservation) -> Object:
    """Write allocations and reservations; the pod as it is then. ApiError where quota refuses the special claim."""
    pod = wanted.pod
    if wanted.special is not None and wanted.special_result is not None:
        pod = _with_special(hands, pod, wanted.special, wanted.special_result)
    for claim in wanted.claims:
        if not is_reserved(claim, pod):
            _reserve(hands, pod, claim, wanted.results.get(claim["metadata"]["name"]))
    return pod


def _with_special(hands: Hands, pod: Object, special: SpecialClaim, result: AllocationResult) -> Object:
    meta = {
        "generateName": f"{pod['metadata']['name']}-extended-resources-",
        "namespace": pod["metadata"]["namespace"],
        "annotations": {EXTENDED: "true"},
        "ownerReferences": owned_by(pod),
    }
    requests = [_plain(each) for each in special.device_requests]
    claim = hands.create(kinds.RESOURCE_CLAIM, {"metadata": meta, "spec": {"devices": {"requests": requests}}})
    _reserve(hands, pod, claim, result)
    mappings = [_plain(each) for each in special.mappings]
    status = {"requestMappings": mappings, "resourceClaimName": claim["metadata"]["name"]}
    return hands.set_status(kinds.POD, pod, {"extendedResourceClaimStatus": status})


def _reserve(hands: Hands, pod: Object, claim: Object, result: AllocationResult | None) -> None:
    fields: Object = {}
    if result is not None:
        finalizers = claim["metadata"].get("finalizers", [])
        if FINALIZER not in finalizers:
            meta = claim["metadata"] | {"finalizers": [*finalizers, FINALIZER]}
            claim = hands.replace(kinds.RESOURCE_CLAIM, claim | {"metadata": meta})
        fields = {"allocation": _stamped(hands, result)}
    reserved = claim.get("status", {}).get("reservedFor", [])
    hands.set_status(kinds.RESOURCE_CLAIM, claim, fields | {"reservedFor": [*reserved, consumer(pod)]})


def _stamped(hands: Hands, result: AllocationResult) -> Object:
    """The allocation with its time, and with share ids where devices are shared."""
    devices = tuple(_with_share_id(hands, each) for each in result.devices.results)
    stamped = msgspec.structs.replace(
        result,
        devices=msgspec.structs.replace(result.devices, results=devices),
        allocation_timestamp=hands.now,
    )
    return _plain(stamped)


def _plain(struct: msgspec.Struct) -> Object:
    """The struct as JSON values, lists among them."""
    value: Object = msgspec.json.decode(msgspec.json.encode(struct))
    return value


def _with_share_id(hands: Hands, given: DeviceRequestAllocationResult) -> DeviceRequestAllocationResult:
    return given if given.share_id is None else msgspec.structs.replace(given, share_id=hands.fresh_uid())


def binding_of(claims: Iterable[Object], now: str) -> Binding:
    """What the devices of allocated claims say about binding (KEP-5007)."""
    ready = True
    for claim in claims:
        for device in _conditional(claim):
            conditions = _conditions(claim, device)
            failed = next(
                (each for each in device.get("bindingFailureConditions", ()) if _is_true(conditions, each)), ""
            )
            if failed:
                return Binding(ready=False, fault=_failure(claim, conditions[failed]))
            ready = ready and all(_is_true(conditions, each) for each in device["bindingConditions"])
        if not ready and _seconds_since(claim, now) > BINDING_SECONDS:
            return Binding(ready=False, fault=f"device binding timeout: claim={claim['metadata']['name']}")
    return Binding(ready=ready)


def _conditional(claim: Object) -> Iterator[Object]:
    results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
    return (each for each in results if each.get("bindingConditions"))


def _conditions(claim: Object, device: Object) -> dict[str, Object]:
    identity = [device.get(key) for key in ("driver", "pool", "device", "shareID")]
    for status in claim["status"].get("devices", ()):
        if [status.get(key) for key in ("driver", "pool", "device", "shareID")] == identity:
            return {each["type"]: each for each in status.get("conditions", ())}
    return {}


def _is_true(conditions: dict[str, Object], name: str) -> bool:
    return bool(conditions.get(name, {}).get("status") == "True")


def _failure(claim: Object, condition: Object) -> str:
    name, reason, message = claim["metadata"]["name"], condition.get("reason", ""), condition.get("message", "")
    return f'device binding failed: claim={name}, reason={reason}, message="{message}"'


def _seconds_since(claim: Object, now: str) -> float:
    began = claim["status"]["allocation"].get("allocationTimestamp", now)
    return (datetime.fromisoformat(now) - datetime.fromisoformat(began)).total_seconds()


def deallocate(hands: Hands, claims: Iterable[Object]) -> None:
    """Take back what could not be bound, so that other devices can be tried."""
    for claim in claims:
        hands.set_status(kinds.RESOURCE_CLAIM, claim, {"allocation": None, "reservedFor": None, "devices": None})


def bind(hands: Hands, pod: Object, node: str) -> None:
    """Put the pod on the node, and say so."""
    bound = hands.replace(kinds.POD, pod | {"spec": pod["spec"] | {"nodeName": node}})
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": hands.now}
    conditions = with_condition(bound["status"].get("conditions", []), scheduled)
    hands.set_status(kinds.POD, bound, {"conditions": conditions})
    meta = pod["metadata"]
    message = f"Successfully assigned {meta['namespace']}/{meta['name']} to {node}"
    hands.tell(pod, Told(SCHEDULER, "Scheduled", message, warning=False, action="Binding"))
