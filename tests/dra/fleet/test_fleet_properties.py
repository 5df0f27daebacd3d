"""Properties of fleet answers: nodes asked one by one, claims granted one after another, and fleets built anew.

The yardstick is `allocate` on one node, which is held to kube-scheduler elsewhere; here it is asked without groups,
caches or steps taken over from an earlier snapshot.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dra.allocation import Allocated, Failed, Snapshot, allocate
from dra.fleet import Fleet, FleetAnswer, Instances, PodNeeds, Wish, fits
from dra.objects import ResourceClaim, ResourceSlice
from dra.quantity import Quantity
from tests.dra.fleet.fleets import claim, device, fleet, grant, held, node, percent, pool

NAMES = ("node-a", "node-b", "node-c", "node-d")
COUNTERS = [{"name": "card", "counters": {"slices": {"value": "3"}}}]
SELECTORS = (
    'device.attributes["gpu.example.com"].?model.orValue("") == "A"',
    'device.attributes["gpu.example.com"].model == "A"',
    'device.attributes["gpu.example.com"].?uuid.orValue("") < "node-b/1"',
)
PODS = (None, None, PodNeeds(), PodNeeds(requests={"cpu": "3"}), PodNeeds(node_selector={"zone": "east"}))


@st.composite
def pools(draw: st.DrawFn, where: str) -> list[ResourceSlice]:
    """Up to four cards: plain, by shares, or drawing on counters; some without a model."""
    kind = draw(st.sampled_from(("plain", "plain", "shared", "counters")))
    models = draw(st.lists(st.sampled_from(("A", "A", "B", "")), max_size=4))
    devices: list[dict[str, Any]] = []
    for number, model in enumerate(models):
        texts = {"model": model} if model else {}
        each = device(f"gpu-{number}", uuid=f"{where}/{number}", share=25 if kind == "shared" else 0, **texts)
        slices = str(draw(st.integers(1, 3))) if kind == "counters" else ""
        draws = [{"counterSet": "card", "counters": {"slices": {"value": slices}}}]
        devices.append(each | ({"consumesCounters": draws} if slices else {}))
    return pool(where, *devices, counters=COUNTERS if kind == "counters" else ())


@st.composite
def fabric(draw: st.DrawFn) -> list[ResourceSlice]:
    """A pool that all nodes reach, before or after their own, or none."""
    count = draw(st.sampled_from((0, 0, 1, 3)))
    name = draw(st.sampled_from(("fabric", "zfabric")))
    return pool("", *(device(f"nic-{i}", model="A") for i in range(count)), name=name) if count else []


@st.composite
def fleets(draw: st.DrawFn) -> Snapshot:
    nodes = [node(name, zone=draw(st.sampled_from(("east", "west")))) for name in NAMES]
    own = [draw(pools(name)) for name in NAMES]
    taken = [each for name in NAMES if draw(st.booleans()) for each in held(name, "gpu-0")]
    return fleet(nodes, *own, draw(fabric()), claims=taken)


def wishes() -> st.SearchStrategy[ResourceClaim]:
    selectors = st.lists(st.sampled_from(SELECTORS), max_size=1)
    counted = st.builds(lambda texts, count: claim("wish", *texts, count=count), selectors, st.integers(1, 3))
    everything = st.builds(lambda texts: claim("wish", *texts, allocationMode="All"), selectors)
    return st.one_of(counted, counted, everything, st.sampled_from((25, 60)).map(percent))


def brute_force(snapshot: Snapshot, wish: ResourceClaim) -> int:
    """Grants until nothing fits, each node by name until it is full."""
    number = 0
    for name in NAMES:
        while isinstance(answer := allocate(snapshot, name, (wish,)), Allocated):
            number += 1
            snapshot = grant(snapshot, wish, answer, number)
    return number


def unseen(snapshot: Snapshot) -> Snapshot:
    return replace(snapshot, views={})


@given(fleets(), wishes())
def test_a_fleet_says_what_its_nodes_say(snapshot: Snapshot, wish: ResourceClaim) -> None:
    alone = {name: allocate(unseen(snapshot), name, (wish,)) for name in NAMES}
    answer = fits(snapshot, Wish(resource_claims=(wish,)))
    assert answer.nodes == tuple(name for name in NAMES if isinstance(alone[name], Allocated))
    assert answer.fitting == len(answer.nodes)
    assert sorted(name for group in answer.groups for name in group.nodes) == list(NAMES)
    assert all(group.answer == alone[group.nodes[0]] for group in answer.groups)
    assert all(type(group.answer) is type(alone[name]) for group in answer.groups for name in group.nodes)
    aborting = {name for name, each in alone.items() if isinstance(each, Failed) and each.kind == "fatal"}
    assert {name for abort in answer.aborts for name in abort.nodes} == aborting


@given(fleets(), wishes())
def test_the_total_is_what_can_be_granted_one_after_another(snapshot: Snapshot, wish: ResourceClaim) -> None:
    assert fits(snapshot, Wish(resource_claims=(wish,))).total == Instances(brute_force(snapshot, wish))


@given(fleets(), wishes())
def test_the_number_of_nodes_is_that_of_those_that_allocate_unless_one_ends_it_all(
    snapshot: Snapshot, wish: ResourceClaim
) -> None:
    answers = [allocate(snapshot, name, (wish,)) for name in NAMES]
    ended = any(isinstance(answer, Failed) and answer.kind == "fatal" for answer in answers)
    number = sum(isinstance(answer, Allocated) for answer in answers)
    assert Fleet().nodes(snapshot, Wish(resource_claims=(wish,))) == (0 if ended else number)


@given(fleets(), st.lists(st.sampled_from(SELECTORS[:1]), max_size=1))
def test_the_largest_count_is_the_last_that_fits(snapshot: Snapshot, selectors: list[str]) -> None:
    counts = [
        count
        for count in range(1, 9)
        for name in NAMES
        if isinstance(allocate(snapshot, name, (claim("wish", *selectors, count=count),)), Allocated)
    ]
    largest = fits(snapshot, Wish(resource_claims=(claim("wish", *selectors),))).largest
    assert (largest.count if largest else 0) == max(counts, default=0)


@st.composite
def changes(draw: st.DrawFn, snapshot: Snapshot) -> Snapshot:
    """The snapshot after one more change of some kind."""
    name = draw(st.sampled_from(NAMES))
    match draw(st.sampled_from(("claim", "release", "slices", "cordon", "leave", "class"))):
        case "claim":
            (taken,) = held(name, f"gpu-{draw(st.integers(0, 3))}")
            return snapshot.with_claim(taken)
        case "release":
            return snapshot.without_claim("default", f"{name}-gpu-0")
        case "slices":
            for slice_ in (f"{name}-0", f"{name}-1"):
                snapshot = snapshot.without_slice(slice_)
            for each in draw(pools(name)):
                snapshot = snapshot.with_slice(each)
            return snapshot
        case "cordon":
            return snapshot.with_node(node(name, zone=draw(st.sampled_from(("east", "north")))))
        case "leave":
            return snapshot.without_node(name)
        case _:
            return snapshot.without_class("gpu")


@settings(max_examples=60)
@given(st.data())
def test_a_fleet_that_follows_changes_answers_as_a_new_one(data: st.DataObject) -> None:
    snapshot, following = data.draw(fleets()), Fleet()
    asked = [
        Wish(resource_claims=(wish,), pod=pod)
        for wish, pod in data.draw(st.lists(st.tuples(wishes(), st.sampled_from(PODS)), min_size=1, max_size=2))
    ]
    usage = {"node-a": {"cpu": Quantity.of(3)}}
    for _ in range(data.draw(st.integers(1, 5))):
        for wish in asked:
            assert following.answer(snapshot, wish, usage) == fits(unseen(snapshot), wish, usage)
        snapshot = data.draw(changes(snapshot))
    assert_same(following, snapshot, asked)


def assert_same(following: Fleet, snapshot: Snapshot, asked: list[Wish]) -> None:
    answers: list[FleetAnswer] = [following.answer(snapshot, wish) for wish in asked]
    assert answers == [fits(unseen(snapshot), wish) for wish in asked]
