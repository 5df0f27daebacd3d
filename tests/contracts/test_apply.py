"""What both API servers promise of server-side apply: managers, conflicts, fields that are given up."""

from typing import Any

from tests.contracts.conftest import Door, Reply


def apply(door: Door, body: Any, manager: str, *, force: bool = False, name: str = "one") -> Reply:
    given = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}} | body
    path = f"/api/v1/namespaces/{door.namespace}/resourcequotas/{name}"
    query = f"fieldManager={manager}" + ("&force=true" if force else "")
    return door.send("PATCH", f"{path}?{query}", given, {"Content-Type": "application/apply-patch+yaml"})


def hard(**limits: str) -> dict[str, Any]:
    return {"spec": {"hard": limits}}


def test_apply_makes_and_owns(door: Door) -> None:
    reply = apply(door, hard(pods="5"), "one")
    assert reply.code == 201
    owned = [entry for entry in reply.body["metadata"]["managedFields"] if entry["operation"] == "Apply"]
    assert [(entry["manager"], entry["fieldsV1"]) for entry in owned] == [
        ("one", {"f:spec": {"f:hard": {"f:pods": {}}}})
    ]
    assert apply(door, hard(pods="6"), "one").code == 200


def test_what_another_holds_is_a_conflict_until_forced(door: Door) -> None:
    apply(door, hard(pods="5"), "one")
    refused = apply(door, hard(pods="6"), "two")
    assert (refused.code, refused.body["reason"]) == (409, "Conflict")
    assert refused.body["message"] == 'Apply failed with 1 conflict: conflict with "one": .spec.hard.pods'
    assert refused.body["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".spec.hard.pods"}
    ]
    forced = apply(door, hard(pods="6"), "two", force=True)
    assert forced.body["spec"]["hard"] == {"pods": "6"}
    managers = {each["manager"] for each in forced.body["metadata"]["managedFields"] if each["operation"] == "Apply"}
    assert managers == {"two"}


def test_the_same_value_is_shared(door: Door) -> None:
    apply(door, hard(pods="5"), "one")
    assert apply(door, hard(pods="5"), "two").code == 200
    left = apply(door, {"spec": {}}, "one")
    assert left.body["spec"]["hard"] == {"pods": "5"}


def test_what_is_no_longer_applied_goes(door: Door) -> None:
    apply(door, hard(**{"pods": "5", "count/jobs.batch": "3"}), "one")
    assert apply(door, hard(pods="5"), "one").body["spec"]["hard"] == {"pods": "5"}


def test_what_others_wrote_stays(door: Door) -> None:
    apply(door, hard(pods="5"), "one")
    path = f"/api/v1/namespaces/{door.namespace}/resourcequotas/one"
    merge = {"Content-Type": "application/merge-patch+json"}
    door.send("PATCH", f"{path}?fieldManager=hand", {"metadata": {"labels": {"a": "b"}}}, merge)
    after = apply(door, hard(pods="7"), "one")
    assert after.body["metadata"]["labels"] == {"a": "b"}
    conflict = apply(door, {"metadata": {"name": "one", "labels": {"a": "c"}}} | hard(pods="7"), "one")
    assert conflict.code == 409
    assert 'conflict with "hand" using v1: .metadata.labels.a' in conflict.body["message"]


def test_apply_names_its_manager(door: Door) -> None:
    path = f"/api/v1/namespaces/{door.namespace}/resourcequotas/one"
    body = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "one"}}
    reply = door.send("PATCH", path, body, {"Content-Type": "application/apply-patch+yaml"})
    assert (reply.code, "fieldManager: Required value" in reply.body["message"]) == (422, True)


def test_items_of_a_keyed_list_have_owners_of_their_own(door: Door) -> None:
    name = f"apply-{door.namespace}"
    path = f"/apis/resource.k8s.io/v1/namespaces/{door.namespace}/resourceclaims"
    spec = {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "x"}}]}}
    base = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}}
    door.send("POST", path, base | {"spec": spec})
    for driver in ("one.example.com", "two.example.com"):
        device = {"driver": driver, "pool": "p", "device": "d"}
        status = {"allocation": {"devices": {"results": [device | {"request": "a"}]}}}
        if driver.startswith("one"):
            results = [
                {"request": "a", "driver": each, "pool": "p", "device": "d"}
                for each in ("one.example.com", "two.example.com")
            ]
            status = {"allocation": {"devices": {"results": results}}}
            merge = {"Content-Type": "application/merge-patch+json"}
            assert door.send("PATCH", f"{path}/{name}/status", {"status": status}, merge).code == 200
        applied = door.send(
            "PATCH", f"{path}/{name}/status?fieldManager={driver}", base | {"status": {"devices": [device]}},
            {"Content-Type": "application/apply-patch+yaml"},
        )  # fmt: skip
        assert applied.code == 200, applied.body
    drivers = [each["driver"] for each in applied.body["status"]["devices"]]
    assert drivers == ["one.example.com", "two.example.com"]
    emptied = door.send(
        "PATCH", f"{path}/{name}/status?fieldManager=one.example.com", base | {"status": {}},
        {"Content-Type": "application/apply-patch+yaml"},
    )  # fmt: skip
    assert [each["driver"] for each in emptied.body["status"]["devices"]] == ["two.example.com"]
