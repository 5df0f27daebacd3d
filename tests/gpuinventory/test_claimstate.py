"""The word for a claim, by what the object says: one row per state."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dra.names import DeviceID
from dra.objects import ResourceClaim, decode
from gpuinventory.claimstate import BADGES, ClaimState, sentence_of, state_of
from tests.gpuinventory.fleet import DRIVER, claim, device

CARD = device("node-a", "gpu-0", percent=25)
OF_A_POD: dict[str, Any] = {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "train-0", "uid": "u"}]}


def status(condition: str, message: str) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": condition, "message": message}]
    return {"driver": DRIVER, "pool": "node-a", "device": "gpu-0", "shareID": "share-25", "conditions": conditions}


def read(body: bytes, *, devices: list[dict[str, Any]] | None = None) -> ResourceClaim:
    if devices:
        content = json.loads(body)
        content["status"]["devices"] = devices
        body = json.dumps(content).encode()
    return decode(body, ResourceClaim)


@pytest.mark.parametrize(
    ("resource_claim", "state", "sentence"),
    [
        pytest.param(
            read(claim("ml-team", "c")),
            ClaimState.WAITING_FOR_POD,
            "A claim gets devices only when a pod uses it. If a pod already names this one, no node fits it yet.",
            id="made by hand, not allocated",
        ),
        pytest.param(
            read(claim("ml-team", "c", **OF_A_POD)),
            ClaimState.WAITING_FOR_DEVICES,
            "Pod train-0 waits until a node has the devices that this claim asks for.",
            id="made for a pod, not allocated",
        ),
        pytest.param(
            read(claim("ml-team", "c", [CARD])),
            ClaimState.ALLOCATED,
            "The devices are set aside, and no pod is bound to them yet.",
            id="allocated, not reserved",
        ),
        pytest.param(
            read(claim("ml-team", "c", [CARD], pods=["train-0"])),
            ClaimState.IN_USE,
            "Held by pod train-0.",
            id="reserved",
        ),
        pytest.param(
            read(claim("ml-team", "c", [CARD], pods=["a", "b"])),
            ClaimState.IN_USE,
            "Held by pods a, b.",
            id="by two pods",
        ),
        pytest.param(
            read(claim("ml-team", "c", [CARD], pods=["a"]), devices=[status("False", "the card is lost.")]),
            ClaimState.PREPARE_FAILED,
            "The node could not prepare the devices: the card is lost. Kubernetes keeps trying.",
            id="the driver says not ready",
        ),
        pytest.param(
            read(claim("ml-team", "c", [CARD], pods=["a"]), devices=[status("True", "")]),
            ClaimState.IN_USE,
            "Held by pod a.",
            id="the driver says ready",
        ),
        pytest.param(
            read(claim("ml-team", "c", [CARD], pods=["a"], deletionTimestamp="2026-01-02T03:04:05Z")),
            ClaimState.RELEASING,
            "The claim is being deleted; its devices are free when the node has let go of them.",
            id="deleted while in use",
        ),
    ],
)
def test_state_and_sentence(resource_claim: ResourceClaim, state: ClaimState, sentence: str) -> None:
    found = state_of(resource_claim)
    assert (found, sentence_of(resource_claim, found)) == (state, sentence)


READY, FAILED = f"{DRIVER}/mode-ready", f"{DRIVER}/mode-failed"
LATE = CARD | {"bindingConditions": [READY], "bindingFailureConditions": [FAILED]}


def told(**conditions: tuple[str, str]) -> list[dict[str, Any]]:
    """What a driver says of the device: status and message of each condition."""
    said = [
        {"type": f"{DRIVER}/{name.replace('_', '-')}", "status": status, "reason": "Waiting", "message": message}
        for name, (status, message) in conditions.items()
    ]
    return [{key: LATE[key] for key in ("driver", "pool", "device", "shareID")} | {"conditions": said}]


@pytest.mark.parametrize(
    ("pods", "devices", "sentence"),
    [
        pytest.param(
            ["a"], [], "The device is being made ready for pod a, which can start then.", id="nothing said yet"
        ),
        pytest.param(
            ["a"],
            told(mode_ready=("False", "GPU 0000:1b:00.0 is held by process 7 (sleep)")),
            "The device is being made ready for pod a, which can start then. "
            "Its driver says: GPU 0000:1b:00.0 is held by process 7 (sleep).",
            id="the driver says what it waits for",
        ),
        pytest.param(
            ["a"],
            told(mode_ready=("False", "the reset failed."), mode_failed=("True", "the reset failed.")),
            "The device could not be made ready: the reset failed. The scheduler gives it up and tries again.",
            id="it failed",
        ),
        pytest.param(
            [],
            told(mode_ready=("False", ""), mode_failed=("False", "")),
            "The device is being made ready. Its driver says: Waiting.",
            id="between two tries of the scheduler",
        ),
    ],
)
def test_a_device_that_is_made_ready(pods: list[str], devices: list[dict[str, Any]], sentence: str) -> None:
    waits = read(claim("ml-team", "c", [LATE], pods=pods), devices=devices)
    # The driver taints it meanwhile, so that no other claim comes: that makes nobody's claim unhealthy.
    state = state_of(waits, {DeviceID(DRIVER, "node-a", "gpu-0")})
    assert (state, sentence_of(waits, state)) == (ClaimState.WAITING_FOR_READY, sentence)


def test_a_device_that_was_made_ready_is_as_the_others() -> None:
    held = read(claim("ml-team", "c", [LATE], pods=["a"]), devices=told(mode_ready=("True", "it is in its mode")))
    assert state_of(held) is ClaimState.IN_USE
    assert state_of(held, {DeviceID(DRIVER, "node-a", "gpu-0")}) is ClaimState.DEVICE_UNHEALTHY


def test_a_device_that_a_taint_blocks_makes_the_claim_unhealthy() -> None:
    held = read(claim("ml-team", "c", [CARD], pods=["a"]))
    assert state_of(held, {DeviceID(DRIVER, "node-a", "gpu-0")}) is ClaimState.DEVICE_UNHEALTHY
    assert state_of(held, {DeviceID(DRIVER, "node-a", "gpu-1")}) is ClaimState.IN_USE


def test_every_state_has_a_badge_with_a_word_and_glyph_of_its_own() -> None:
    assert BADGES.keys() == set(ClaimState)
    assert (
        len({badge.word for badge in BADGES.values()}) == len({badge.glyph for badge in BADGES.values()}) == len(BADGES)
    )
