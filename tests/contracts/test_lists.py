"""What both API servers promise of lists in pages, selectors and watches."""

from typing import Any
from urllib.parse import quote

import pytest

from tests.contracts.conftest import Door, make_simulator

END = "k8s.io/initial-events-end"


def maps(door: Door) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{door.namespace}/leases"


def make(door: Door, name: str, **labels: str) -> Any:
    body = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
    }
    return door.send("POST", maps(door), body).body


def names(reply: Any) -> list[str]:
    return [item["metadata"]["name"] for item in reply.body["items"]]


def test_pages_show_one_state_to_the_end(door: Door) -> None:
    for name in "abcde":
        make(door, name)
    first = door.send("GET", f"{maps(door)}?limit=2")
    assert names(first) == ["a", "b"]
    assert first.body["metadata"]["remainingItemCount"] == 3
    make(door, "bb")
    door.send("DELETE", f"{maps(door)}/d")
    token = quote(first.body["metadata"]["continue"])
    second = door.send("GET", f"{maps(door)}?limit=3&continue={token}")
    assert names(second) == ["c", "d", "e"]
    assert "continue" not in second.body["metadata"]
    assert second.body["metadata"]["resourceVersion"] == first.body["metadata"]["resourceVersion"]


def test_a_token_that_was_not_given_is_refused(door: Door) -> None:
    assert door.send("GET", f"{maps(door)}?limit=2&continue=bm90aGluZw").code == 400


def test_a_list_is_of_its_kind(door: Door) -> None:
    reply = door.send("GET", maps(door))
    assert (reply.body["kind"], reply.body["apiVersion"], reply.body["items"]) == (
        "LeaseList",
        "coordination.k8s.io/v1",
        [],
    )


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("of=x", ["a"]),
        ("of==x", ["a"]),
        ("of!=x", ["b", "c"]),
        ("of in (x,y)", ["a", "b"]),
        ("of notin (x)", ["b", "c"]),
        ("of", ["a", "b"]),
        ("!of", ["c"]),
        ("of,of!=y", ["a"]),
    ],
)
def test_labels_select(door: Door, selector: str, found: list[str]) -> None:
    make(door, "a", of="x")
    make(door, "b", of="y")
    make(door, "c")
    assert names(door.send("GET", f"{maps(door)}?labelSelector={quote(selector)}")) == found


def test_fields_select(door: Door) -> None:
    make(door, "a")
    make(door, "b")
    assert names(door.send("GET", f"{maps(door)}?fieldSelector=metadata.name%3Db")) == ["b"]
    assert names(door.send("GET", f"{maps(door)}?fieldSelector=metadata.name!%3Db")) == ["a"]
    unknown = door.send("GET", f"{maps(door)}?fieldSelector=spec.holderIdentity%3Db")
    assert (unknown.code, unknown.body["reason"]) == (400, "BadRequest")
    assert door.send("GET", f"{maps(door)}?labelSelector=%3D%3D").code == 400


def test_a_watch_tells_what_came_after(door: Door) -> None:
    version = make(door, "a")["metadata"]["resourceVersion"]
    make(door, "b")
    merge = {"Content-Type": "application/merge-patch+json"}
    door.send("PATCH", f"{maps(door)}/a", {"metadata": {"labels": {"x": "y"}}}, merge)
    door.send("DELETE", f"{maps(door)}/b")
    events = door.watch(f"{maps(door)}?watch=true&resourceVersion={version}")
    told = [(event["type"], event["object"]["metadata"]["name"]) for event in events]
    assert told == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(versions)
    assert versions[0] > int(version)


def test_a_watch_by_labels_sees_objects_come_and_go(door: Door) -> None:
    version = make(door, "a")["metadata"]["resourceVersion"]
    merge = {"Content-Type": "application/merge-patch+json"}
    for value in ("y", None):
        door.send("PATCH", f"{maps(door)}/a", {"metadata": {"labels": {"x": value}}}, merge)
    events = door.watch(f"{maps(door)}?watch=true&resourceVersion={version}&labelSelector=x%3Dy")
    assert [event["type"] for event in events] == ["ADDED", "DELETED"]


def test_initial_events_end_with_a_marked_bookmark(door: Door) -> None:
    make(door, "a")
    query = "watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
    events = door.watch(f"{maps(door)}?{query}")
    assert [event["type"] for event in events[:2]] == ["ADDED", "BOOKMARK"]
    assert events[1]["object"]["metadata"]["annotations"] == {END: "true"}
    assert events[1]["object"]["kind"] == "Lease"


@pytest.mark.parametrize(
    "query",
    [
        "watch=true&sendInitialEvents=true&allowWatchBookmarks=true",
        "watch=true&resourceVersionMatch=NotOlderThan&resourceVersion=1",
    ],
)
def test_initial_events_are_asked_for_properly(door: Door, query: str) -> None:
    reply = door.send("GET", f"{maps(door)}?{query}")
    assert (reply.code, reply.body["reason"]) == (422, "Invalid")


def test_forgotten_history_is_gone() -> None:
    """Of the simulator alone: a real server forgets after minutes."""
    door = make_simulator(history=3)
    first = make(door, "a")
    page = door.send("GET", f"{maps(door)}?limit=1&labelSelector=")
    make(door, "b")
    token = quote(door.send("GET", f"{maps(door)}?limit=1").body["metadata"]["continue"])
    for name in "cdefg":
        make(door, name)
    events = door.watch(f"{maps(door)}?watch=true&resourceVersion={first['metadata']['resourceVersion']}")
    assert [(event["type"], event["object"]["code"], event["object"]["reason"]) for event in events] == [
        ("ERROR", 410, "Expired")
    ]
    old = door.send("GET", f"{maps(door)}?limit=1&continue={token}")
    assert (old.code, old.body["reason"], page.code) == (410, "Expired", 200)
