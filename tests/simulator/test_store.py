"""The store holds what the API server promises of versions, preconditions, finalizers, generations and history."""

import pytest

from simulator.kinds import DEVICE_CLASS, NODE, POD, RESOURCE_CLAIM
from simulator.store import (
    AlreadyExistsError,
    Change,
    ConflictError,
    ExpiredError,
    NotFoundError,
    Preconditions,
    Stamp,
    Store,
)

AT = Stamp("2026-01-01T00:00:00Z", "uid-1")


def claim(name: str = "one", **meta: object) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": "team", **meta}, "spec": {"devices": {}}}


def test_a_new_object_gets_uid_time_version_and_its_kind() -> None:
    store = Store()
    made = store.create(RESOURCE_CLAIM, claim(), AT)
    assert (made["apiVersion"], made["kind"]) == ("resource.k8s.io/v1", "ResourceClaim")
    assert made["metadata"] == {
        "name": "one",
        "namespace": "team",
        "uid": "uid-1",
        "creationTimestamp": AT.now,
        "resourceVersion": "2",
    }


def test_a_name_is_taken_once_in_each_namespace() -> None:
    store = Store()
    store.create(RESOURCE_CLAIM, claim(), AT)
    store.create(RESOURCE_CLAIM, claim() | {"metadata": {"name": "one", "namespace": "other"}}, AT)
    with pytest.raises(AlreadyExistsError, match=r'resourceclaims.resource.k8s.io "one" already exists'):
        store.create(RESOURCE_CLAIM, claim(), AT)
    assert [each["metadata"]["namespace"] for each in store.all(RESOURCE_CLAIM)] == ["other", "team"]
    assert len(store.all(RESOURCE_CLAIM, "team")) == 1


def test_generation_grows_with_the_spec_alone() -> None:
    store = Store()
    made = store.create(DEVICE_CLASS, {"metadata": {"name": "gpu"}, "spec": {}}, AT)
    labelled = store.replace(DEVICE_CLASS, made | {"metadata": made["metadata"] | {"labels": {"a": "b"}}})
    assert (made["metadata"]["generation"], labelled["metadata"]["generation"]) == (1, 1)
    wider = store.replace(DEVICE_CLASS, labelled | {"spec": {"extendedResourceName": "example.com/gpu"}})
    assert wider["metadata"]["generation"] == 2


def test_an_equal_object_is_no_change() -> None:
    store = Store()
    made = store.create(RESOURCE_CLAIM, claim(), AT)
    assert store.replace(RESOURCE_CLAIM, made) is made
    assert store.version == 2


def test_status_and_the_rest_are_written_apart() -> None:
    store = Store()
    made = store.create(RESOURCE_CLAIM, claim(), AT)
    with_status = store.replace(
        RESOURCE_CLAIM, made | {"spec": {"lost": True}, "status": {"reservedFor": []}}, subresource="status"
    )
    assert (with_status["spec"], with_status["status"]) == ({"devices": {}}, {"reservedFor": []})
    main = store.replace(RESOURCE_CLAIM, with_status | {"status": {"lost": True}, "spec": {"devices": {"a": 1}}})
    assert (main["spec"], main["status"]) == ({"devices": {"a": 1}}, {"reservedFor": []})


def test_an_old_version_and_another_uid_conflict() -> None:
    store = Store()
    made = store.create(RESOURCE_CLAIM, claim(), AT)
    store.replace(RESOURCE_CLAIM, made | {"spec": {"devices": {"a": 1}}})
    with pytest.raises(ConflictError, match="the object has been modified; please apply your changes"):
        store.replace(RESOURCE_CLAIM, made | {"spec": {"devices": {"a": 2}}})
    with pytest.raises(ConflictError, match=r"precondition .other. does not match the UID in record .uid-1."):
        store.delete(RESOURCE_CLAIM, ("team", "one"), AT, Preconditions(uid="other"))


def test_a_finalizer_holds_what_is_deleted() -> None:
    store = Store()
    store.create(RESOURCE_CLAIM, claim(finalizers=["example.com/hold"]), AT)
    marked = store.delete(RESOURCE_CLAIM, ("team", "one"), AT)
    assert marked["metadata"]["deletionTimestamp"] == AT.now
    assert store.delete(RESOURCE_CLAIM, ("team", "one"), AT) is marked
    freed = {key: value for key, value in marked["metadata"].items() if key != "finalizers"}
    store.replace(RESOURCE_CLAIM, marked | {"metadata": freed})
    with pytest.raises(NotFoundError):
        store.get(RESOURCE_CLAIM, "one", "team")
    assert [change.type for change in store.changes_since(1, RESOURCE_CLAIM)] == ["ADDED", "MODIFIED", "DELETED"]


def test_a_running_pod_goes_when_its_kubelet_says_so() -> None:
    store = Store()
    store.create(POD, {"metadata": {"name": "p", "namespace": "team"}, "spec": {"nodeName": "n"}}, AT)
    marked = store.delete(POD, ("team", "p"), AT, grace_seconds=30)
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
    labelled = store.replace(POD, marked | {"metadata": marked["metadata"] | {"labels": {"a": "b"}}})
    assert store.get(POD, "p", "team") is labelled
    store.delete(POD, ("team", "p"), AT)
    assert store.find(POD, "p", "team") is None


def test_history_tells_one_kind_in_order_and_ends_somewhere() -> None:
    store = Store(history=3)
    for number in range(3):
        store.create(RESOURCE_CLAIM, claim(f"c{number}"), AT)
        store.create(NODE, {"metadata": {"name": f"n{number}"}}, AT)
    assert [change.after["metadata"]["name"] for change in store.changes_since(4, RESOURCE_CLAIM)] == ["c2"]
    assert store.changes_since(store.version, NODE) == []
    with pytest.raises(ExpiredError, match=r"too old resource version: 3 \(4\)"):
        store.changes_since(3, NODE)


def test_listeners_hear_each_change_with_what_was_before() -> None:
    heard: list[Change] = []
    store = Store()
    store.listen(heard.append)
    made = store.create(NODE, {"metadata": {"name": "n"}}, AT)
    store.delete(NODE, ("", "n"), AT)
    assert [(change.type, change.before) for change in heard] == [("ADDED", None), ("DELETED", made)]
