"""The fleet in memory: kept by deltas it is what a whole reading gives; a bad object is named and hurts no other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dra.allocation import PublishedSlice, Snapshot
from dra.fleet import Wish
from dra.objects import (
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ObjectMeta,
    ResourceClaim,
    ResourceClaimSpec,
)
from gpuinventory.models import ClusterObject, Revision, Tombstone
from gpuinventory.selectors import held
from gpuinventory.selectors.gpuclasses import catalogue, class_numbers
from gpuinventory.services import changelog
from gpuinventory.services.ingest import Seen, ingest
from tests.gpuinventory.fleet import DRIVER, claim, device, gone, node_object, put_classes, seen, slices_of, stamped

pytestmark = pytest.mark.django_db
TAINT = {"deviceSelector": {"driver": DRIVER}, "taint": {"key": "k", "effect": "NoSchedule"}}


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    held.forget()
    yield
    held.forget()


def named(kind: str, name: str, version: int = 1, **fields: Any) -> bytes:
    return stamped(json.dumps({"kind": kind, "metadata": {"name": name}} | fields).encode(), version)


def facts(slice_: PublishedSlice) -> tuple[object, ...]:
    """A layout is one object for all slices with the same content."""
    counts = slice_.generation, slice_.slice_count
    return (slice_.driver, slice_.pool, slice_.node_name, *counts, slice_.layout, slice_.identities)


def contents(snapshot: Snapshot) -> dict[str, Any]:
    """Everything that a snapshot says, in an order of its own."""
    return {
        "nodes": dict(sorted(snapshot.nodes.items())),
        "classes": dict(sorted(snapshot.classes.items())),
        "rules": dict(sorted(snapshot.taint_rules.items())),
        "slices": {pool: {each.name: facts(each) for each in those} for pool, those in sorted(snapshot.pools.items())},
        "held": {key: {pool: set(map(repr, each)) for pool, each in by.items()} for key, by in snapshot.held.items()},
    }


def kept_and_read_anew() -> tuple[dict[str, Any], dict[str, Any]]:
    kept = held.current()
    held.forget()
    anew = held.current()
    assert (kept.waiting, set(kept.problems)) == (anew.waiting, set(anew.problems))
    return contents(kept.snapshot), contents(anew.snapshot)


def history() -> list[tuple[str, list[Seen]]]:
    first, second = slices_of("node-a", cards=2), slices_of("node-b")
    waits = claim("ml-team", "waits", ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}])
    given = claim("ml-team", "waits", [device("node-a", "gpu-0", percent=25)], pods=["p"], version=2)
    return [
        ("Node", seen([node_object("node-a"), node_object("node-b")])),
        ("ResourceSlice", seen([*first, *second])),
        ("DeviceClass", seen([named("DeviceClass", "one"), named("DeviceClass", "two")])),
        ("ResourceClaim", seen([waits])),
        ("DeviceTaintRule", seen([named("DeviceTaintRule", "rule", spec=TAINT)])),
        ("ResourceClaim", seen([given])),
        ("ResourceSlice", [*seen([stamped(first[1], 9)]), gone(second[0])]),
        ("DeviceClass", [gone(named("DeviceClass", "two"))]),
        ("Node", [gone(node_object("node-b"))]),
        ("DeviceTaintRule", [gone(named("DeviceTaintRule", "rule"))]),
        ("ResourceSlice", seen(second)),
        ("ResourceClaim", [gone(given)]),
    ]


def test_kept_by_deltas_it_is_what_a_whole_reading_gives_after_each_step() -> None:
    held.current()
    for kind, events in history():
        ingest(kind, events)
        kept, anew = kept_and_read_anew()
        assert kept == anew, (kind, events)
    assert set(held.current().snapshot.nodes) == {"node-a"}


def test_a_database_that_was_made_anew_is_read_anew_after_as_many_changes() -> None:
    """The process outlives the read model, which may be dropped and rebuilt at any time."""
    ingest("Node", seen([node_object("node-a")]))
    assert set(held.current().snapshot.nodes) == {"node-a"}
    for model in (ClusterObject, Revision, Tombstone):
        model.objects.all().delete()
    ingest("Node", seen([node_object("node-b")]))
    assert set(held.current().snapshot.nodes) == {"node-b"}


def test_steps_that_come_together_end_in_the_same_fleet() -> None:
    held.current()
    for kind, events in history():
        ingest(kind, events)
    kept, anew = kept_and_read_anew()
    assert kept == anew


def test_a_waiting_claim_counts_for_its_class_until_it_is_allocated() -> None:
    owner = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]
    ingest("ResourceClaim", seen([claim("ml-team", "a", ownerReferences=owner), claim("ml-team", "by-hand")]))
    assert held.current().waiting == {"physical-gpu": 1}
    ingest("ResourceClaim", seen([claim("ml-team", "a", [device("n", "gpu-0")], version=2, ownerReferences=owner)]))
    assert held.current().waiting == {}


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        ("ResourceSlice", b'{"metadata": {"name": "odd"}, "spec": {"driver": 7}}'),
        ("DeviceTaintRule", b'{"metadata": {"name": "odd"}, "spec": {}}'),
        ("DeviceClass", b'{"metadata": {"name": "odd"}, "spec": {"selectors": 1}}'),
        ("Node", b'{"metadata": {"name": "odd"}, "spec": {"taints": [1]}}'),
    ],
)
def test_a_bad_object_is_named_and_hurts_no_other(kind: str, bad: bytes) -> None:
    ingest("ResourceSlice", seen(slices_of("node-a")))
    held.current()
    ingest(kind, seen([stamped(bad, 1)]))
    kept = held.current()
    (problem,) = kept.problems
    assert problem.startswith(f"{kind} odd: ")
    assert len(kept.snapshot.slice_pools) == 2
    held.forget()
    assert held.current().problems == kept.problems
    ingest(kind, [gone(stamped(bad, 1))])
    assert held.current().problems == ()


def test_a_slice_that_turns_bad_leaves_its_pool_incomplete() -> None:
    bodies = slices_of("node-a")
    ingest("ResourceSlice", seen(bodies))
    held.current()
    content = json.loads(bodies[1])
    content["spec"]["devices"][0]["capacity"]["memory"] = {"value": "much"}
    ingest("ResourceSlice", seen([stamped(json.dumps(content).encode(), 2)]))
    kept = held.current()
    assert len(kept.problems) == 1
    assert list(kept.snapshot.slice_pools) == [json.loads(bodies[0])["metadata"]["name"]]


def test_a_claim_with_a_malformed_amount_holds_nothing_and_is_named() -> None:
    given = device("node-a", "gpu-0", percent=25) | {"consumedCapacity": {"memory": "much"}}
    ingest("ResourceClaim", seen([claim("ml-team", "odd", [given]), claim("ml-team", "b", [device("n", "gpu-0")])]))
    kept = held.current()
    assert set(kept.snapshot.held) == {("ml-team", "b")}
    assert [each.partition(":")[0] for each in kept.problems] == ["ResourceClaim ml-team/odd"]


def test_without_a_change_nothing_is_read_and_a_change_reads_only_what_is_new() -> None:
    ingest("ResourceSlice", seen(slices_of("node-a", cards=2)))
    before = held.current()
    with CaptureQueriesContext(connection) as queries:
        assert held.current().snapshot is before.snapshot
    assert len(queries) == 2
    ingest("Node", seen([node_object("node-a")]))
    with CaptureQueriesContext(connection) as queries:
        after = held.current()
    assert len(queries) == 4
    for pool, slices in after.snapshot.pools.items():
        assert all(new is old for new, old in zip(slices, before.snapshot.pools[pool], strict=True))


def test_who_stands_before_the_oldest_tombstone_reads_everything_anew() -> None:
    ingest("Node", seen([node_object("node-a"), node_object("node-b")]))
    held.current()
    ingest("Node", [gone(node_object("node-b"))])
    at = Revision.objects.get().value
    Revision.objects.update(value=at - at % 1000 + 1000 + changelog.KEPT + 999)
    ingest("Node", seen([node_object("node-c")]))
    assert not Tombstone.objects.exists()
    assert set(held.current().snapshot.nodes) == {"node-a", "node-c"}


def test_a_database_that_began_at_nothing_forgets_nothing_too_early() -> None:
    """Revisions began at 0 before they began at the clock."""
    Revision.objects.create(value=999)
    ingest("Node", seen([node_object("node-a")]))
    ingest("Node", [gone(node_object("node-a"))])
    assert (Revision.objects.get().forgotten, Tombstone.objects.count()) == (0, 1)


def test_what_is_new_is_found_by_its_revision_and_not_by_reading_every_row() -> None:
    """With a kind or an order beside the revision SQLite reads all rows of the kinds: 0.5 s at 45,000 slices."""
    ingest("ResourceSlice", seen(slices_of("node-a")))
    held.current()
    ingest("Node", seen([node_object("node-a")]))
    with CaptureQueriesContext(connection) as queries:
        held.current()
    asked = [query["sql"] for query in queries if "> 1" in query["sql"]]
    assert len(asked) == 2
    assert not any("ORDER BY" in sql or '"kind" ' in sql.partition("WHERE")[2] for sql in asked)


def test_what_one_thread_asked_is_known_to_all() -> None:
    """The web process runs each request in a thread of its own."""
    ingest("ResourceSlice", seen(slices_of("node-a", cards=2)))
    ingest("Node", seen([node_object("node-a")]))
    put_classes()
    fleet = held.current()
    (view,) = (each for each in catalogue(fleet).views if each.name == "physical-gpu")
    with ThreadPoolExecutor(1) as other:
        numbers = other.submit(class_numbers, fleet, view).result()
    assert (numbers.free, numbers.largest) == (2, 2)
    assert class_numbers(fleet, view) is numbers


def test_threads_that_ask_at_once_get_the_answers_to_their_own_questions() -> None:
    ingest("ResourceSlice", seen(slices_of("node-a", cards=2)))
    ingest("Node", seen([node_object("node-a")]))
    put_classes()
    fleet = held.current()
    start = Barrier(4)

    def ask(count: int) -> list[int]:
        exactly = ExactDeviceRequest(device_class_name="physical-gpu", count=count)
        devices = DeviceClaim(requests=(DeviceRequest(name="gpu", exactly=exactly),))
        wish = Wish(resource_claims=(ResourceClaim(metadata=ObjectMeta(), spec=ResourceClaimSpec(devices=devices)),))
        start.wait()
        return [fleet.fleet.answer(fleet.snapshot, wish).total.count for _ in range(20)]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, (1, 2, 3, 1))) == [[2] * 20, [1] * 20, [0] * 20, [2] * 20]
