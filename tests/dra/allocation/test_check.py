"""The judge of results: it accepts what the scheduler gave, and says what is wrong with anything else."""

from __future__ import annotations

import msgspec
import pytest

from dra.allocation import Snapshot
from dra.allocation.check import violations
from dra.objects import AllocationResult, ResourceClaim
from tests.dra.builders import (
    DRIVER,
    NODE,
    POOL,
    Json,
    a_choice,
    a_claim,
    a_device,
    a_holder,
    a_request,
    a_share,
    a_slice,
    a_snapshot,
    an_alternative,
    some_cards,
    some_devices,
)

SHARED = a_snapshot(
    a_slice([a_device("gpu-0", capacity={"memory": "10Gi"}, shared=True)]),
    held=[a_holder(a_share("gpu-0", memory="6Gi"))],
)
PAIR = a_snapshot(a_slice([a_device("gpu-0", attributes={"n": 1}), a_device("gpu-1", attributes={"n": 2})]))
CARD = a_snapshot(*some_cards(1))
HERE: Json = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [NODE]}]}]}
SAME = [{"matchAttribute": f"{DRIVER}/n"}]
DISTINCT = [{"distinctAttribute": f"{DRIVER}/n"}]
TWO = a_request("gpu", count=2)


def split(count: int) -> Snapshot:
    """A card that is drawn empty by a device of another node; there are three slices, each names `count`."""
    draws = {"card": {"slots": 2}}
    return a_snapshot(
        a_slice(name="counters", counters={"card": {"slots": 2}}, count=count),
        a_slice([a_device("here", draws=draws)], name="devices", count=count),
        a_slice([a_device("there", draws=draws)], name="others", nodeName="node-b", count=count),
        held=[a_holder("there")],
    )


def unseen() -> Snapshot:
    """A card drawn empty by a device of a slice with compatibility groups, which is not seen with their gate off."""
    grouped = a_device("grouped", draws={"card": {"slots": 2}})
    grouped["consumesCounters"][0]["compatibilityGroups"] = ["a"]
    return a_snapshot(
        a_slice(name="counters", counters={"card": {"slots": 2}}, count=2),
        a_slice([a_device("plain", draws={"card": {"slots": 2}})], name="devices", count=2),
        a_slice([grouped], name="groups", count=2),
        held=[a_holder("grouped")],
    )


def given(*devices: str | Json, selector: Json | None = HERE) -> AllocationResult:
    """A result with these devices of the pool for the request `gpu`."""
    results = [
        {"request": "gpu", "driver": DRIVER, "pool": POOL, **({"device": each} if isinstance(each, str) else each)}
        for each in devices
    ]
    return msgspec.convert({"devices": {"results": results}, "nodeSelector": selector}, AllocationResult)


@pytest.mark.parametrize(
    ("snapshot", "claim", "result"),
    [
        pytest.param(PAIR, a_claim(), given("gpu-1"), id="any device will do"),
        pytest.param(PAIR, a_claim(TWO, constraints=DISTINCT), given("gpu-1", "gpu-0"), id="distinct"),
        pytest.param(SHARED, a_claim(), given(a_share("gpu-0", memory="4Gi") | {"shareID": ""}), id="a share"),
        pytest.param(
            PAIR,
            a_claim(a_choice("gpu", an_alternative("b"))),
            given({"device": "gpu-0", "request": "gpu/b"}),
            id="choice",
        ),
        pytest.param(CARD, a_claim(TWO), given("card-0-half-0", "card-0-half-1"), id="halves"),
        pytest.param(unseen(), a_claim(), given("plain"), id="drawn by a slice with groups, the gate off"),
        pytest.param(split(2), a_claim(), given("here"), id="drawn by slices that the scheduler does not look at"),
    ],
)
def test_nothing_is_wrong(snapshot: Snapshot, claim: ResourceClaim, result: AllocationResult) -> None:
    assert violations(snapshot, NODE, [claim], [result]) == []


@pytest.mark.parametrize(
    ("snapshot", "claim", "result", "what"),
    [
        pytest.param(PAIR, a_claim(), given("gpu-9"), "is not published for node node-a", id="no such device"),
        pytest.param(PAIR, a_claim(TWO), given("gpu-0"), "request gpu has 1 devices for 2", id="too few"),
        pytest.param(PAIR, a_claim(TWO), given("gpu-0", "gpu-0"), "is given 2 times", id="twice"),
        pytest.param(PAIR, a_claim(), given(), "request gpu is answered by nothing", id="no answer"),
        pytest.param(PAIR, a_claim(a_request("gpu", "false")), given("gpu-0"), "false is false", id="not selected"),
        pytest.param(PAIR, a_claim(TWO, constraints=SAME), given("gpu-0", "gpu-1"), "devices differ in", id="match"),
        pytest.param(
            a_snapshot(a_slice(some_devices(1)), held=[a_holder("gpu-0")]),
            a_claim(),
            given("gpu-0"),
            "in use",
            id="in use",
        ),
        pytest.param(CARD, a_claim(TWO), given("card-0-whole", "card-0-half-0"), "overdrawn", id="counters"),
        pytest.param(split(3), a_claim(), given("here"), "overdrawn", id="counters drawn on another node"),
        pytest.param(
            SHARED,
            a_claim(),
            given(a_share("gpu-0", memory="5Gi")),
            "more than 10Gi of memory is consumed",
            id="capacity",
        ),
        pytest.param(SHARED, a_claim(), given("gpu-0"), "a share has a share ID", id="a share as a whole device"),
        pytest.param(PAIR, a_claim(), given("gpu-0", selector=None), "without a node selector", id="not pinned"),
        pytest.param(
            a_snapshot(a_slice(some_devices(1), count=2)),
            a_claim(),
            given("gpu-0"),
            "1 of 2 slices",
            id="incomplete pool",
        ),
        pytest.param(
            a_snapshot(a_slice([a_device("gpu-0", taints=[{"key": "k", "effect": "NoExecute"}])])),
            a_claim(),
            given("gpu-0"),
            "taint k=:NoExecute is not tolerated",
            id="a taint",
        ),
    ],
)
def test_something_is_wrong(snapshot: Snapshot, claim: ResourceClaim, result: AllocationResult, what: str) -> None:
    assert any(what in each for each in violations(snapshot, NODE, [claim], [result]))
