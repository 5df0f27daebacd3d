"""The capacity page: numbers by class for everyone, nobody's names; incomplete pools and broken classes are told."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from pytest_django.fixtures import DjangoAssertNumQueries

from dra.fleet import Wish
from gpuinventory.kinds import KINDS
from gpuinventory.selectors import capacity, held, kind_states, revision
from gpuinventory.services import lease
from gpuinventory.services.ingest import ingest
from tests.gpuinventory.fleet import claim, device, node_object, put_classes, seen, slices_of, stamped

pytestmark = pytest.mark.django_db
PART = {"HX-Request": "true", "HX-Request-Type": "partial"}
PAGE = "/capacity/"


@pytest.fixture(autouse=True)
def fleet(db: None) -> None:
    """Two nodes, three cards: one whole, one in part held; a claim that waits; a class whose selector fails."""
    held.forget()
    ingest("Node", seen([node_object("node-a"), node_object("node-b")]))
    ingest("ResourceSlice", seen([*slices_of("node-a", cards=2), *slices_of("node-b")]))
    owner = [{"apiVersion": "v1", "kind": "Pod", "name": "secret-pod", "uid": "u"}]
    given = claim("inference-team", "embedder", [device("node-a", "gpu-0", percent=50)], pods=["embedder-0"])
    ingest("ResourceClaim", seen([given, claim("inference-team", "waits", ownerReferences=owner)]))
    put_classes()


def numbers(name: str) -> tuple[int, int, int, int]:
    found = next(each.numbers for each in capacity().classes if each.view.name == name)
    return found.free, found.largest, found.nodes, found.waiting


def text(client: Client) -> str:
    answer = client.get(PAGE)
    assert answer.status_code == 200
    return re.sub(r"\s+", " ", answer.content.decode())


def test_whole_cards_that_are_free_and_where() -> None:
    assert numbers("physical-gpu") == (2, 1, 2, 1)


def test_the_numbers_follow_a_claim_and_a_node() -> None:
    assert numbers("physical-gpu")[0] == 2
    ingest("ResourceClaim", seen([claim("ml-team", "c", [device("node-b", "gpu-0", percent=100)])]))
    assert numbers("physical-gpu") == (1, 1, 1, 1)
    ingest("ResourceClaim", seen([claim("inference-team", "embedder", version=2)]))
    assert numbers("physical-gpu") == (2, 2, 1, 1)


def test_claims_that_begin_or_cease_to_wait_are_counted_at_once() -> None:
    assert numbers("physical-gpu")[3] == 1
    owner = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p"}]
    ingest("ResourceClaim", seen([claim("ml-team", "waits-too", ownerReferences=owner)]))
    assert numbers("physical-gpu")[3] == 2
    ingest("ResourceClaim", seen([claim("ml-team", "waits-too", version=2)]))
    assert numbers("physical-gpu")[3] == 1


def test_nodes_that_take_no_new_pod_count_for_nothing(as_gus: Client) -> None:
    ingest("Node", seen([node_object("node-b", unschedulable=True, version=2)]))
    now = held.current()
    assert now.fleet.answer(now.snapshot, Wish(resource_claims=())).fitting == 2  # every node was looked at before
    assert numbers("physical-gpu") == (1, 1, 1, 1)
    ingest("Node", seen([tainted("node-b", "node.kubernetes.io/not-ready", 3)]))
    assert numbers("physical-gpu") == (1, 1, 1, 1)
    assert "2 nodes" in text(as_gus)
    ingest("Node", seen([tainted("node-b", "team/only-for-us", 4)]))  # its users' pods tolerate that
    assert numbers("physical-gpu") == (2, 1, 2, 1)


def tainted(name: str, key: str, version: int) -> bytes:
    node = json.loads(node_object(name, version=version))
    return json.dumps(node | {"spec": {"taints": [{"key": key, "effect": "NoSchedule"}]}}).encode()


@pytest.mark.parametrize("who", ["as_alice", "as_gus"])
def test_everyone_reads_numbers_and_nobody_s_names(who: str, request: pytest.FixtureRequest) -> None:
    page = text(request.getfixturevalue(who))
    assert '<td data-label="Free now"><strong>2</strong>' in page
    for name in ("inference-team", "embedder", "secret-pod", "node-a"):
        assert name not in page


def test_a_class_whose_selector_fails_is_told_and_only_operators_read_why(as_alice: Client, as_olga: Client) -> None:
    assert "one of its selectors fails" in text(as_alice)
    assert "colour" not in text(as_alice)
    assert "colour" in text(as_olga)


def test_a_pool_that_is_being_updated_is_told(as_gus: Client) -> None:
    assert "being updated" not in text(as_gus)
    ingest("ResourceSlice", seen(slices_of("node-c", cards=2)[:-1]))
    assert "1 pool of devices is being updated" in text(as_gus)


def test_an_object_that_cannot_be_read_is_told(as_gus: Client) -> None:
    ingest("ResourceSlice", seen([stamped(b'{"metadata": {"name": "odd"}, "spec": {"driver": 7}}', 1)]))
    assert "1 object of the cluster can't be read" in text(as_gus)


def test_a_poll_that_finds_nothing_new_costs_one_question(
    as_gus: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    address = f"{PAGE}?since={revision()}"
    with django_assert_num_queries(3):  # session, user, revision
        assert as_gus.get(address, headers=PART).status_code == 204


def test_a_poll_after_a_change_asks_a_fixed_number_of_times(
    as_gus: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    as_gus.get(PAGE)
    ingest("ResourceClaim", seen([claim("ml-team", "c", [device("node-b", "gpu-0", percent=100)])]))
    with django_assert_num_queries(9):
        answer = as_gus.get(f"{PAGE}?since=0", headers=PART)
    assert b"<html" not in answer.content


def test_each_kind_has_a_state_of_its_own() -> None:
    now = datetime.now(UTC)
    for kind in KINDS:
        lease.take(kind, "holder", now)
        lease.keep(kind, "holder", now)
    lease.keep("Node", "holder", now - timedelta(minutes=7))
    lease.fail("Pod", "holder", now, "pods is forbidden")
    lease.set_absent("PhysicalGPU", "holder", now)
    states = {each.kind: (each.word, each.length) for each in kind_states()}
    assert states.pop("Node") == ("behind", "7 min")
    assert states.pop("Pod") == ("behind", "0 s")
    assert states.pop("PhysicalGPU") == ("not served", "0 s")
    assert {word for word, _ in states.values()} == {"live"}
    assert "PhysicalGPU" not in lease.due_kinds(KINDS, now + timedelta(seconds=59))
