"""What ends an allocation with an error, in the allocator's words; and what does not."""

from __future__ import annotations

import pytest

from dra.allocation import Allocated, Failed, Refused, Snapshot
from dra.objects import ResourceClaim
from tests.dra.builders import (
    DRIVER,
    a_choice,
    a_claim,
    a_class,
    a_device,
    a_holder,
    a_request,
    a_slice,
    a_snapshot,
    an_alternative,
    ask_for,
    some_devices,
)

MODEL = f'device.attributes["{DRIVER}"].model == "H100"'
HINT = (
    "consider using CEL optional chaining (.? followed by orValue()) "
    "or guarding the check with has() for optional fields"
)
NO_KEY = f"CEL runtime error: no such key: model. {HINT}"
ALL = {"allocationMode": "All"}
KNOWN, UNKNOWN = a_device("gpu-0", attributes={"model": "H100"}), a_device("gpu-1")
PAIR = a_snapshot(a_slice([KNOWN, UNKNOWN]))
WRONG = a_snapshot(a_slice([UNKNOWN]))
BROKEN = a_slice([*some_devices(1), *some_devices(1)], name="broken", pool="pool-b")
MISSING = a_slice(some_devices(1), name="missing", pool="pool-b", count=2)


@pytest.mark.parametrize(
    ("snapshot", "claim", "kind", "message"),
    [
        pytest.param(
            WRONG,
            a_claim(a_request("r", MODEL)),
            "fatal",
            f"claim default/claim: selector #0 on device {DRIVER}/pool-a/gpu-1: {NO_KEY}",
            id="a selector fails on a device that is looked at",
        ),
        pytest.param(
            a_snapshot(a_slice([UNKNOWN]), classes=[a_class("gpu", "true", MODEL)]),
            a_claim(),
            "fatal",
            f"class gpu: selector #1 on device {DRIVER}/pool-a/gpu-1: {NO_KEY}",
            id="a selector of the class",
        ),
        pytest.param(
            WRONG,
            a_claim(a_choice("r", an_alternative("a", MODEL), an_alternative("b"))),
            "fatal",
            f"claim default/claim: selector #0 on device {DRIVER}/pool-a/gpu-1: {NO_KEY}",
            id="the first alternative, although the second fits",
        ),
        pytest.param(
            a_snapshot(),
            a_claim(a_request("r", count=33)),
            "fatal",
            "claim default/claim, request r: adding 33 devices exceeds the claim limit of 32, "
            "with 0 already accounted for",
            id="more devices than a claim may have",
        ),
        pytest.param(
            a_snapshot(),
            a_claim(a_request("a", count=20), a_request("b", count=20)),
            "fatal",
            "claim default/claim, request b: adding 20 devices exceeds the claim limit of 32, "
            "with 20 already accounted for",
            id="in two requests",
        ),
        pytest.param(
            a_snapshot(classes=[]),
            a_claim(),
            "fatal",
            "claim default/claim, request gpu: could not retrieve device class gpu: "
            'deviceclass.resource.k8s.io "gpu" not found',
            id="no such class",
        ),
        pytest.param(
            a_snapshot(a_slice(some_devices(1)), MISSING),
            a_claim(a_request("r", **ALL)),
            "fatal",
            f"claim default/claim, request r: asks for all devices, but resource pool {DRIVER}/pool-b is currently "
            "being updated",
            id="all beside an incomplete pool",
        ),
        pytest.param(
            a_snapshot(a_slice(some_devices(1)), BROKEN),
            a_claim(a_request("r", **ALL)),
            "fatal",
            f"claim default/claim, request r: asks for all devices, but resource pool {DRIVER}/pool-b is currently "
            "invalid",
            id="all beside an invalid pool",
        ),
        pytest.param(
            a_snapshot(BROKEN),
            a_claim(),
            "node",
            "invalid resource pools were encountered",
            id="nothing fits and a pool is invalid",
        ),
        pytest.param(
            a_snapshot(a_slice([a_device("gpu-0", attributes={"a": 1}), a_device("gpu-1", attributes={"a": 2})])),
            a_claim(a_request("r", **ALL), constraints=[{"matchAttribute": f"{DRIVER}/a"}]),
            "fatal",
            f"claim default/claim, request r: cannot add device {DRIVER}/pool-a/gpu-1 because a claim constraint would "
            "not be satisfied",
            id="all devices against a constraint",
        ),
        pytest.param(
            a_snapshot(a_slice([a_device("gpu-0", capacity={"memory": "1Gi"}, shared=True)])),
            a_claim(a_request("r", capacity={"memory": "-1"})),
            "fatal",
            f"claim default/claim, request r: checking capacity for device {DRIVER}/pool-a/gpu-0: "
            'capacity "memory": capacity value is negative',
            id="a negative capacity",
        ),
        pytest.param(
            a_snapshot(gates={"DRAPrioritizedList": False}),
            a_claim(a_choice("r", an_alternative("a"))),
            "fatal",
            "claim default/claim, request r: has subrequests, but the DRAPrioritizedList feature is disabled",
            id="alternatives with their gate off",
        ),
        pytest.param(
            a_snapshot(gates={"DRAAdminAccess": False}),
            a_claim(a_request("r", adminAccess=True)),
            "fatal",
            "claim default/claim, request r: admin access is requested, but the feature is disabled",
            id="admin access with its gate off",
        ),
        pytest.param(
            a_snapshot(),
            a_claim(a_request("r"), constraints=[{}]),
            "fatal",
            "claim default/claim, constraint #0: empty constraint (unsupported constraint type?)",
            id="a constraint of a later API",
        ),
    ],
)
def test_an_error(snapshot: Snapshot, claim: ResourceClaim, kind: str, message: str) -> None:
    answer = ask_for(snapshot, claim)

    assert isinstance(answer, Failed)
    assert (answer.kind, answer.message) == (kind, message)


