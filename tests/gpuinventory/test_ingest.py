"""Rows follow from the objects alone, whatever order their history comes in; what did not change is not written."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from gpuinventory.models import AllocatedDevice, ClusterObject, CounterSet, Device, Pool, Revision
from gpuinventory.selectors import revision
from gpuinventory.services.ingest import Seen, forget_others, ingest
from gpuinventory.services.pools import dirty_pools, project_pools
from tests.gpuinventory.fleet import claim, device, gone, seen, slices_of, stamped

type Event = tuple[str, Seen]


def snapshot() -> dict[str, Any]:
    """Everything that pages read, without primary keys and the revision."""
    return {
        "objects": sorted(ClusterObject.objects.values_list("kind", "namespace", "name", "uid", "resource_version")),
        "pools": sorted(Pool.objects.values_list("driver", "name", "state", "reason", "slices_seen", "generation")),
        "devices": sorted(
            Device.objects.values_list("pool__name", "name", "state", "percent_used", "holders", "position", "node")
        ),
        "counters": sorted(
            (pool, name, str(counters))
            for pool, name, counters in CounterSet.objects.values_list("pool__name", "name", "counters")
        ),
        "allocated": sorted(
            AllocatedDevice.objects.values_list("pool", "device", "share_id", "claim_namespace", "claim_name")
        ),
    }


def replay(events: list[Event], batch: int = 1) -> dict[str, Any]:
    """Ingest, a batch of one kind at a time, in a transaction that is undone."""
    with transaction.atomic():
        for start in range(0, len(events), batch):
            part = events[start : start + batch]
            for kind in dict.fromkeys(kind for kind, _ in part):
                ingest(kind, [each for event_kind, each in part if event_kind == kind])
        found = snapshot()
        transaction.set_rollback(True)
    return found


def _histories() -> dict[tuple[str, str], list[Event]]:
    """What happened to each object, in its own order."""
    slices = slices_of("node-a", cards=2)
    events: list[Event] = [("ResourceSlice", each) for each in seen(slices)]
    events += [("ResourceSlice", each) for each in seen(slices_of("node-b"))]
    tainted = [stamped(body, 7) for body in slices_of("node-a", cards=2, unclean=[1])]
    events += [("ResourceSlice", each) for each in seen(tainted[2:])]
    first = claim("ml-team", "first", version=1)
    given_a_card = claim("ml-team", "first", [device("node-a", "gpu-0", percent=25)], pods=["p"], version=2)
    events += [("ResourceClaim", each) for each in seen([first, given_a_card])]
    second = claim("ml-team", "second", [device("node-b", "gpu-0", percent=100)], version=3)
    events += [("ResourceClaim", each) for each in [*seen([second]), gone(second)]]
    events += [("ResourceSlice", gone(slices_of("node-b")[0]))]
    histories: dict[tuple[str, str], list[Event]] = {}
    for kind, each in events:
        histories.setdefault((kind, each.metadata.name), []).append((kind, each))
    return histories


HISTORIES = _histories()
IN_ORDER = [event for history in HISTORIES.values() for event in history]


class TestHistory(TestCase):
    """Each example starts from empty tables."""

    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(data=st.data())
    def test_a_shuffled_and_doubled_history_ends_in_the_same_rows(self, data: st.DataObject) -> None:
        """Objects in any order among each other, each in its own; a tail told twice; batches of any size."""
        turns = data.draw(st.permutations([key for key, history in HISTORIES.items() for _ in history]))
        waiting = {key: iter(history) for key, history in HISTORIES.items()}
        events = [next(waiting[key]) for key in turns]
        tail = data.draw(st.integers(0, len(events)))
        batch = data.draw(st.integers(1, len(events)))
        assert replay(events + events[tail:], batch) == replay(IN_ORDER)


@pytest.mark.django_db
def test_the_same_list_again_writes_nothing() -> None:
    bodies = slices_of("node-a", cards=2)
    assert ingest("ResourceSlice", seen(bodies)) == len(bodies) == 3
    before = revision()
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert ingest("ResourceSlice", seen(bodies)) == 0
        assert forget_others("ResourceSlice", {each.key for each in seen(bodies)}) == 0
    assert [query["sql"] for query in queries if not query["sql"].startswith(("SELECT", "DECLARE"))] == []
    assert revision() == before


@pytest.mark.django_db
def test_a_change_raises_the_revision_once_per_batch() -> None:
    ingest("ResourceSlice", seen(slices_of("node-a", cards=2)))
    first = revision()
    ingest("ResourceSlice", seen(stamped(body, 2) for body in slices_of("node-a", cards=2)))
    assert revision() == first + 1
    assert Revision.objects.count() == 1


@pytest.mark.django_db
def test_a_new_taint_touches_the_rows_of_its_card_only() -> None:
    ingest("ResourceSlice", seen(slices_of("node-a", cards=2)))
    tainted = [stamped(body, 2) for body in slices_of("node-a", cards=2, unclean=[1])][2:]
    with CaptureQueriesContext(connection) as queries:
        ingest("ResourceSlice", seen(tainted))
    updates = [query["sql"] for query in queries if query["sql"].startswith('UPDATE "gpuinventory_device"')]
    blocked = set(Device.objects.filter(state="blocked").values_list("counter_set", flat=True))
    assert (len(updates), blocked) == (1, {"gpu-1"})


@pytest.mark.django_db
def test_an_incomplete_pool_is_unknown_until_its_last_slice_comes() -> None:
    bodies = slices_of("node-a", cards=2)
    ingest("ResourceSlice", seen(bodies[:-1]))
    pool = Pool.objects.get()
    assert (pool.state, pool.reason) == ("incomplete", "2 of 3 slices of generation 1 seen")
    assert set(Device.objects.values_list("state", flat=True)) == {"unknown"}
    ingest("ResourceSlice", seen(bodies[-1:]))
    assert Pool.objects.get().state == "complete"
    assert set(Device.objects.values_list("state", flat=True)) == {"free"}


@pytest.mark.django_db
def test_a_pool_whose_slices_are_gone_leaves_no_row_unless_a_claim_holds_its_device() -> None:
    bodies = slices_of("node-a")
    held = claim("ml-team", "c", [device("node-a", "gpu-0", percent=100)], pods=["p"])
    ingest("ResourceSlice", seen(bodies))
    ingest("ResourceClaim", seen([held]))
    ingest("ResourceSlice", [gone(body) for body in bodies])
    assert list(Device.objects.values_list("name", "state")) == [("gpu-0", "missing")]
    ingest("ResourceClaim", [gone(held)])
    assert not Pool.objects.exists()


@pytest.mark.django_db
def test_a_claim_that_is_seen_before_its_device_holds_it_when_it_comes() -> None:
    ingest("ResourceClaim", seen([claim("ml-team", "c", [device("node-a", "gpu-0", percent=25)])]))
    ingest("ResourceSlice", seen(slices_of("node-a")))
    card = Device.objects.get(name="gpu-0")
    assert (card.state, card.percent_used, card.holders) == ("partly", 25, 1)


@pytest.mark.django_db
def test_pools_that_a_list_marked_end_in_the_rows_of_pools_that_were_settled_at_once() -> None:
    histories = [("ResourceSlice", seen(slices_of("node-a", cards=2)))]
    histories.append(("ResourceClaim", seen([claim("ml-team", "c", [device("node-a", "gpu-0", percent=25)])])))
    for kind, events in histories:
        ingest(kind, events)
    at_once = snapshot()
    ClusterObject.objects.all().delete()
    Pool.objects.all().delete()
    AllocatedDevice.objects.all().delete()
    for kind, events in histories:
        for each in events:
            ingest(kind, [each], settle=False)
    assert not Device.objects.exists()
    project_pools(dirty_pools(10))
    assert dirty_pools(10) == []
    assert snapshot() == at_once


@pytest.mark.django_db(transaction=True)
def test_slices_and_claims_that_come_at_once_end_in_the_same_rows() -> None:
    """Two streams write the same pool side by side; the later one must see what the earlier one committed."""
    versions = [[stamped(body, n) for body in slices_of("node-a", unclean=[0] if n % 2 else [])] for n in range(1, 13)]
    claims = [claim("ml-team", "c", [device("node-a", "gpu-0", percent=5 * n)], version=n) for n in range(1, 13)]
    start = Barrier(2)

    def write(kind: str, batches: list[list[bytes]]) -> None:
        start.wait()
        try:
            for batch in batches:
                ingest(kind, seen(batch))
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        for done in [
            pool.submit(write, "ResourceSlice", versions),
            pool.submit(write, "ResourceClaim", [[body] for body in claims]),
        ]:
            done.result()
    card = Device.objects.get(name="gpu-0")
    assert (card.state, card.percent_used, card.holders) == ("partly", 60, 1)


@pytest.mark.django_db
def test_one_object_that_cannot_be_read_does_not_keep_the_others_out() -> None:
    bodies = slices_of("node-a")
    odd = stamped(b'{"metadata": {"name": "odd"}, "spec": {"driver": 7}}', 1)
    ingest("ResourceSlice", seen([odd, *bodies]))
    assert ClusterObject.objects.count() == 3
    assert Pool.objects.get().state == "complete"


@pytest.mark.django_db
def test_a_list_forgets_what_is_not_in_it() -> None:
    ingest("ResourceSlice", seen([*slices_of("node-a"), *slices_of("node-b")]))
    kept = seen(slices_of("node-b"))
    assert forget_others("ResourceSlice", {each.key for each in kept}) == 2
    project_pools(dirty_pools(10))
    assert list(Pool.objects.values_list("name", flat=True)) == ["node-b"]
