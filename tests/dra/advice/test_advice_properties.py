"""What holds for every fleet and wish: counts add up, every suggestion fits, a fleet is the sum of its nodes."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dra.advice.explain import explain
from dra.advice.explanation import DeviceRequestExplanation, Verdict
from dra.advice.fleetwide import explain_fleet
from dra.advice.suggest import suggest
from dra.allocation import Allocated, Snapshot, allocate
from dra.objects import ResourceClaim
from tests.dra.advice.fleets import (
    MEMORY_80,
    a_claim,
    a_device,
    a_fleet,
    a_request,
    a_slice,
    an_alternative,
    asks_for,
    held_by,
    shared,
)

SELECTORS = (
    MEMORY_80,
    'device.attributes["gpu.example.com"].model == "h100"',
    'device.attributes["gpu.example.com"].rack == 1',
    "device.allowMultipleAllocations",
)
TAINT = {"key": "example.com/drain", "effect": "NoSchedule"}

devices = st.builds(
    lambda memory, model, rack, share, taint: {
        "memory": memory,
        "attributes": {"model": model, **({"rack": rack} if rack else {})},
        **(shared(memory) if share else {}),
        **({"taints": [TAINT]} if taint else {}),
    },
    memory=st.sampled_from(["40Gi", "80Gi"]),
    model=st.sampled_from(["h100", "a100"]),
    rack=st.sampled_from([1, 1, 2, None]),
    share=st.booleans(),
    taint=st.sampled_from([False, False, True]),
)


@st.composite
def fleets(draw: st.DrawFn) -> Snapshot:
    """One to three nodes of one to four devices, some held."""
    slices, held = [], []
    for node in range(draw(st.integers(1, 3))):
        drawn = draw(st.lists(devices, min_size=1, max_size=4))
        slices.append(a_slice(f"node-{node}", [a_device(f"gpu-{n}", **each) for n, each in enumerate(drawn)]))
        names = [f"gpu-{n}" for n in range(len(drawn)) if draw(st.sampled_from([False, False, True]))]
        if names:
            held.append(held_by("theirs", f"training-{node}", *names, pool=f"node-{node}"))
    return a_fleet(*slices, held=held)


@st.composite
def wishes(draw: st.DrawFn) -> ResourceClaim:
    """One or two device requests, one of them perhaps with alternatives, perhaps a constraint."""
    requests: list[Any] = []
    for number in range(draw(st.integers(1, 2))):
        selectors = draw(st.lists(st.sampled_from(SELECTORS), max_size=2, unique=True))
        more = draw(st.sampled_from([{}, {"count": 2}, {"count": 3}, asks_for("50Gi"), {"allocationMode": "All"}]))
        if draw(st.sampled_from([False, False, True])):
            alternatives = [an_alternative("first", *selectors, **more), an_alternative("second")]
            requests.append({"name": f"r{number}", "firstAvailable": alternatives})
        else:
            requests.append(a_request(f"r{number}", *selectors, **more))
    rules = draw(st.sampled_from([[], [{"matchAttribute": "gpu.example.com/model"}]]))
    return a_claim(*requests, constraints=rules)


@given(fleet=fleets(), wish=wishes())
def test_each_step_has_what_the_one_before_left(fleet: Snapshot, wish: ResourceClaim) -> None:
    for node in fleet.nodes:
        for each in explain(fleet, node, [wish]).device_requests:
            adds_up(each)


@given(fleet=fleets(), wish=wishes())
def test_the_verdict_is_the_engines_answer(fleet: Snapshot, wish: ResourceClaim) -> None:
    for node in fleet.nodes:
        explanation, answer = explain(fleet, node, [wish]), allocate(fleet, node, [wish])
        assert (explanation.verdict is Verdict.FITS) == isinstance(answer, Allocated)
        if explanation.verdict is Verdict.REFUSED:
            by_request: dict[str, bool] = {}
            for each in explanation.device_requests:
                base = each.device_request.partition("/")[0]
                by_request[base] = by_request.get(base, False) or each.enough
            assert not all(by_request.values()), "refused, and no device request says why"


@given(fleet=fleets(), wish=wishes())
def test_every_suggestion_fits_on_as_many_nodes_as_it_says(fleet: Snapshot, wish: ResourceClaim) -> None:
    for each in suggest(fleet, [wish]):
        answers = [allocate(fleet, node, each.resource_claims) for node in fleet.nodes]
        nodes = sum(isinstance(answer, Allocated) for answer in answers)
        assert nodes > 0
        assert each.facts["nodes"] == nodes


@given(fleet=fleets(), wish=wishes())
def test_a_fleet_is_the_sum_of_its_nodes(fleet: Snapshot, wish: ResourceClaim) -> None:
    whole = explain_fleet(fleet, [wish])
    nodes = [explain(fleet, node, [wish]) for node in fleet.nodes]
    assert whole.nodes == Counter(each.verdict for each in nodes)
    for index, summed in enumerate(whole.device_requests):
        parts = [each.device_requests[index] for each in nodes if each.device_requests]
        assert [step.left for step in summed.steps] == [
            sum(steps) for steps in zip(*([step.left for step in part.steps] for part in parts), strict=True)
        ]


@given(fleet=fleets(), wish=wishes())
def test_answers_that_are_known_change_no_explanation(fleet: Snapshot, wish: ResourceClaim) -> None:
    answers = {node: allocate(fleet, node, [wish]) for node in list(fleet.nodes)[::2]}
    assert explain_fleet(fleet, [wish], answers) == explain_fleet(fleet, [wish])
    assert suggest(fleet, [wish], answers=answers) == suggest(fleet, [wish])


def adds_up(device_request: DeviceRequestExplanation) -> None:
    """Evaluated steps come first; each has left + fell devices of those that the one before left."""
    evaluated = [step for step in device_request.steps if step.evaluated]
    assert evaluated == list(device_request.steps[: len(evaluated)])
    for before, after in pairwise(evaluated):
        assert before.left == after.left + after.fell
    for step in evaluated:
        assert step.fell == sum(fallen.count for fallen in step.fallen)
        assert all(len(fallen.devices) == fallen.count for fallen in step.fallen)
