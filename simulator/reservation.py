"""What the scheduler writes once a node is chosen: allocations, reservations, the binding; and how it takes them back.

As DynamicResources' PreBind, Unreserve and PostFilter and DefaultBinder do (kubernetes/pkg/scheduler/framework/plugins,
1.37.2). Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from dra.extended import SpecialClaim
from dra.objects import AllocationResult, DeviceRequestAllocationResult
from simulator import kinds
from simulator.claims import EXTENDED, FINALIZER, claims_of, consumer, is_reserved, without_finalizer
from simulator.hands import SCHEDULER, Hands, Told, owned_by, with_condition
from simulator.store import Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A pod, its node and claims, and what was found for each claim that was not allocated yet, by its name."""

    pod: Object
    node: str
    claims: tuple[Object, ...]
    results: dict[str, AllocationResult]
    special: SpecialClaim | None = None
    special_result: AllocationResult | None = None


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


def unreserve(hands: Hands, pod: Object) -> None:
    """The pod's claims without the pod; the one for its extended resources goes, the others keep their allocation."""
    for claim in claims_of(hands, pod):
        if is_special(claim):
            hands.delete(without_finalizer(hands, claim))
        elif is_reserved(claim, pod):
            left = [each for each in claim["status"]["reservedFor"] if each["uid"] != pod["metadata"]["uid"]]
            hands.set_status(kinds.RESOURCE_CLAIM, claim, {"reservedFor": left or None})


def deallocate(hands: Hands, pod: Object, claims: Iterable[Object]) -> bool:
    """Take the allocation of the first claim back that nobody but the pod may use; False where there is none."""
    for claim in claims:
        if {each["uid"] for each in claim["status"].get("reservedFor", ())} <= {pod["metadata"]["uid"]}:
            nothing = {"allocation": None, "devices": None, "reservedFor": None}
            hands.set_status(kinds.RESOURCE_CLAIM, claim, nothing)
            return True
    return False


def is_special(claim: Object) -> bool:
    """Whether the scheduler made it, for extended resources of a pod."""
    return bool(claim["metadata"].get("annotations", {}).get(EXTENDED) == "true")


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


def bind(hands: Hands, pod: Object, node: str) -> None:
    """Put the pod on the node, and say so."""
    bound = hands.replace(kinds.POD, pod | {"spec": pod["spec"] | {"nodeName": node}})
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": hands.now}
    conditions = with_condition(bound["status"].get("conditions", []), scheduled)
    hands.set_status(kinds.POD, bound, {"conditions": conditions, "nominatedNodeName": None})
    meta = pod["metadata"]
    message = f"Successfully assigned {meta['namespace']}/{meta['name']} to {node}"
    hands.tell(pod, Told(SCHEDULER, "Scheduled", message, warning=False))
