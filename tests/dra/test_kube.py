"""Requests, answers and watch lines as values: the pure halves of the door to Kubernetes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dra.errors import InvalidObjectError
from dra.kube import errors, requests
from dra.kube.requests import DEVICE_CLASSES, PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, Person, Request
from dra.kube.responses import parse_page, parse_refusal
from dra.kube.watch import parse_event, written_at

GROUP = "/apis/resource.k8s.io/v1"


@pytest.mark.parametrize(
    ("request_", "method", "path", "query"),
    [
        (requests.get(PODS, "p", namespace="a"), "GET", "/api/v1/namespaces/a/pods/p", {}),
        (requests.get(DEVICE_CLASSES, "h100"), "GET", f"{GROUP}/deviceclasses/h100", {}),
        (requests.get(DEVICE_CLASSES, "a/../b?c"), "GET", f"{GROUP}/deviceclasses/a%2F..%2Fb%3Fc", {}),
        (requests.list_page(RESOURCE_CLAIMS), "GET", f"{GROUP}/resourceclaims", {"limit": "100"}),
        (
            requests.list_page(RESOURCE_CLAIMS, namespace="a", continue_token="t"),
            "GET", f"{GROUP}/namespaces/a/resourceclaims", {"limit": "100", "continue": "t"},
        ),
        (
            requests.watch(RESOURCE_CLAIMS, initial_events=True, seconds=5),
            "GET", f"{GROUP}/resourceclaims",
            {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": "5", "sendInitialEvents": "true",
             "resourceVersionMatch": "NotOlderThan"},
        ),
        (
            requests.create(RESOURCE_CLAIM_TEMPLATES, b"x", namespace="a", yaml=True, dry_run=True),
            "POST", f"{GROUP}/namespaces/a/resourceclaimtemplates",
            {"fieldManager": "portico", "fieldValidation": "Strict", "dryRun": "All"},
        ),
        (
            requests.apply(f"{GROUP}/namespaces/a/resourceclaims/c/status", b"x", manager="m"),
            "PATCH", f"{GROUP}/namespaces/a/resourceclaims/c/status",
            {"fieldManager": "m", "force": "true", "fieldValidation": "Strict"},
        ),
    ],
)  # fmt: skip
def test_verb_kind_and_object_to_a_request(request_: Request, method: str, path: str, query: dict[str, str]) -> None:
    assert (request_.method, request_.path, dict(request_.query)) == (method, path, query)


def test_a_request_for_a_person_carries_the_user_and_each_group() -> None:
    person = Person("portico:alice", ("portico:ml-team", "portico:other"))

    request = requests.create(RESOURCE_CLAIM_TEMPLATES, b"x", namespace="a", yaml=True).as_person(person)

    assert request.headers == (
        ("Content-Type", "application/yaml"),
        ("Impersonate-User", "portico:alice"),
        ("Impersonate-Group", "portico:ml-team"),
        ("Impersonate-Group", "portico:other"),
    )


def test_a_delete_with_preconditions_removes_only_that_very_object() -> None:
    request = requests.delete(RESOURCE_CLAIMS, "c", namespace="a", uid="u-1", resource_version="7")

    assert json.loads(request.body or b"") == {
        "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "u-1", "resourceVersion": "7"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", errors.InvalidError), (401, "Unauthorized", errors.UnauthorizedError),
        (403, "Forbidden", errors.ForbiddenError), (404, "NotFound", errors.NotFoundError),
        (409, "AlreadyExists", errors.AlreadyExistsError), (409, "Conflict", errors.ConflictError),
        (410, "Expired", errors.GoneError), (422, "Invalid", errors.InvalidError),
        (429, "TooManyRequests", errors.BusyError), (500, "InternalError", errors.BusyError),
        (418, "", errors.RefusedError),
    ],
)  # fmt: skip
def test_a_status_becomes_an_error_by_meaning(code: int, reason: str, kind: type[errors.RefusedError]) -> None:
    body = json.dumps({"kind": "Status", "code": code, "reason": reason, "message": "the server's sentence"}).encode()

    error = parse_refusal(code, body)

    assert (type(error), error.code, error.message) == (kind, code, "the server's sentence")


def test_a_page_of_a_proxy_is_quoted_and_cut() -> None:
    error = parse_refusal(502, b"<html>" + b"x" * 5000)

    assert isinstance(error, errors.BusyError)
    assert error.message.startswith("<html>xxx")
    assert len(error.message) == 2000


def test_a_page_keeps_each_objects_bytes() -> None:
    page = parse_page(b'{"metadata": {"resourceVersion": "9", "continue": "t"}, "items": [{"a": 1.50}, {"b": 2}]}')

    assert (page.items, page.resource_version, page.continue_token) == ((b'{"a": 1.50}', b'{"b": 2}'), "9", "t")
    assert parse_page(b'{"metadata": {"resourceVersion": "9"}, "items": null}').items == ()


def test_watch_lines() -> None:
    added = parse_event(b'{"type":"ADDED","object":{"metadata":{"name":"s","resourceVersion":"5"}}}')
    bookmark = parse_event(
        b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"8","annotations":{"k8s.io/initial-events-end":"true"}}}}'
    )

    assert (added.type, added.resource_version, added.ends_list) == ("ADDED", "5", False)
    assert added.object == b'{"metadata":{"name":"s","resourceVersion":"5"}}'
    assert (bookmark.type, bookmark.resource_version, bookmark.ends_list) == ("BOOKMARK", "8", True)


def test_an_error_in_a_watch_is_raised_by_its_code() -> None:
    line = b'{"type":"ERROR","object":{"code":410,"reason":"Expired","message":"too old resource version"}}'

    with pytest.raises(errors.GoneError, match="too old resource version"):
        parse_event(line)


@pytest.mark.parametrize(
    ("kind", "metadata", "expected"),
    [
        ("ADDED", {"creationTimestamp": "2026-01-01T00:00:00Z"}, "2026-01-01T00:00:00+00:00"),
        (
            "MODIFIED",
            {
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "managedFields": [{"time": "2026-01-01T00:00:09Z"}, {"time": "2026-01-01T00:00:05Z"}, {}],
            },
            "2026-01-01T00:00:09+00:00",
        ),
        ("DELETED", {"creationTimestamp": "2026-01-01T00:00:00Z"}, None),  # it tells of an earlier write
        ("BOOKMARK", {}, None),
        ("ADDED", {}, None),
        ("ADDED", {"creationTimestamp": "yesterday"}, None),
    ],
)
def test_when_a_change_was_written(kind: str, metadata: dict[str, Any], expected: str | None) -> None:
    event = parse_event(json.dumps({"type": kind, "object": {"metadata": metadata}}).encode())
    moment = written_at(event)
    assert (moment and moment.isoformat()) == expected


@pytest.mark.parametrize("line", [b"", b"{}", b'{"type":"NEW","object":{}}', b'{"type":"ADDED","object":[]}'])
def test_a_line_that_is_no_event_is_a_named_fault(line: bytes) -> None:
    with pytest.raises(InvalidObjectError):
        parse_event(line)
