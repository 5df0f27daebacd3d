"""What no single device shows: requests that compete, nearest misses, warnings, pools left out, sums over nodes."""

from __future__ import annotations

import pytest

from dra.advice.explain import explain
from dra.advice.explanation import Code, Explanation, StepKind, Verdict, WarningCode
from dra.advice.fleetwide import explain_fleet
from dra.allocation import Snapshot
from tests.dra.advice.fleets import (
    MEMORY_80,
    a_card,
    a_claim,
    a_class,
    a_device,
    a_fleet,
    a_request,
    a_slice,
    an_alternative,
    held_by,
)

MODEL = 'device.attributes["gpu.example.com"].model == "h100"'
RACK = 'device.attributes["gpu.example.com"].rack == 1'
TWO = [a_device("gpu-0"), a_device("gpu-1")]
THIRTY = [a_device(f"gpu-{n}") for n in range(30)]


def codes(explanation: Explanation) -> list[WarningCode]:
    """The kinds of warnings."""
    return [each.code for each in explanation.warnings]


def test_requests_that_compete_are_told_as_such() -> None:
    wish = a_claim(a_request("first"), a_request("second", count=2))
    first, second = explain(a_fleet(a_slice("node-a", TWO)), "node-a", [wish]).device_requests
    (fallen,) = second.steps[-1].fallen
    assert first.enough
    assert (fallen.miss.code, fallen.miss.facts) == (
        Code.COUNT_TOGETHER,
        {"needed": 2, "found": 1, "beside": ("first",)},
    )


def test_resource_claims_that_compete_are_named_by_claim_and_request() -> None:
    wishes = [a_claim(a_request(count=2), name="earlier"), a_claim(a_request(), name="later")]
    _, later = explain(a_fleet(a_slice("node-a", TWO)), "node-a", wishes).device_requests
    (fallen,) = later.steps[-1].fallen
    assert fallen.miss.facts == {"needed": 1, "found": 0, "beside": ("earlier/gpu",)}


def test_after_a_request_that_nothing_serves_the_next_stands_by_itself() -> None:
    wish = a_claim(a_request("first", "false"), a_request("second", count=2))
    first, second = explain(a_fleet(a_slice("node-a", TWO)), "node-a", [wish]).device_requests
    assert (first.enough, second.enough) == (False, True)


def test_each_alternative_has_steps_of_its_own() -> None:
    alternatives = [an_alternative("large", count=3), an_alternative("small")]
    wish = a_claim({"name": "gpu", "firstAvailable": alternatives})
    explanation = explain(a_fleet(a_slice("node-a", TWO)), "node-a", [wish])
    assert explanation.verdict is Verdict.FITS
    assert [(each.device_request, each.enough) for each in explanation.device_requests] == [
        ("gpu/large", False),
        ("gpu/small", True),
    ]


def test_a_value_that_another_request_cannot_have_is_out_of_question() -> None:
    devices = [
        a_device("gpu-0", attributes={"root": "a", "rack": 1}),
        a_device("gpu-1", attributes={"root": "b", "rack": 2}),
        a_device("gpu-2", attributes={"root": "a", "rack": 2}),
    ]
    wish = a_claim(
        a_request("one", RACK), a_request("two", count=2), constraints=[{"matchAttribute": "gpu.example.com/root"}]
    )
    _, two = explain(a_fleet(a_slice("node-a", devices)), "node-a", [wish]).device_requests
    step = next(step for step in two.steps if step.kind is StepKind.CONSTRAINT)
    reasons = {fallen.miss.facts["value"]: fallen for fallen in step.fallen}
    assert reasons.keys() == {"b"}
    assert (reasons["b"].miss.facts["needed"], reasons["b"].miss.facts["found"]) == (2, 1)


@pytest.mark.parametrize(
    ("fleet", "device", "step", "faults"),
    [
        # gpu-1 passes the selector and is in use; gpu-0 fell before
        (
            a_fleet(
                a_slice("node-a", [a_device("gpu-0", memory="40Gi"), a_device("gpu-1")]),
                held=[held_by("theirs", "training", "gpu-1")],
            ),
            "gpu-1",
            StepKind.IN_USE,
            1,
        ),
        # both are tainted, gpu-0 is in use besides
        (
            a_fleet(
                a_slice(
                    "node-a",
                    [a_device(f"gpu-{n}", taints=[{"key": "example.com/x", "effect": "NoSchedule"}]) for n in range(2)],
                ),
                held=[held_by("theirs", "training", "gpu-0")],
            ),
            "gpu-1",
            StepKind.TAINT,
            1,
        ),
    ],
    ids=["the one that fell last", "the one with fewest rules against it"],
)
def test_the_nearest_miss(fleet: Snapshot, device: str, step: StepKind, faults: int) -> None:
    (explained,) = explain(fleet, "node-a", [a_claim(a_request("gpu", MEMORY_80))]).device_requests
    near = explained.nearest_miss
    assert near is not None
    assert (near.device.device, near.step, len(near.misses)) == (device, step, faults)


