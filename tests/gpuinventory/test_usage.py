"""What pods take of their nodes, kept in memory by what changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra.fleet import Fleet, PodNeeds, Wish
from dra.quantity import Quantity
from gpuinventory.selectors import held
from gpuinventory.selectors.podusage import Place, PodUsage
from gpuinventory.services.ingest import ingest
from tests.gpuinventory.fleet import gone, node_object, seen


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    held.forget()
    yield
    held.forget()


def pod(name: str, node: str = "", *, phase: str = "Running", version: int = 1, **requests: str) -> bytes:
    metadata = {"name": name, "namespace": "ml-team", "uid": f"uid-{name}-{node}", "resourceVersion": str(version)}
    containers = [{"name": "main", "image": "x", "resources": {"requests": requests}}]
    spec: dict[str, Any] = {"containers": containers} | ({"nodeName": node} if node else {})
    return json.dumps({"metadata": metadata, "spec": spec, "status": {"phase": phase}}).encode()


def taken() -> dict[str, dict[str, str]]:
    """Kept, and the same read anew."""
    kept = held.current().usage
    held.forget()
    assert held.current().usage == kept
    return {node: {name: str(amount) for name, amount in those.items()} for node, those in kept.items()}


@pytest.mark.django_db
def test_pods_take_what_they_request_until_they_are_finished_or_gone() -> None:
    held.current()
    ingest("Pod", seen([pod("a", "n1", cpu="2", memory="1Gi"), pod("b", "n1", cpu="500m"), pod("c", cpu="9")]))
    assert taken() == {"n1": {"cpu": "2500m", "memory": "1Gi", "pods": "2"}}
    ingest("Pod", seen([pod("c", "n2", cpu="9", version=2), pod("a", "n1", phase="Succeeded", version=2, cpu="2")]))
    assert taken() == {"n1": {"cpu": "500m", "pods": "1"}, "n2": {"cpu": "9", "pods": "1"}}
    ingest("Pod", [gone(pod("b", "n1"))])
    assert taken() == {"n2": {"cpu": "9", "pods": "1"}}


@pytest.mark.django_db
def test_a_pod_that_comes_back_under_its_name_is_on_its_new_node() -> None:
    held.current()
    ingest("Pod", seen([pod("set-0", "n1", cpu="2")]))
    ingest("Pod", [gone(pod("set-0", "n1"))])
    ingest("Pod", seen([pod("set-0", "n2", cpu="3", version=3)]))
    assert taken() == {"n2": {"cpu": "3", "pods": "1"}}


@pytest.mark.django_db
def test_nodes_without_a_change_keep_their_amounts_as_they_are() -> None:
    """By that `dra.fleet` knows that it has nothing to look at."""
    ingest("Pod", seen([pod("a", "n1", cpu="2"), pod("b", "n2", cpu="2")]))
    before = held.current().usage
    ingest("Node", seen([node_object("n1")]))
    assert held.current().usage is before
    ingest("Pod", seen([pod("b", "n2", phase="Failed", version=2)]))
    assert held.current().usage["n1"] is before["n1"]


@pytest.mark.django_db
def test_a_pod_with_an_amount_that_cannot_be_read_is_named_and_counts_for_nothing() -> None:
    ingest("Pod", seen([pod("a", "n1", cpu="2")]))
    held.current()
    ingest("Pod", seen([pod("odd", "n1", cpu="much")]))
    assert taken() == {"n1": {"cpu": "2", "pods": "1"}}
    (problem,) = held.current().problems
    assert problem.startswith("Pod ml-team/odd: ")
    ingest("Pod", seen([pod("odd", "n1", cpu="1", version=2)]))
    assert (held.current().problems, taken()["n1"]["cpu"]) == ((), "3")


@pytest.mark.django_db
def test_a_full_node_takes_no_pod() -> None:
    """The nodes of the tests take 110 pods."""
    ingest("Node", seen([node_object("n1"), node_object("n2")]))
    ingest("Pod", seen([pod(f"p{number}", "n1") for number in range(110)]))
    now = held.current()
    answer = Fleet().answer(now.snapshot, Wish(resource_claims=(), pod=PodNeeds()), now.usage)
    assert answer.pod_refused == {"n1"}
    (obstacle,) = answer.pod_obstacles
    assert (obstacle.subject, obstacle.asked, obstacle.most_left) == ("pods", "1", "0")


PLACES = st.none() | st.builds(
    Place,
    st.sampled_from(["n1", "n2"]),
    st.sampled_from([(("cpu", Quantity.of(1)),), (("cpu", Quantity.of(2)), ("memory", Quantity.of(5)))]),
)
CHANGES = st.lists(st.tuples(st.sampled_from([("t", "a"), ("t", "b"), ("u", "a")]), PLACES), max_size=5)


@given(st.lists(CHANGES, max_size=6))
def test_history_does_not_matter(history: list[list[tuple[tuple[str, str], Place | None]]]) -> None:
    kept = PodUsage()
    latest: dict[tuple[str, str], Place | None] = {}
    for changes in history:
        kept = kept.with_changes(changes)
        latest |= dict(changes)
    assert kept == PodUsage().with_changes(latest.items())
    cpu = {node: those["cpu"].value for node, those in kept.taken.items()}
    expected: dict[str, int] = {}
    for place in (each for each in latest.values() if each):
        expected[place.node] = expected.get(place.node, 0) + dict(place.amounts)["cpu"].value
    assert cpu == expected
