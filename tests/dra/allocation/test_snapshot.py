"""A snapshot that follows changes is the one that reads everything anew, and shares what did not change."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dra.allocation import Allocated, NodeView, Snapshot, UnknownNodeError, compile_slice
from dra.objects import ResourceClaim
from dra.pools import PoolState
from tests.dra.builders import (
    NODE,
    a_claim,
    a_class,
    a_device,
    a_holder,
    a_node,
    a_request,
    a_rule,
    a_share,
    a_slice,
    a_snapshot,
    ask_for,
    some_cards,
    some_devices,
)

ONE, TWO = a_slice(some_devices(1)), a_slice(some_devices(2))
FAR = a_slice([a_device("far")], name="shared", pool="pool-z", allNodes=True)
HOLDER = a_holder("gpu-0")
NODES = [a_node(), a_node("node-b")]
BROKEN = a_rule(selector={"device": "gpu-0"})

CHANGES = [
    pytest.param(a_snapshot(), lambda old: old.with_slice(ONE), a_snapshot(ONE), id="a first slice"),
    pytest.param(a_snapshot(ONE), lambda old: old.with_slice(TWO), a_snapshot(TWO), id="a slice that changed"),
    pytest.param(a_snapshot(ONE), lambda old: old.without_slice("slice-a"), a_snapshot(), id="a slice that went"),
    pytest.param(a_snapshot(ONE), lambda old: old.without_slice("other"), a_snapshot(ONE), id="a slice never seen"),
    pytest.param(
        a_snapshot(a_slice(some_devices(1), pool="pool-b")),
        lambda old: old.with_slice(ONE),
        a_snapshot(ONE),
        id="a slice that moved to another pool",
    ),
    pytest.param(
        a_snapshot(a_slice(some_devices(1), nodeName="node-b")),
        lambda old: old.with_slice(ONE),
        a_snapshot(ONE),
        id="a slice that moved to another node",
    ),
    pytest.param(a_snapshot(ONE), lambda old: old.with_slice(FAR), a_snapshot(ONE, FAR), id="for all nodes"),
    pytest.param(TWO, lambda old: old.with_claim(HOLDER), a_snapshot(TWO, held=[HOLDER]), id="a claim"),
    pytest.param(
        a_snapshot(TWO, held=[HOLDER]),
        lambda old: old.with_claim(a_holder("gpu-1")),
        a_snapshot(TWO, held=[a_holder("gpu-1")]),
        id="a claim that moved",
    ),
    pytest.param(
        a_snapshot(TWO, held=[HOLDER]),
        lambda old: old.with_claim(a_claim(name="holder")),
        a_snapshot(TWO),
        id="a claim that gave up",
    ),
    pytest.param(
        a_snapshot(TWO, held=[HOLDER]),
        lambda old: old.without_claim("default", "holder"),
        a_snapshot(TWO),
        id="a claim that went",
    ),
    pytest.param(TWO, lambda old: old.with_taint_rule(BROKEN), a_snapshot(TWO, rules=[BROKEN]), id="a rule"),
    pytest.param(
        a_snapshot(TWO, rules=[BROKEN]),
        lambda old: old.without_taint_rule("rule"),
        a_snapshot(TWO),
        id="no rule",
    ),
    pytest.param(a_snapshot(TWO, classes=[]), lambda old: old.with_class(a_class()), a_snapshot(TWO), id="a class"),
    pytest.param(TWO, lambda old: old.without_class("gpu"), a_snapshot(TWO, classes=[]), id="a class that went"),
    pytest.param(a_snapshot(TWO, nodes=[]), lambda old: old.with_node(a_node()), a_snapshot(TWO), id="a node"),
]


@pytest.mark.parametrize(("old", "change", "expected"), CHANGES)
def test_a_change(old: Snapshot, change: Callable[[Snapshot], Snapshot], expected: Snapshot) -> None:
    old = old if isinstance(old, Snapshot) else a_snapshot(old)
    if NODE in old.nodes:
        ask_for(old)  # what it computed must not outlive the change
    new = change(old)

    assert ask_for(new) == ask_for(expected)
    assert new.node(NODE).key is expected.node(NODE).key
    assert (set(new.pools), new.slice_pools.keys()) == (set(expected.pools), expected.slice_pools.keys())


def test_a_change_leaves_the_old_snapshot_as_it_was() -> None:
    old = a_snapshot(TWO)
    before = ask_for(old)

    old.with_claim(HOLDER).with_slice(ONE).without_class("gpu")

    assert ask_for(old) == before


def test_views_that_a_change_does_not_concern_are_kept() -> None:
    old = a_snapshot(TWO, a_slice(some_devices(1), name="b", pool="pool-b", nodeName="node-b"), nodes=NODES)
    here, there = old.node(NODE), old.node("node-b")

    new = old.with_claim(HOLDER)

    assert new.node("node-b") is there
    assert new.node(NODE) is not here


def test_nodes_that_see_the_same_have_the_same_key() -> None:
    slices = [a_slice(some_devices(2), name=name, pool=name, nodeName=name) for name in (NODE, "node-b")]
    snapshot = a_snapshot(*slices, nodes=NODES)

    assert snapshot.node(NODE).key is snapshot.node("node-b").key
    assert key_after(snapshot, a_holder({"device": "gpu-0", "pool": NODE})) is not snapshot.node("node-b").key


def key_after(snapshot: Snapshot, claim: ResourceClaim) -> object:
    return snapshot.with_claim(claim).node(NODE).key


def test_devices_that_differ_in_identifiers_have_one_shape() -> None:
    slices = [a_slice([a_device("gpu-0", attributes={"uuid": uuid, "model": "H100"})]) for uuid in ("GPU-1", "GPU-2")]
    one, other = map(compile_slice, slices)

    assert one.layout is other.layout
    assert one.identities == ((("uuid", "GPU-1"),),)


def test_a_selector_may_read_an_identifier_all_the_same() -> None:
    devices = [a_device(f"gpu-{number}", attributes={"uuid": f"GPU-{number}"}) for number in range(3)]
    wanted = a_request("r", 'device.attributes["gpu.example.com"].uuid == "GPU-2"')

    answer = ask_for(a_snapshot(a_slice(devices)), a_claim(wanted))

    assert isinstance(answer, Allocated)
    assert answer.results[0].devices.results[0].device == "gpu-2"


def test_counters_that_are_left_count_each_device_once() -> None:
    held = [a_holder(a_share("card-0-half-0"), name="one"), a_holder(a_share("card-0-half-0"), name="two")]

    (pool,) = view(a_snapshot(*some_cards(1), held=held)).pools

    assert pool.counters_left == {("card-0", "slots"): 10**9}
    assert [each.name for each in pool.devices() if each.holders] == ["card-0-half-0"]


def test_a_pool_says_what_is_missing() -> None:
    (pool,) = view(a_snapshot(a_slice(some_devices(1), count=3))).pools

    assert (pool.state, pool.reason) == (PoolState.INCOMPLETE, "1 of 3 slices of generation 1 seen")


def view(snapshot: Snapshot) -> NodeView:
    return snapshot.node(NODE)


def test_a_node_that_there_is_not() -> None:
    with pytest.raises(UnknownNodeError, match="node 'gone' is not among the 1 nodes"):
        a_snapshot().node("gone")
