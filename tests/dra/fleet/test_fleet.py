"""Answers of small fleets, counted by hand; every row names the rule that it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import pytest

from dra.allocation import Failed, Refused, Snapshot
from dra.fleet import Fleet, FleetAnswer, Instances, LargestCount, PodNeeds, PodObstacle, PodRule, Wish, fits
from dra.objects import ResourceClaim
from dra.quantity import parse_quantity
from tests.dra.fleet.fleets import (
    cards,
    claim,
    device,
    device_class,
    fleet,
    held,
    node,
    percent,
    pool,
)

THREE: Final = ("node-a", "node-b", "node-c")
HALVES: Final = [{"name": "card", "counters": {"slices": {"value": "2"}}}]


def asked(snapshot: Snapshot, *claims: ResourceClaim, pod: PodNeeds | None = None) -> FleetAnswer:
    return fits(snapshot, Wish(resource_claims=claims or (claim(),), pod=pod))


def three(*counts: int) -> Snapshot:
    """Nodes a, b and c with that many free cards."""
    return fleet(map(node, THREE), *(cards(name, count) for name, count in zip(THREE, counts, strict=True)))


NIC: Final = pool("", device("nic", kind="nic"), name="net")


def models(**counts: int) -> Snapshot:
    """Nodes a, b and c with cards of one model each."""
    pools = (cards(name, count, model=model) for name, (model, count) in zip(THREE, counts.items(), strict=True))
    return fleet(map(node, THREE), *pools)


def drawing(name: str, slices: int) -> dict[str, object]:
    return device(name) | {"consumesCounters": [{"counterSet": "card", "counters": {"slices": {"value": str(slices)}}}]}


@dataclass(frozen=True, slots=True)
class Row:
    """A fleet, a wish, and what is counted by hand."""

    rule: str
    fleet: Snapshot
    wish: ResourceClaim
    nodes: tuple[str, ...]
    total: Instances
    best: str | None
    largest: LargestCount | None


ROWS: Final = (
    Row(
        "each free card once",
        three(1, 2, 0), claim(),
        ("node-a", "node-b"), Instances(3), "node-a", LargestCount(2, "node-b"),
    ),
    Row("equal nodes count each", three(2, 2, 2), claim(), THREE, Instances(6), "node-a", LargestCount(2, "node-a")),
    Row(
        "pairs leave odd cards",
        three(3, 2, 1), claim(count=2),
        ("node-a", "node-b"), Instances(2), "node-a", LargestCount(3, "node-a"),
    ),
    Row(
        "the largest although it does not fit",
        three(1, 2, 1), claim(count=4),
        (), Instances(0), None, LargestCount(2, "node-b"),
    ),
    Row("nothing at all", three(0, 0, 0), claim(), (), Instances(0), None, None),
    Row(
        "what is held is gone",
        fleet(map(node, THREE), *(cards(name, 2) for name in THREE), claims=held("node-b", "gpu-0", "gpu-1")),
        claim(), ("node-a", "node-c"), Instances(4), "node-a", LargestCount(2, "node-a"),
    ),
    Row(
        "the fullest node is best",
        fleet(map(node, THREE), *(cards(name, 3) for name in THREE), claims=held("node-c", "gpu-1")),
        claim(), THREE, Instances(8), "node-c", LargestCount(3, "node-a"),
    ),
    Row(
        "a selector leaves some nodes",
        models(A=2, B=2, C=1),
        claim("wish", 'device.attributes["gpu.example.com"].model != "A"'),
        ("node-b", "node-c"), Instances(3), "node-c", LargestCount(2, "node-b"),
    ),
    Row(
        "shares of 40 percent: two a card",
        fleet(map(node, THREE), *(cards(name, 1, share=20) for name in THREE)),
        percent(40), THREE, Instances(6), "node-a", LargestCount(1, "node-a"),
    ),
    Row(
        "counters: a whole card or two halves",
        fleet(
            [node("node-a")],
            pool("node-a", drawing("whole", 2), drawing("half-0", 1), drawing("half-1", 1), counters=HALVES),
        ),
        claim(), ("node-a",), Instances(1), "node-a", LargestCount(2, "node-a"),
    ),
    Row(
        "identifiers are asked node by node",
        three(2, 2, 2),
        claim("wish", 'device.attributes["gpu.example.com"].uuid == "node-b/1"'),
        ("node-b",), Instances(1), "node-b", LargestCount(1, "node-b"),
    ),
    Row(
        "a pool for all nodes is counted once",
        fleet(map(node, THREE), pool("", device("nic-0"), device("nic-1"), name="fabric")),
        claim(), THREE, Instances(2), "node-a", LargestCount(2, "node-a"),
    ),
    Row(
        "own cards beside a shared pool that nobody asks for",
        fleet(map(node, THREE), *(cards(n, 1, kind="gpu") for n in THREE), NIC),
        claim("wish", 'device.attributes["gpu.example.com"].kind == "gpu"'),
        THREE, Instances(3), "node-a", LargestCount(1, "node-a"),
    ),
    Row(
        "own cards, then a shared one",
        fleet(map(node, THREE), *(cards(name, 1) for name in THREE), pool("", device("nic"), name="zfabric")),
        claim(), THREE, Instances(4), "node-a", LargestCount(2, "node-a"),
    ),
    Row(
        "admin access never ends",
        three(1, 0, 0), claim(adminAccess=True),
        ("node-a",), Instances(256, bounded=False), "node-a", LargestCount(1, "node-a"),
    ),
    Row(
        "a shareable device without capacity never ends",
        fleet([node("node-a")], pool("node-a", device("gpu-0") | {"allowMultipleAllocations": True})),
        claim(), ("node-a",), Instances(256, bounded=False), "node-a", LargestCount(1, "node-a"),
    ),
    Row(
        "all devices of a node, once",
        three(2, 1, 0), claim(allocationMode="All"),
        ("node-a", "node-b"), Instances(2), "node-a", None,
    ),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=[row.rule for row in ROWS])
def test_counts(row: Row) -> None:
    answer = asked(row.fleet, row.wish)
    assert answer.nodes == row.nodes
    assert (answer.fitting, answer.total, answer.best) == (len(row.nodes), row.total, row.best)
    assert answer.largest == row.largest
    assert answer.aborts == ()


def test_two_claims_of_one_pod_are_granted_together() -> None:
    answer = asked(three(3, 1, 2), claim("one"), claim("two"))
    assert answer.nodes == ("node-a", "node-c")
    assert answer.total == Instances(2)
    assert answer.largest is None


def test_nodes_that_see_the_same_are_one_group() -> None:
    snapshot = fleet(map(node, THREE), *(cards(name, 2) for name in THREE), claims=held("node-b", "gpu-0"))
    groups = asked(snapshot).groups
    assert [group.nodes for group in groups] == [("node-a", "node-c"), ("node-b",)]
    assert [group.instances for group in groups] == [Instances(2), Instances(1)]


def test_an_answer_has_the_names_of_its_group() -> None:
    """The group of node-b and node-c has an answer of node-b, although node-a was in that state before."""
    snapshot = fleet(map(node, THREE), *(cards(name, 2) for name in THREE))
    for name in THREE[1:]:
        (holder,) = held(name, "gpu-0")
        snapshot = snapshot.with_claim(holder)
    by_node = {group.nodes: group.answer for group in asked(snapshot).groups}
    (result,) = by_node["node-b", "node-c"].results[0].devices.results  # type: ignore[union-attr]
    assert (result.pool, result.device) == ("node-b", "gpu-1")


def test_a_selector_that_fails_aborts_for_the_nodes_that_meet_it() -> None:
    snapshot = fleet(map(node, THREE), cards("node-a", 1, model="A"), cards("node-b", 1), cards("node-c", 1))
    answer = asked(snapshot, claim("wish", 'device.attributes["gpu.example.com"].model == "A"'))
    assert answer.nodes == ("node-a",)
    (abort,) = answer.aborts
    assert abort.nodes == ("node-b", "node-c")
    assert (abort.failed.code, abort.failed.selector) == ("selector", 0)
    assert str(abort.failed.device) == "gpu.example.com/node-b/gpu-0"


def test_a_missing_class_aborts_everywhere() -> None:
    answer = asked(fleet(map(node, THREE), *(cards(name, 1) for name in THREE), classes=()))
    (abort,) = answer.aborts
    assert (abort.nodes, abort.failed.code) == (THREE, "class_missing")
    assert (answer.fitting, answer.total) == (0, Instances(0))


def test_an_invalid_pool_concerns_its_node_only() -> None:
    twice = pool("node-b", device("gpu-0"), device("gpu-0"))
    answer = asked(fleet(map(node, THREE), cards("node-a", 1), twice, cards("node-c", 1)))
    assert answer.nodes == ("node-a", "node-c")
    assert answer.aborts == ()
    (failed,) = (group.answer for group in answer.groups if group.nodes == ("node-b",))
    assert isinstance(failed, Failed)
    assert failed.kind == "node"


def test_a_malformed_node_selector_aborts_where_it_is_read() -> None:
    slices = pool("", device("gpu-0"), name="fabric")
    term = {"matchExpressions": [{"key": "zone", "operator": "Near", "values": ["east"]}]}
    wire = msgspec.to_builtins(slices[0])
    wire["spec"] |= {"allNodes": False, "nodeSelector": {"nodeSelectorTerms": [term]}}
    snapshot = fleet(map(node, THREE), [msgspec.convert(wire, type(slices[0]))])
    answer = asked(snapshot)
    assert [abort.failed.code for abort in answer.aborts] == ["node_selector"] * 3


def test_what_does_not_fit_is_a_refusal() -> None:
    (group,) = asked(three(1, 1, 1), claim(count=2)).groups
    assert group.answer == Refused()


def test_a_search_that_would_time_out_is_counted() -> None:
    names = [f"gpu-{i}" for i in range(24)]
    snapshot = fleet(map(node, THREE[:2]), *(pool(name, *map(device, names)) for name in THREE[:2]))
    answer = asked(snapshot, claim(count=25))
    assert (answer.fitting, answer.timeouts) == (0, 2)
    assert answer.largest == LargestCount(24, "node-a")


def test_the_largest_count_is_found_where_counters_tell() -> None:
    """Of 8 cards that are one device or three, 24 devices can be had."""
    parts = (("whole", "3"), ("two", "2"), ("a", "1"), ("b", "1"), ("c", "1"))
    largest = asked(partitioned(8, {"slices": "3"}, [(name, {"slices": amount}) for name, amount in parts])).largest
    assert largest == LargestCount(24, "node-a")


def test_a_largest_count_that_takes_long_to_find_is_left_open() -> None:
    """Each card gives two devices, though each counter alone would do for three; no two cards are alike."""
    parts = [(f"{name}{n}", draws) for n in range(3) for name, draws in (("a", TWO_ONE), ("b", ONE_TWO))]
    largest = asked(partitioned(12, {"x": "3", "y": "3"}, parts, unlike=True)).largest
    assert largest is not None
    assert 12 <= largest.count <= 24
    assert not largest.exact


TWO_ONE = {"x": "2", "y": "1"}
ONE_TWO = {"x": "1", "y": "2"}


def partitioned(
    count: int, counters: Mapping[str, str], parts: Sequence[tuple[str, Mapping[str, str]]], *, unlike: bool = False
) -> Snapshot:
    """A node of that many cards, each with these counters and parts; unlike ones have one more counter each."""
    sets, devices = [], []
    for card in range(count):
        extra = {"own": str(100 + card)} if unlike else {}
        sets.append({"name": f"card-{card}", "counters": _values({**counters, **extra})})
        for name, draws in parts:
            drawn = _values({**draws, **({"own": "1"} if unlike else {})})
            uses = [{"counterSet": f"card-{card}", "counters": drawn}]
            devices.append(device(f"gpu-{card}-{name}") | {"consumesCounters": uses})
    return fleet([node("node-a")], pool("node-a", *devices, counters=sets))


def _values(amounts: Mapping[str, str]) -> dict[str, dict[str, str]]:
    return {name: {"value": amount} for name, amount in amounts.items()}


def test_no_nodes_no_answer() -> None:
    answer = asked(fleet([]))
    assert answer == FleetAnswer(
        groups=(), fitting=0, total=Instances(0), best=None, largest=None, aborts=(), timeouts=0
    )


def test_a_device_is_free_but_the_pod_does_not_fit() -> None:
    answer = asked(three(2, 1, 0), pod=PodNeeds(requests={"cpu": "16"}))
    assert (answer.nodes, answer.total, answer.best) == ((), Instances(0), None)
    assert answer.pod_obstacles == (
        PodObstacle(rule=PodRule.RESOURCES, subject="cpu", nodes=2, asked="16", most_left="8"),
    )


def test_pods_have_room_less_often_than_devices() -> None:
    pod = PodNeeds(requests={"cpu": "3"})
    usage = {"node-b": {"cpu": parse_quantity("4"), "pods": parse_quantity("1")}}
    answer = fits(three(4, 4, 1), Wish(resource_claims=(claim(),), pod=pod), usage)
    # 8 CPUs take 2 pods of 3; 4 of 8 take 1; node-c has one card.
    assert (answer.fitting, answer.total) == (3, Instances(4))


def test_nodes_that_take_no_such_pod_are_not_counted() -> None:
    wish = Wish(resource_claims=(claim(),), pod=PodNeeds(requests={"cpu": "5"}))
    assert Fleet().nodes(three(4, 4, 1), wish, {"node-b": {"cpu": parse_quantity("4")}}) == 2


def test_an_excluded_node_aborts_nothing_and_has_no_largest_count() -> None:
    snapshot = fleet([node("node-a", zone="east"), node("node-b")], cards("node-a", 1, model="A"), cards("node-b", 3))
    wish = claim("wish", 'device.attributes["gpu.example.com"].model == "A"')
    answer = asked(snapshot, wish, pod=PodNeeds(node_selector={"zone": "east"}))
    assert answer.aborts == ()
    assert answer.nodes == ("node-a",)
    assert answer.pod_refused == {"node-b"}
    assert answer.largest == LargestCount(1, "node-a")


def test_room_for_pods_ends_what_devices_do_not() -> None:
    answer = asked(three(1, 0, 0), claim(adminAccess=True), pod=PodNeeds())
    assert answer.total == Instances(110)


def test_the_class_selects_for_the_wish() -> None:
    snapshot = fleet(
        map(node, THREE),
        *(cards(name, 1, model=name) for name in THREE),
        classes=[device_class('device.attributes["gpu.example.com"].model != "node-a"')],
    )
    assert asked(snapshot).nodes == ("node-b", "node-c")
