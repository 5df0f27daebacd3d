"""The door to Kubernetes against a real API server: what it sends, what it streams, and what each no becomes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from dra.kube import requests
from dra.kube.client import KubeClient
from dra.kube.errors import (
    AlreadyExistsError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    UnreachableError,
)
from dra.kube.port import list_all
from dra.kube.requests import DEVICE_CLASSES, RESOURCE_CLAIM_TEMPLATES, Person
from dra.kube.watch import WatchEvent, parse_event
from dra.objects import DeviceClass, decode
from tests.cluster.cluster import Cluster


@pytest.fixture(params=[KubeClient.from_environment, KubeClient.of_node], ids=["package", "node"])
def client(cluster: Cluster, request: pytest.FixtureRequest) -> KubeClient:
    """Each way to the API server, one after the other."""
    made: KubeClient = request.param(str(cluster.kubeconfig()))
    return made


@pytest.fixture
def made(client: KubeClient) -> Iterator[str]:
    """A DeviceClass, gone after the test."""
    client.send(requests.create(DEVICE_CLASSES, device_class("client-test")))
    yield "client-test"
    client.send(requests.delete(DEVICE_CLASSES, "client-test"))


def device_class(name: str, **extra: object) -> bytes:
    body = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": {}}
    return json.dumps(body | extra).encode()


def test_an_object_is_made_and_read(client: KubeClient, made: str) -> None:
    found = decode(client.send(requests.get(DEVICE_CLASSES, made)), DeviceClass)

    assert found.metadata.name == made
    assert found.metadata.uid


def test_the_server_s_clock_is_told_by_its_answers(client: KubeClient) -> None:
    assert client.server_time() is None
    client.send(requests.read("/version"))
    first = client.server_time()
    assert first is not None
    assert abs((first - datetime.now(UTC)).total_seconds()) < 2  # it runs on this machine
    time.sleep(0.3)
    later = client.server_time()
    assert later is not None
    assert 0.2 < (later - first).total_seconds() < 2  # it goes on without another answer


def test_a_dry_run_makes_nothing(client: KubeClient) -> None:
    client.send(requests.create(DEVICE_CLASSES, device_class("dry"), dry_run=True))

    with pytest.raises(NotFoundError, match='"dry" not found'):
        client.send(requests.get(DEVICE_CLASSES, "dry"))


def test_a_name_that_exists_and_a_field_that_does_not(client: KubeClient, made: str) -> None:
    with pytest.raises(AlreadyExistsError, match="already exists"):
        client.send(requests.create(DEVICE_CLASSES, device_class(made)))
    with pytest.raises(InvalidError, match='unknown field "tpyo"'):
        client.send(requests.create(DEVICE_CLASSES, device_class("strict", tpyo=1)))


def test_a_delete_of_another_uid_is_a_conflict(client: KubeClient, made: str) -> None:
    with pytest.raises(ConflictError, match="UID in the precondition"):
        client.send(requests.delete(DEVICE_CLASSES, made, uid="00000000-0000-0000-0000-000000000000"))


def test_an_apply_writes_the_manager_s_fields(client: KubeClient, made: str) -> None:
    body = {**json.loads(device_class(made)), "metadata": {"name": made, "labels": {"ours": "yes"}}}
    path = requests.path_of(DEVICE_CLASSES, name=made)
    answer = client.send(requests.apply(path, json.dumps(body).encode(), manager="client-test"))

    assert decode(answer, DeviceClass).metadata.labels == {"ours": "yes"}
    assert '"manager":"client-test","operation":"Apply"' in answer.decode()


def test_pages_together_are_the_list(client: KubeClient, made: str) -> None:
    names = {f"page-{number}" for number in range(5)}
    for name in names:
        client.send(requests.create(DEVICE_CLASSES, device_class(name)))

    first = client.send(requests.list_page(DEVICE_CLASSES, limit=2))
    listed = {
        decode(item, DeviceClass).metadata.name for page in list_all(client, DEVICE_CLASSES) for item in page.items
    }

    assert len(json.loads(first)["items"]) == 2
    assert json.loads(first)["metadata"]["continue"]
    assert listed >= names | {made}
    for name in names:
        client.send(requests.delete(DEVICE_CLASSES, name))


def test_a_watch_gives_what_is_there_marks_its_end_and_then_what_changes(client: KubeClient, made: str) -> None:
    events: list[WatchEvent] = []
    with client.stream(requests.watch(DEVICE_CLASSES, initial_events=True, seconds=20)) as lines:
        for event in map(parse_event, lines):
            events.append(event)
            if event.ends_list:
                client.send(requests.merge_patch(DEVICE_CLASSES, made, b'{"metadata":{"labels":{"a":"b"}}}'))
            if event.type == "MODIFIED":
                break

    kinds = [event.type for event in events]
    assert set(kinds[: kinds.index("BOOKMARK")]) == {"ADDED"}
    assert decode(events[-1].object, DeviceClass).metadata.labels == {"a": "b"}


def test_a_watch_ends_by_itself_when_its_time_is_up(client: KubeClient) -> None:
    with client.stream(requests.watch(DEVICE_CLASSES, seconds=1)) as lines:
        assert all(parse_event(line).type in ("ADDED", "BOOKMARK") for line in lines)


def test_a_person_has_the_persons_rights_and_the_server_names_the_person(client: KubeClient) -> None:
    request = requests.create(RESOURCE_CLAIM_TEMPLATES, b"{}", namespace="default")

    with pytest.raises(ForbiddenError, match='User "portico:nobody" cannot create resource "resourceclaimtemplates"'):
        client.send(request.as_person(Person("portico:nobody", ("portico:none",))))


@pytest.mark.parametrize("way", [KubeClient.from_environment, KubeClient.of_node])
def test_without_any_configuration_the_reason_is_said(way: Callable[[str], KubeClient]) -> None:
    with pytest.raises(UnreachableError, match="no usable configuration"):
        way("/nonexistent/kubeconfig")
