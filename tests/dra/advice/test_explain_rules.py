"""Each rule of an explanation: how many devices it leaves, how many fall, and with which facts. One row a rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from dra.advice.explain import explain
from dra.advice.explanation import Code, DeviceRequestExplanation, Fact, Step, StepKind, Verdict
from dra.allocation import Snapshot
from dra.features import Features
from dra.objects import ResourceClaim
from tests.dra.advice.fleets import (
    MEMORY_80,
    a_card,
    a_claim,
    a_class,
    a_device,
    a_fleet,
    a_request,
    a_slice,
    asks_for,
    draws,
    held_by,
    shared,
)

XID = {"key": "gpu.example.com/xid", "value": "48", "effect": "NoSchedule"}


@dataclass(frozen=True, kw_only=True)
class Row:
    """A rule: the fleet and the wish, what its step leaves and drops, and a reason with its facts."""

    name: str
    fleet: Snapshot
    wish: ResourceClaim
    step: StepKind
    left: int
    fell: int
    code: Code
    facts: Mapping[str, Fact] = field(default_factory=dict)
    index: int = 0
    verdict: Verdict = Verdict.REFUSED


THREE = [a_device("gpu-0"), a_device("gpu-1", memory="40Gi"), a_device("gpu-2", attributes={"model": "a100"})]

ROWS = [
    Row(
        name="a selector of the class is false",
        fleet=a_fleet(
            a_slice("node-a", THREE),
            classes=[a_class("gpu", 'device.attributes["gpu.example.com"].model == "b200"')],
        ),
        wish=a_claim(a_request()),
        step=StepKind.CLASS,
        left=0,
        fell=3,
        code=Code.SELECTOR_FALSE,
        facts={"selector": 0, "conjunct": 'device.attributes["gpu.example.com"].model == "b200"'},
    ),
    Row(
        name="the class is missing",
        fleet=a_fleet(a_slice("node-a", THREE), classes=[a_class("other")]),
        wish=a_claim(a_request()),
        step=StepKind.CLASS,
        left=0,
        fell=3,
        code=Code.CLASS_MISSING,
        facts={"device_class": "gpu"},
        verdict=Verdict.FAILED,
    ),
    Row(
        name="a conjunct of a request's selector is false",
        fleet=a_fleet(a_slice("node-a", THREE)),
        wish=a_claim(a_request("gpu", f'device.driver == "gpu.example.com" && {MEMORY_80}', count=3)),
        step=StepKind.SELECTOR,
        left=2,
        fell=1,
        code=Code.SELECTOR_FALSE,
        facts={"selector": 0, "conjunct": MEMORY_80},
    ),
    Row(
        name="the second selector is a step of its own",
        fleet=a_fleet(a_slice("node-a", THREE)),
        wish=a_claim(a_request("gpu", MEMORY_80, 'device.attributes["gpu.example.com"].model == "a100"', count=2)),
        step=StepKind.SELECTOR,
        index=1,
        left=1,
        fell=1,
        code=Code.SELECTOR_FALSE,
        facts={"selector": 1},
    ),
    Row(
        name="a selector that fails aborts",
        fleet=a_fleet(a_slice("node-a", THREE)),
        wish=a_claim(a_request("gpu", 'device.attributes["gpu.example.com"].absent == "x"')),
        step=StepKind.SELECTOR,
        left=0,
        fell=3,
        code=Code.SELECTOR_ERROR,
        facts={"error": "no such key: absent"},
        verdict=Verdict.FAILED,
    ),
    Row(
        name="a taint is not tolerated",
        fleet=a_fleet(a_slice("node-a", [a_device("gpu-0", taints=[{**XID, "timeAdded": "2026-11-30T09:12:00Z"}])])),
        wish=a_claim(a_request()),
        step=StepKind.TAINT,
        left=0,
        fell=1,
        code=Code.TAINT_NOT_TOLERATED,
        facts={"taint": "gpu.example.com/xid=48:NoSchedule", "since": "2026-11-30T09:12:00Z"},
    ),
    Row(
        name="a device is in use",
        fleet=a_fleet(a_slice("node-a", THREE), held=[held_by("theirs", "training", "gpu-0", "gpu-1")]),
        wish=a_claim(a_request(count=2)),
        step=StepKind.IN_USE,
        left=1,
        fell=2,
        code=Code.DEVICE_IN_USE,
    ),
    Row(
        name="what is in use leaves the other counters",
        fleet=a_card(("1", "20Gi"), ("3", "60Gi"), ("1", "20Gi"), held=("part-0",)),
        wish=a_claim(a_request("gpu", count=3)),
        step=StepKind.COUNTERS,
        left=2,
        fell=0,
        code=Code.DEVICE_IN_USE,
    ),
    Row(
        name="a counter has too little left for a larger part",
        fleet=a_card(("2", "40Gi"), ("3", "60Gi"), held=("part-0",)),
        wish=a_claim(a_request()),
        step=StepKind.COUNTERS,
        left=0,
        fell=1,
        code=Code.COUNTER_SHORT,
        facts={"counter_set": "card", "counter": "memory", "needed": "60Gi", "left": "40Gi"},
    ),
    Row(
        name="partitions need their gate",
        fleet=a_fleet(
            a_slice("node-a", [a_device("part-0", **draws("1", "20Gi"))]),
            features=Features(partitionable_devices=False),
        ),
        wish=a_claim(a_request()),
        step=StepKind.COUNTERS,
        left=0,
        fell=1,
        code=Code.FEATURE_OFF,
        facts={"gate": "DRAPartitionableDevices"},
    ),
    Row(
        name="a capacity is not published",
        fleet=a_fleet(a_slice("node-a", THREE)),
        wish=a_claim(a_request(capacity={"requests": {"cores": "10"}})),
        step=StepKind.CAPACITY,
        left=0,
        fell=3,
        code=Code.CAPACITY_ABSENT,
        facts={"capacity": "cores", "requested": "10"},
    ),
    Row(
        name="a whole device is too small",
        fleet=a_fleet(a_slice("node-a", THREE)),
        wish=a_claim(a_request(count=3, **asks_for("64Gi"))),
        step=StepKind.CAPACITY,
        left=2,
        fell=1,
        code=Code.CAPACITY_SHORT,
        facts={"capacity": "memory", "needed": "64Gi", "left": "40Gi", "value": "40Gi"},
    ),
    Row(
        name="a policy's maximum",
        fleet=a_fleet(
            a_slice("node-a", [a_device("gpu-0", **shared("80Gi", validRange={"min": "1Gi", "max": "40Gi"}))])
        ),
        wish=a_claim(a_request(**asks_for("50Gi"))),
        step=StepKind.CAPACITY,
        left=0,
        fell=1,
        code=Code.CAPACITY_POLICY,
        facts={"capacity": "memory", "needed": "50Gi"},
    ),
    Row(
        name="other shares leave too little, after rounding",
        fleet=a_fleet(
            a_slice("node-a", [a_device("gpu-0", **shared("80Gi", validRange={"min": "5Gi", "step": "5Gi"}))]),
            held=[held_by("theirs", "training", "gpu-0", shareID="s", consumedCapacity={"memory": "70Gi"})],
        ),
        wish=a_claim(a_request(**asks_for("12Gi"))),
        step=StepKind.CAPACITY,
        left=0,
        fell=1,
        code=Code.CAPACITY_SHORT,
        facts={"capacity": "memory", "needed": "15Gi", "left": "10Gi", "value": "80Gi"},
    ),
    Row(
        name="a constraint's attribute is missing",
        fleet=a_fleet(a_slice("node-a", [a_device("gpu-0", attributes={"root": "a"}), a_device("gpu-1")])),
        wish=a_claim(a_request(count=2), constraints=[{"matchAttribute": "gpu.example.com/root"}]),
        step=StepKind.CONSTRAINT,
        left=0,
        fell=2,
        code=Code.CONSTRAINT_ABSENT,
        facts={"attribute": "gpu.example.com/root"},
    ),
    Row(
        name="too few devices share a value",
        fleet=a_fleet(a_slice("node-a", [a_device(f"gpu-{n}", attributes={"root": r}) for n, r in enumerate("aabb")])),
        wish=a_claim(a_request(count=3), constraints=[{"matchAttribute": "gpu.example.com/root"}]),
        step=StepKind.CONSTRAINT,
        left=0,
        fell=4,
        code=Code.CONSTRAINT_MATCH,
        facts={"attribute": "gpu.example.com/root", "value": "a", "needed": 3, "found": 2},
    ),
    Row(
        name="values that differ are too few",
        fleet=a_fleet(a_slice("node-a", [a_device(f"gpu-{n}", attributes={"root": r}) for n, r in enumerate("aab")])),
        wish=a_claim(a_request(count=3), constraints=[{"distinctAttribute": "gpu.example.com/root"}]),
        step=StepKind.CONSTRAINT,
        left=2,
        fell=1,
        code=Code.CONSTRAINT_DISTINCT,
        facts={"attribute": "gpu.example.com/root", "value": "a", "device": "gpu-0"},
    ),
    Row(
        name="fewer than the count",
        fleet=a_fleet(a_slice("node-a", THREE)),
        wish=a_claim(a_request(count=4)),
        step=StepKind.COUNT,
        left=0,
        fell=3,
        code=Code.COUNT_SHORT,
        facts={"needed": 4, "found": 3},
    ),
    Row(
        name="more than one resource claim may have",
        fleet=a_fleet(a_slice("node-a", [a_device(f"gpu-{n}") for n in range(33)])),
        wish=a_claim(a_request(count=33)),
        step=StepKind.COUNT,
        left=0,
        fell=33,
        code=Code.COUNT_OVER_LIMIT,
        facts={"needed": 33, "limit": 32},
        verdict=Verdict.FAILED,
    ),
    Row(
        name="partitions that exclude each other",
        fleet=a_card(("2", "40Gi"), ("2", "40Gi"), ("3", "60Gi"), ("4", "80Gi")),
        wish=a_claim(a_request(count=3)),
        step=StepKind.COUNT,
        left=0,
        fell=4,
        code=Code.COUNT_SHORT,
        facts={"needed": 3, "found": 2},
    ),
    Row(
        name="All needs those in use, too",
        fleet=a_fleet(a_slice("node-a", THREE), held=[held_by("theirs", "training", "gpu-1")]),
        wish=a_claim(a_request(allocationMode="All")),
        step=StepKind.COUNT,
        left=0,
        fell=2,
        code=Code.COUNT_SHORT,
        facts={"needed": 3, "found": 2},
    ),
    Row(
        name="All leaves out what is too small",
        fleet=a_fleet(a_slice("node-a", THREE), held=[held_by("theirs", "training", "gpu-0")]),
        wish=a_claim(a_request(allocationMode="All", **asks_for("64Gi"))),
        step=StepKind.COUNT,
        left=0,
        fell=1,
        code=Code.COUNT_SHORT,
        facts={"needed": 2, "found": 1},
    ),
]


def only(explained: tuple[DeviceRequestExplanation, ...]) -> DeviceRequestExplanation:
    """The one device request."""
    (found,) = explained
    return found


def step_of(explained: DeviceRequestExplanation, kind: StepKind, index: int = 0) -> Step:
    """The step of that kind."""
    return next(step for step in explained.steps if step.kind is kind and step.index == index)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_each_rule_says_who_falls_and_why(row: Row) -> None:
    explanation = explain(row.fleet, "node-a", [row.wish])
    device_request = only(explanation.device_requests)
    step = step_of(device_request, row.step, row.index)
    misses = [fallen.miss for each in device_request.steps for fallen in each.fallen]
    assert (step.evaluated, step.left, step.fell) == (True, row.left, row.fell)
    assert any(miss.code is row.code and row.facts.items() <= miss.facts.items() for miss in misses), misses
    assert explanation.verdict is row.verdict


def test_what_no_device_reaches_is_not_evaluated() -> None:
    explanation = explain(a_fleet(a_slice("node-a", THREE)), "node-a", [a_claim(a_request("gpu", "false"))])
    steps = only(explanation.device_requests).steps
    assert [step.kind for step in steps if step.evaluated] == [StepKind.DEVICES, StepKind.CLASS, StepKind.SELECTOR]


def test_a_wish_that_fits_passes_every_step() -> None:
    explanation = explain(a_fleet(a_slice("node-a", THREE)), "node-a", [a_claim(a_request("gpu", MEMORY_80))])
    device_request = only(explanation.device_requests)
    assert explanation.verdict is Verdict.FITS
    assert [step.left for step in device_request.steps] == [3, 3, 2, 2, 2, 2, 2, 2]
    assert all(step.evaluated for step in device_request.steps)
    assert device_request.nearest_miss is None
    assert device_request.enough
