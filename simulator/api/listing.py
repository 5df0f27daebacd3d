"""Lists in pages, and watches from a version (Kubernetes API concepts; apiserver/pkg/storage).

A page that goes on continues in the state of the first page, remade from the history; too far back is 410.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec

from simulator.api import selectors
from simulator.api.calls import Answer, Place, Watch, answer, bookmark, event, whole_number
from simulator.api.failures import ApiError, status_of
from simulator.kinds import Kind
from simulator.store import ExpiredError, Object, Store

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
_LONGEST: Final = 1800  # seconds of a watch that names no end; the API server takes 1,800 to 3,600
_TRUE: Final = frozenset({"1", "t", "true", "True", "TRUE"})


def is_true(query: Mapping[str, str], name: str) -> bool:
    """Whether a boolean parameter is set, by the spellings of Go's ParseBool."""
    return query.get(name, "") in _TRUE


def matcher(place: Place, query: Mapping[str, str]) -> Callable[[Object], bool]:
    """The test of a list or watch: namespace, name, labels, fields; ApiError 400 for a bad selector."""
    by_label = selectors.labels(query.get("labelSelector", ""))
    by_field = selectors.fields(place.kind, query.get("fieldSelector", ""))
    namespace = place.namespace

    def matches(stored: Object) -> bool:
        inside = not namespace or stored["metadata"].get("namespace") == namespace
        return inside and by_label(stored) and by_field(stored)

    return matches


def page(store: Store, place: Place, query: Mapping[str, str]) -> Answer:
    """One page of a list."""
    limit = whole_number(query, "limit")
    version, start = _begun(store, query)
    matches = matcher(place, query)
    found = [item for item in _state(store, place.kind, version) if _key(item) > start and matches(item)]
    more = bool(limit) and len(found) > limit
    meta: dict[str, Any] = {"resourceVersion": str(version)}
    if more:
        meta |= {"continue": _token(version, _key(found[limit - 1]))}
        if not query.get("labelSelector") and not query.get("fieldSelector"):
            meta |= {"remainingItemCount": len(found) - limit}
    kind = place.kind
    items = found[:limit] if more else found
    return answer({"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": meta, "items": items})


def _begun(store: Store, query: Mapping[str, str]) -> tuple[int, tuple[str, str]]:
    """The version that a list shows, and after which object it goes on."""
    if token := query.get("continue", ""):
        if query.get("resourceVersion", "") not in {"", "0"}:
            raise ApiError("BadRequest", "specifying resource version is not allowed when using continue")
        return _read_token(token)
    if "resourceVersionMatch" in query:
        raise ApiError(
            "BadRequest", "resourceVersionMatch: the simulator lists what there is now, or goes on with a page"
        )
    _not_from_the_future(store, whole_number(query, "resourceVersion"))
    return store.version, ("", "")


def _not_from_the_future(store: Store, version: int) -> None:
    if version > store.version:
        raise ApiError("Expired", f"Too large resource version: {version}, current: {store.version}")


def _token(version: int, last: tuple[str, str]) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode([version, *last])).decode()


def _read_token(token: str) -> tuple[int, tuple[str, str]]:
    try:
        version, namespace, name = msgspec.json.decode(base64.urlsafe_b64decode(token), type=tuple[int, str, str])
    except (binascii.Error, msgspec.DecodeError, ValueError) as error:
        raise ApiError("BadRequest", "continue key is not valid: it was not made by this server") from error
    return version, (namespace, name)


def _key(stored: Object) -> tuple[str, str]:
    meta = stored["metadata"]
    return (meta.get("namespace", ""), meta["name"])


def _state(store: Store, kind: Kind, version: int) -> list[Object]:
    """All objects of the kind as they were at the version."""
    if version >= store.version:
        return store.all(kind)
    try:
        changes = store.changes_since(version, kind)
    except ExpiredError as error:
        why = "The provided continue parameter is too old to display a consistent list result."
        raise ApiError("Expired", f"{why} {error}") from error
    state = {_key(stored): stored for stored in store.all(kind)}
    for change in reversed(changes):
        if change.before is None:
            state.pop(_key(change.after), None)
        else:
            state[_key(change.after)] = change.before
    return [state[key] for key in sorted(state)]


def watch(store: Store, place: Place, query: Mapping[str, str]) -> Watch:
    """Open a watch. One that starts too far back is answered by an ERROR event and ends at once, as a real one is."""
    version = whole_number(query, "resourceVersion")
    initial = is_true(query, "sendInitialEvents")
    bookmarks = is_true(query, "allowWatchBookmarks")
    _hold_initial_events(query)
    matches = matcher(place, query)
    seconds = float(whole_number(query, "timeoutSeconds") or _LONGEST)
    opened = Watch(
        kind=place.kind, first=(), version=store.version, matches=matches, bookmarks=bookmarks, seconds=seconds
    )
    if initial or not version:
        first = [event("ADDED", stored) for stored in store.all(place.kind) if matches(stored)]
        if initial and bookmarks:
            first.append(bookmark(place.kind, store.version, {INITIAL_EVENTS_END: "true"}))
        return replace(opened, first=tuple(first))
    try:
        _not_from_the_future(store, version)
        lines = [opened.line_of(change) for change in store.changes_since(version, place.kind)]
    except (ExpiredError, ApiError) as error:
        return replace(opened, first=(event("ERROR", status_of(error)),), seconds=0.0, bookmarks=False)
    return replace(opened, first=tuple(line for line in lines if line))


def _hold_initial_events(query: Mapping[str, str]) -> None:
    """ApiError 422 for combinations that apimachinery's ValidateListOptions refuses."""
    match, given = query.get("resourceVersionMatch", ""), "sendInitialEvents" in query
    if given and match != "NotOlderThan":
        raise _forbidden(
            "resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        )
    if match and not given:
        raise _forbidden(
            "resourceVersionMatch", "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        )


def _forbidden(field: str, why: str) -> ApiError:
    return ApiError("Invalid", f'ListOptions.meta.k8s.io "" is invalid: {field}: Forbidden: {why}')
