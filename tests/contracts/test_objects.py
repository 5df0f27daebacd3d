"""What both API servers promise of objects: create, read, replace, patch, delete, and the words of their refusals."""

import json
from typing import Any

import pytest

from tests.contracts.conftest import Door

DRA = "/apis/resource.k8s.io/v1"


def templates(door: Door) -> str:
    return f"{DRA}/namespaces/{door.namespace}/resourceclaimtemplates"


def claims(door: Door) -> str:
    return f"{DRA}/namespaces/{door.namespace}/resourceclaims"


def template(name: str = "one", **meta: Any) -> dict[str, Any]:
    asked = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, **meta},
        "spec": {"spec": {"devices": {"requests": [asked]}}},
    }


def claim(name: str = "one", **meta: Any) -> dict[str, Any]:
    spec = template()["spec"]["spec"]
    return template(name, **meta) | {"kind": "ResourceClaim", "spec": spec}


def test_create_fills_in_what_the_server_knows(door: Door) -> None:
    reply = door.send("POST", templates(door), template())
    assert reply.code == 201
    assert {"uid", "creationTimestamp", "resourceVersion", "managedFields"} <= reply.body["metadata"].keys()
    asked = reply.body["spec"]["spec"]["devices"]["requests"][0]["exactly"]
    assert asked == {"deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": 1}
    assert door.send("GET", f"{templates(door)}/one").body == reply.body


def test_a_name_is_taken_once(door: Door) -> None:
    door.send("POST", templates(door), template())
    reply = door.send("POST", templates(door), template())
    assert (reply.code, reply.body["reason"]) == (409, "AlreadyExists")
    assert reply.body["message"] == 'resourceclaimtemplates.resource.k8s.io "one" already exists'
    assert reply.body["details"] == {"name": "one", "group": "resource.k8s.io", "kind": "resourceclaimtemplates"}


def test_what_is_missing_is_not_found(door: Door) -> None:
    reply = door.send("GET", f"{templates(door)}/none")
    assert (reply.code, reply.body["reason"]) == (404, "NotFound")
    assert reply.body["message"] == 'resourceclaimtemplates.resource.k8s.io "none" not found'


def test_a_kind_that_nobody_serves_is_not_found(door: Door) -> None:
    for path in ("/apis/nothing.example.com/v1/things", "/api/v1/nothings", "/apis/resource.k8s.io/v9/resourceclaims"):
        assert door.send("GET", path).code == 404, path


def test_a_name_can_be_generated(door: Door) -> None:
    body = template()
    body["metadata"] = {"generateName": "made-"}
    names = {door.send("POST", templates(door), body).body["metadata"]["name"] for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("made-") and len(name) == 10 for name in names)


def test_unknown_fields_are_refused_strictly(door: Door) -> None:
    body = template()
    body["spec"]["spec"]["devices"]["lost"] = 1
    reply = door.send("POST", f"{templates(door)}?fieldValidation=Strict", body)
    assert (reply.code, reply.body["reason"]) == (400, "BadRequest")
    assert reply.body["message"].endswith('strict decoding error: unknown field "spec.spec.devices.lost"')


def test_doubled_fields_are_refused_strictly(door: Door) -> None:
    text = json.dumps(template()).replace('"name": "one"', '"name": "one", "name": "two"').encode()
    reply = door.send("POST", f"{templates(door)}?fieldValidation=Strict", text)
    assert reply.code == 400
    assert 'duplicate field "metadata.name"' in reply.body["message"]


def test_unknown_fields_warn_where_asked_and_are_dropped(door: Door) -> None:
    reply = door.send("POST", f"{templates(door)}?fieldValidation=Warn", template() | {"lost": 1})
    assert reply.code == 201
    assert "lost" not in reply.body
    assert any('unknown field \\"lost\\"' in warning for warning in reply.warnings)


def test_another_type_is_refused(door: Door) -> None:
    body = template()
    body["spec"]["spec"]["devices"]["requests"] = "many"
    reply = door.send("POST", templates(door), body)
    assert reply.code == 400
    assert "cannot unmarshal string into Go struct field" in reply.body["message"]


def test_faults_are_told_with_their_fields(door: Door) -> None:
    body = template("Upper")
    del body["spec"]["spec"]["devices"]["requests"][0]["exactly"]
    reply = door.send("POST", templates(door), body)
    assert (reply.code, reply.body["reason"]) == (422, "Invalid")
    fields = {cause["field"] for cause in reply.body["details"]["causes"]}
    assert fields == {"metadata.name", "spec.spec.devices.requests[0]"}


NESTED = "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, device.attributes.all(d, true))))"
EXPRESSIONS = [
    ("device.driver ==", 'Invalid value: "device.driver ==": compilation failed: ERROR: <input>:1:17: Syntax error'),
    ("nope", "Invalid value: \"nope\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'nope'"),
    ("1", 'Invalid value: "1": must evaluate to bool or the unknown type, not int'),
    (NESTED, "Forbidden: too complex, exceeds cost limit"),
]


@pytest.mark.parametrize(("expression", "start"), EXPRESSIONS)
def test_a_selector_is_compiled_as_it_is_written(door: Door, expression: str, start: str) -> None:
    selectors = [{"cel": {"expression": expression}}]
    body, asked = template(), {"deviceClassName": "x", "count": 1, "selectors": selectors}
    body["spec"]["spec"]["devices"]["requests"] = [{"name": "gpu", "exactly": asked}]
    reply = door.send("POST", f"{templates(door)}?dryRun=All", body)
    cause = reply.body["details"]["causes"][0]
    where = "spec.spec.devices.requests[0].exactly.selectors[0].cel.expression"
    assert (reply.code, cause["field"], cause["message"][: len(start)]) == (422, where, start)
    device_class = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "spec": {"selectors": selectors}}
    reply = door.send("POST", f"{DRA}/deviceclasses?dryRun=All", device_class | {"metadata": {"name": "x"}})
    assert (reply.code, reply.body["details"]["causes"][0]["field"]) == (422, "spec.selectors[0].cel.expression")