def test_the_nearest_miss_of_a_selector_fails_the_fewest_conditions() -> None:
    devices = [a_device("gpu-0", memory="40Gi", attributes={"model": "l4"}), a_device("gpu-1", memory="40Gi")]
    wish = a_claim(a_request("gpu", f"{MEMORY_80} && {MODEL}"))
    (explained,) = explain(a_fleet(a_slice("node-a", devices)), "node-a", [wish]).device_requests
    assert explained.nearest_miss is not None
    assert explained.nearest_miss.device.device == "gpu-1"
    assert explained.nearest_miss.misses[0].facts["values"] == ('device.capacity["gpu.example.com"].memory = 40Gi',)


def test_a_selector_that_fails_on_the_way_aborts_all_nodes() -> None:
    explanation = explain(a_fleet(a_slice("node-a", TWO)), "node-a", [a_claim(a_request("gpu", RACK))])
    (warning,) = explanation.warnings
    assert warning.code is WarningCode.SCHEDULER_ABORTS
    assert warning.facts["device"] == "gpu.example.com/node-a/gpu-0"
    assert "no such key: rack" in str(warning.facts["message"])


def test_a_selector_that_would_fail_on_a_later_device_may_abort() -> None:
    devices = [a_device("gpu-0", attributes={"rack": 1}), a_device("gpu-1")]
    explanation = explain(a_fleet(a_slice("node-a", devices)), "node-a", [a_claim(a_request("gpu", RACK))])
    (warning,) = explanation.warnings
    assert explanation.verdict is Verdict.FITS
    assert (warning.code, warning.facts["device"]) == (
        WarningCode.SELECTOR_MAY_ABORT,
        "gpu.example.com/node-a/gpu-1",
    )


def test_all_beside_an_incomplete_pool_aborts_and_the_pool_is_named() -> None:
    fleet = a_fleet(a_slice("node-a", TWO), a_slice("node-a", TWO, pool="more", count=2))
    explanation = explain(fleet, "node-a", [a_claim(a_request(allocationMode="All"))])
    (pool,) = explanation.pools
    assert codes(explanation) == [WarningCode.SCHEDULER_ABORTS]
    assert (pool.code, pool.facts["pool"]) == (Code.POOL_INCOMPLETE, "gpu.example.com/more")
    assert explanation.device_requests[0].steps[0].facts == {"incomplete": ("gpu.example.com/more",)}


def test_an_invalid_pool_fails_this_node_only() -> None:
    fleet = a_fleet(a_slice("node-a", [a_device("gpu-0"), a_device("gpu-0")]))
    explanation = explain(fleet, "node-a", [a_claim(a_request())])
    assert codes(explanation) == [WarningCode.NODE_FAILS]
    assert [each.code for each in explanation.pools] == [Code.POOL_INVALID]


def test_a_search_that_the_scheduler_does_not_finish_is_said() -> None:
    explanation = explain(a_fleet(a_slice("node-a", THIRTY)), "node-a", [a_claim(a_request(count=31))])
    assert codes(explanation) == [WarningCode.SCHEDULER_TIMES_OUT]


def test_a_malformed_amount_has_a_verdict_and_no_steps() -> None:
    wish = a_claim(a_request(capacity={"requests": {"memory": "many"}}))
    explanation = explain(a_fleet(a_slice("node-a", TWO)), "node-a", [wish])
    assert (explanation.verdict, explanation.device_requests) == (Verdict.FAILED, ())
    assert codes(explanation) == [WarningCode.SCHEDULER_ABORTS]


def test_a_fleet_by_hand() -> None:
    """Three nodes of two devices; one node's are small, one device elsewhere is in use."""
    small = [a_device("gpu-0", memory="40Gi"), a_device("gpu-1", memory="40Gi")]
    fleet = a_fleet(
        a_slice("node-a", TWO),
        a_slice("node-b", TWO),
        a_slice("node-c", small),
        held=[held_by("theirs", "training", "gpu-0", pool="node-b")],
    )
    explanation = explain_fleet(fleet, [a_claim(a_request("gpu", MEMORY_80, count=2))])
    (device_request,) = explanation.device_requests
    assert explanation.nodes == {Verdict.FITS: 1, Verdict.REFUSED: 2}
    assert [step.left for step in device_request.steps] == [6, 6, 4, 4, 3, 3, 3, 2]
    assert [fallen.count for step in device_request.steps for fallen in step.fallen] == [2, 1, 1]


def test_nodes_of_one_kind_are_counted_without_being_asked_one_by_one() -> None:
    fleet = a_fleet(*(a_slice(f"node-{n}", TWO) for n in range(50)), classes=[a_class()])
    (device_request,) = explain_fleet(fleet, [a_claim(a_request("gpu", "false"))]).device_requests
    (fallen,) = device_request.steps[2].fallen
    assert (fallen.count, len(fallen.devices)) == (100, 2)


def test_counters_that_exclude_each_other_are_found_beside_an_earlier_request() -> None:
    fleet = a_card(("2", "40Gi"), ("4", "80Gi"))
    small = 'device.driver == "gpu.example.com" && true'
    _, second = explain(fleet, "node-a", [a_claim(a_request("one", small), a_request("two"))]).device_requests
    assert second.steps[-1].fallen[0].miss.code is Code.COUNT_TOGETHER
