"""The HTTP edge under the product's own client: pages, live watches, ends, threads beside it."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from dra.kube.errors import RefusedError
from dra.kube.requests import NODES, RESOURCE_CLAIM_TEMPLATES, Person, Resource, create, get, list_page, watch
from dra.kube.responses import parse_page
from dra.kube.watch import WatchEvent, parse_event
from simulator import kinds
from simulator.http import stamp
from tests.simulator.serving import Served, serving

NAMESPACES = Resource("", "v1", "namespaces", "Namespace")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path) as running:
        yield running


def put_node(served: Served, name: str) -> None:
    """Write beside the server, as a controller does."""
    with served.app.lock:
        served.store.create(kinds.NODE, {"metadata": {"name": name}}, stamp())


def put_nodes(served: Served, prefix: str, count: int) -> None:
    for number in range(count):
        put_node(served, f"{prefix}-{number}")


def test_a_thousand_objects_come_in_pages(served: Served) -> None:
    for number in range(1000):
        put_node(served, f"n{number:04}")
    names, token = [], ""
    while True:
        page = parse_page(served.client.send(list_page(NODES, continue_token=token)))
        names += [msgspec.json.decode(item)["metadata"]["name"] for item in page.items]
        token = page.continue_token
        if not token:
            break
    assert names == [f"n{number:04}" for number in range(1000)]


def test_a_watch_hears_of_writes_beside_it_at_once(served: Served) -> None:
    put_node(served, "first")
    delays = []
    with served.client.stream(watch(NODES, initial_events=True, seconds=20)) as lines:
        assert parse_event(next(lines)).type == "ADDED"
        assert parse_event(next(lines)).ends_list
        for number in range(20):
            start = time.perf_counter()
            put_node(served, f"later-{number}")
            event = parse_event(next(lines))
            delays.append(time.perf_counter() - start)
            assert (event.type, msgspec.json.decode(event.object)["metadata"]["name"]) == ("ADDED", f"later-{number}")
    assert sorted(delays)[10] < 0.5  # a sign of polling; speed itself is measured in benchmarks


def test_a_watch_ends_when_it_said(served: Served) -> None:
    with served.client.stream(watch(NODES, initial_events=True, seconds=1)) as lines:
        events = [parse_event(line) for line in lines]
    (first, *others) = [(event.type, event.ends_list) for event in events]
    assert first == ("BOOKMARK", True)
    assert set(others) == {("BOOKMARK", False)}


def test_nothing_is_lost_between_writers(served: Served) -> None:
    heard: list[WatchEvent] = []
    with served.client.stream(watch(NODES, initial_events=True, seconds=20)) as lines:
        parse_event(next(lines))
        writers = [threading.Thread(target=put_nodes, args=(served, f"w{at}", 100)) for at in range(4)]
        for writer in writers:
            writer.start()
        while len(heard) < 400:
            heard.append(parse_event(next(lines)))
        for writer in writers:
            writer.join()
    versions = [int(event.resource_version) for event in heard]
    assert versions == sorted(set(versions))
    assert len(versions) == 400


def test_yaml_is_created_as_a_person_and_refused_without_rights(served: Served) -> None:
    body = b"{apiVersion: v1, kind: Namespace, metadata: {name: team}}"
    served.client.send(create(NAMESPACES, body, yaml=True))
    refused = create(RESOURCE_CLAIM_TEMPLATES, b"{}", namespace="team").as_person(Person("ann", ("team-a",)))
    with pytest.raises(RefusedError, match='User "ann" cannot create resource "resourceclaimtemplates"'):
        served.client.send(refused)


def test_what_is_missing_is_a_refusal_with_its_code(served: Served) -> None:
    with pytest.raises(RefusedError, match='nodes "none" not found'):
        served.client.send(get(NODES, "none"))
