"""A ResourceClaim to the word that people read for it. Pure; one table of badges for every page.

Words: a claim without a pod waits by design, so that is no error. Source: KEP-4381 (allocation and reservation),
KEP-4817 (device status) and KEP-5007 (devices that are made ready after they were allocated).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from dra.names import DeviceID
from dra.objects import Condition, JsonObject, ResourceClaim
from dra.readiness import unready
from portal.badge import Badge

# Who holds a share to its limits, by the word that our driver writes into the claim's device status (`enforcedBy`).
LIMITS_HELD_BY = {"Server": "the MPS server", "ClientEnvironment": "the container's environment"}
POD = "Pod"
READY = "Ready"


class ClaimState(StrEnum):
    """Where a claim stands. `GONE` and `NOT_CREATED` are for claims that are not there, or not any more."""

    NOT_CREATED = "not-created"
    WAITING_FOR_POD = "waiting-for-pod"
    WAITING_FOR_DEVICES = "waiting-for-devices"
    WAITING_FOR_READY = "waiting-for-ready"
    ALLOCATED = "allocated"
    IN_USE = "in-use"
    PREPARE_FAILED = "prepare-failed"
    DEVICE_UNHEALTHY = "device-unhealthy"
    RELEASING = "releasing"
    GONE = "gone"


BADGES: dict[ClaimState, Badge] = {
    ClaimState.NOT_CREATED: Badge("unknown", "·", "Not created"),
    ClaimState.WAITING_FOR_POD: Badge("neutral", "◌", "Waiting for a pod"),
    ClaimState.WAITING_FOR_DEVICES: Badge("wait", "◔", "Waiting for devices"),
    ClaimState.WAITING_FOR_READY: Badge("wait", "◑", "Being made ready"),
    ClaimState.ALLOCATED: Badge("team", "◕", "Allocated"),
    ClaimState.IN_USE: Badge("good", "●", "In use"),
    ClaimState.PREPARE_FAILED: Badge("bad", "✕", "Prepare failed"),
    ClaimState.DEVICE_UNHEALTHY: Badge("bad", "⊘", "Device unhealthy"),
    ClaimState.RELEASING: Badge("others", "◍", "Releasing"),
    ClaimState.GONE: Badge("others", "\N{EN DASH}", "Gone"),
}

_SENTENCES: dict[ClaimState, str] = {
    ClaimState.NOT_CREATED: "Nothing was created in the cluster.",
    ClaimState.WAITING_FOR_POD: (
        "A claim gets devices only when a pod uses it. If a pod already names this one, no node fits it yet."
    ),
    ClaimState.WAITING_FOR_DEVICES: "Pod {pod} waits until a node has the devices that this claim asks for.",
    ClaimState.WAITING_FOR_READY: "{readiness}",
    ClaimState.ALLOCATED: "The devices are set aside, and no pod is bound to them yet.",
    ClaimState.IN_USE: "Held by {holders}.",
    ClaimState.PREPARE_FAILED: "The node could not prepare the devices: {fault} Kubernetes keeps trying.",
    ClaimState.DEVICE_UNHEALTHY: (
        "A device of this claim is blocked by a taint, or no longer published. Ask an operator."
    ),
    ClaimState.RELEASING: "The claim is being deleted; its devices are free when the node has let go of them.",
    ClaimState.GONE: "The claim was deleted, and its devices are free.",
}


@dataclass(frozen=True, slots=True)
class ProcessSeen:
    """When a process was last seen on a held device, RFC 3339; "" for never since it was prepared."""

    last: str


def process_seen(data: JsonObject) -> ProcessSeen | None:
    """What our driver tells in the data of a device status; None where it can't see or speaks otherwise."""
    last = data.get("lastProcessSeen")
    return ProcessSeen(str(last)) if last == "" or _is_time(last) else None


def _is_time(value: object) -> bool:
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def state_of(claim: ResourceClaim, unhealthy: Collection[DeviceID] = ()) -> ClaimState:
    """The state of a claim that is there; `unhealthy` are the devices that a taint blocks or that are missing."""
    allocation = claim.status.allocation
    if claim.metadata.deletion_timestamp:
        return ClaimState.RELEASING
    if allocation is None:
        return ClaimState.WAITING_FOR_DEVICES if owning_pod(claim) else ClaimState.WAITING_FOR_POD
    if prepare_fault(claim):
        return ClaimState.PREPARE_FAILED
    if unready(claim):  # asked before taints: one keeps other claims off the device in the meantime
        return ClaimState.WAITING_FOR_READY
    if any(DeviceID(each.driver, each.pool, each.device) in unhealthy for each in allocation.devices.results):
        return ClaimState.DEVICE_UNHEALTHY
    return ClaimState.IN_USE if claim.status.reserved_for else ClaimState.ALLOCATED


def sentence_of(claim: ResourceClaim, state: ClaimState) -> str:
    """One sentence of plain words about that state of the claim."""
    return _SENTENCES[state].format(
        pod=owning_pod(claim), holders=_holders(claim), fault=prepare_fault(claim), readiness=_readiness(claim)
    )


def _holders(claim: ResourceClaim) -> str:
    pods = [each.name for each in claim.status.reserved_for]
    return f"pod{'s' if len(pods) > 1 else ''} {', '.join(pods)}"


def _readiness(claim: ResourceClaim) -> str:
    """What the driver says of a device that a pod waits for, "" where all are ready."""
    found = unready(claim)
    if found is None:
        return ""
    if found.failed is not None:
        why = f"The device could not be made ready: {_sentence(found.failed)}"
        return f"{why} The scheduler gives it up and tries again."
    whom = f" for {_holders(claim)}, which can start then" if claim.status.reserved_for else ""
    said = f" Its driver says: {_sentence(found.said)}" if found.said is not None else ""
    return f"The device is being made ready{whom}.{said}"


def _sentence(condition: Condition) -> str:
    text = condition.message or condition.reason or "no reason given"
    return text if text.endswith(".") else f"{text}."


def owning_pod(claim: ResourceClaim) -> str:
    """The pod that a claim was made for from a template, "" for one made by hand."""
    owners = (owner.name for owner in claim.metadata.owner_references if owner.kind == POD)
    return next(owners, "")


def prepare_fault(claim: ResourceClaim) -> str:
    """What a driver says about a device that is not ready, "" while none says so."""
    conditions = (condition for device in claim.status.devices for condition in device.conditions)
    for condition in conditions:
        if condition.type == READY and condition.status == "False":
            return condition.message or condition.reason or "no reason given."
    return ""