def test_an_error_says_what_it_concerns() -> None:
    answer = ask_for(WRONG, a_claim(a_request("r", "true", MODEL)))

    assert isinstance(answer, Failed)
    assert (answer.code, answer.resource_claim, answer.device_request) == ("selector", "default/claim", "r")
    assert (answer.selector, str(answer.device)) == (1, f"{DRIVER}/pool-a/gpu-1")


@pytest.mark.parametrize(
    ("snapshot", "claim"),
    [
        pytest.param(PAIR, a_claim(a_request("r", MODEL)), id="an earlier device is taken"),
        pytest.param(
            a_snapshot(a_slice([UNKNOWN, KNOWN]), held=[a_holder("gpu-1")]),
            a_claim(a_request("r", MODEL)),
            id="the device is in use",
        ),
        pytest.param(
            a_snapshot(a_slice([UNKNOWN, *some_devices(1)])), a_claim(a_request("r", "true || " + MODEL)), id="absorbed"
        ),
        pytest.param(a_snapshot(a_slice(some_devices(1)), MISSING), a_claim(), id="a count beside an incomplete pool"),
        pytest.param(a_snapshot(a_slice(some_devices(1)), BROKEN), a_claim(), id="a count beside an invalid pool"),
    ],
)
def test_no_error(snapshot: Snapshot, claim: ResourceClaim) -> None:
    assert isinstance(ask_for(snapshot, claim), Allocated)


@pytest.mark.parametrize(
    ("snapshot", "claim"),
    [
        pytest.param(a_snapshot(), a_claim(a_request("r", "device.model")), id="no device, nothing is compiled"),
        pytest.param(
            a_snapshot(a_slice([UNKNOWN]), classes=[a_class("gpu", "false")]),
            a_claim(a_request("r", MODEL)),
            id="the class says no before the request is asked",
        ),
        pytest.param(a_snapshot(MISSING), a_claim(), id="an incomplete pool"),
        pytest.param(a_snapshot(), a_claim(a_request("r", **ALL)), id="all of nothing"),
        pytest.param(
            a_snapshot(a_slice(some_devices(2)), held=[a_holder("gpu-1")]),
            a_claim(a_request("r", **ALL)),
            id="all, and one is in use",
        ),
    ],
)
def test_a_refusal(snapshot: Snapshot, claim: ResourceClaim) -> None:
    assert ask_for(snapshot, claim) == Refused()