def test_a_dry_run_answers_and_stores_nothing(door: Door) -> None:
    assert door.send("POST", f"{templates(door)}?dryRun=All", template()).code == 201
    assert door.send("GET", f"{templates(door)}/one").code == 404
    door.send("POST", templates(door), template())
    assert door.send("POST", f"{templates(door)}?dryRun=All", template()).code == 409
    assert door.send("DELETE", f"{templates(door)}/one?dryRun=All").code == 200
    assert door.send("GET", f"{templates(door)}/one").code == 200


def test_yaml_is_read(door: Door) -> None:
    text = b"""
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: from-yaml, annotations: {example.com/at: "2026-01-01T00:00:00Z"}}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: a, count: 2}}]}}}
"""
    reply = door.send("POST", templates(door), text, {"Content-Type": "application/yaml"})
    assert reply.code == 201, reply.body
    assert reply.body["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] == 2


def test_a_body_of_another_kind_or_type_is_refused(door: Door) -> None:
    assert door.send("POST", templates(door), claim()).code == 400
    assert door.send("POST", templates(door), b"?", {"Content-Type": "text/html"}).code == 415
    assert door.send("POST", templates(door), b"{").code == 400


def test_an_old_version_is_a_conflict(door: Door) -> None:
    first = door.send("POST", claims(door), claim()).body
    newer = first | {"metadata": first["metadata"] | {"labels": {"a": "b"}}}
    assert door.send("PUT", f"{claims(door)}/one", newer).code == 200
    reply = door.send("PUT", f"{claims(door)}/one", newer | {"metadata": first["metadata"]})
    assert (reply.code, reply.body["reason"]) == (409, "Conflict")
    assert "the object has been modified; please apply your changes to the latest version" in reply.body["message"]


def test_a_spec_that_may_not_change_is_refused(door: Door) -> None:
    first = door.send("POST", claims(door), claim()).body
    first["spec"]["devices"]["requests"][0]["name"] = "other"
    reply = door.send("PUT", f"{claims(door)}/one", first)
    assert reply.code == 422
    assert "field is immutable" in reply.body["message"]


def test_status_is_written_apart(door: Door) -> None:
    first = door.send("POST", claims(door), claim() | {"status": {"reservedFor": []}}).body
    assert not first.get("status")
    merge = {"Content-Type": "application/merge-patch+json"}
    labels = {"metadata": {"labels": {"a": "b"}}, "status": {"allocation": {"devices": {}}}}
    main = door.send("PATCH", f"{claims(door)}/one", labels, merge)
    assert (main.body["metadata"]["labels"], main.body.get("status") or {}) == ({"a": "b"}, {})
    status = door.send("PATCH", f"{claims(door)}/one/status", {"status": {"allocation": {"devices": {}}}}, merge)
    assert status.code == 200
    assert "allocation" in door.send("GET", f"{claims(door)}/one").body["status"]


def test_a_merge_patch_takes_away_what_is_null(door: Door) -> None:
    door.send("POST", claims(door), claim(labels={"a": "1", "b": "2"}))
    merge = {"Content-Type": "application/merge-patch+json"}
    patched = door.send("PATCH", f"{claims(door)}/one", {"metadata": {"labels": {"a": None, "c": "3"}}}, merge)
    assert patched.body["metadata"]["labels"] == {"b": "2", "c": "3"}


def test_a_delete_may_name_which_object_it_means(door: Door) -> None:
    door.send("POST", claims(door), claim())
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "another"}}
    reply = door.send("DELETE", f"{claims(door)}/one", options)
    assert (reply.code, reply.body["reason"]) == (409, "Conflict")
    assert "the UID in the precondition (another) does not match the UID in record" in reply.body["message"]
    assert door.send("DELETE", f"{claims(door)}/one").code == 200
    assert door.send("GET", f"{claims(door)}/one").code == 404


def test_a_finalizer_holds_what_is_deleted(door: Door) -> None:
    door.send("POST", claims(door), claim(finalizers=["example.com/hold"]))
    door.send("DELETE", f"{claims(door)}/one")
    held = door.send("GET", f"{claims(door)}/one").body
    assert "deletionTimestamp" in held["metadata"]
    door.send(
        "PATCH", f"{claims(door)}/one", {"metadata": {"finalizers": None}},
        {"Content-Type": "application/merge-patch+json"},
    )  # fmt: skip
    assert door.send("GET", f"{claims(door)}/one").code == 404


def test_generation_follows_the_spec(door: Door) -> None:
    name = f"generation-{door.namespace}"
    body = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": {}}
    path = f"{DRA}/deviceclasses"
    merge = {"Content-Type": "application/merge-patch+json"}
    assert door.send("POST", path, body).body["metadata"]["generation"] == 1
    labelled = door.send("PATCH", f"{path}/{name}", {"metadata": {"labels": {"a": "b"}}}, merge)
    assert labelled.body["metadata"]["generation"] == 1
    changed = {"spec": {"extendedResourceName": "example.com/gpu"}}
    assert door.send("PATCH", f"{path}/{name}", changed, merge).body["metadata"]["generation"] == 2
    door.send("DELETE", f"{path}/{name}")
