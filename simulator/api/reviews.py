"""Reviews: questions about rights and identity that are answered and not kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from simulator.api.access import Attributes, User, allows
from simulator.kinds import Kind
from simulator.store import Object, Store

type FindUser = Callable[[str], User | None]


def review(store: Store, kind: Kind, given: Object, user: User, find_user: FindUser) -> Object:
    """The review with its status filled in."""
    spec: Mapping[str, Any] = given.get("spec", {})
    match kind.kind:
        case "SelfSubjectAccessReview":
            status: Object = _access(store, user, spec)
        case "SubjectAccessReview":
            status = _access(store, User(spec.get("user", ""), tuple(spec.get("groups", ()))), spec)
        case "SelfSubjectReview":
            status = {"userInfo": _told(user)}
        case _:
            found = find_user(spec.get("token", ""))
            status = {"authenticated": True, "user": _told(found)} if found else {"user": {}}
    return given | {"apiVersion": kind.api_version, "kind": kind.kind, "status": status}


def _access(store: Store, user: User, spec: Mapping[str, Any]) -> Object:
    asked = spec.get("resourceAttributes", {})
    path = spec.get("nonResourceAttributes", {})
    attributes = Attributes(
        verb=asked.get("verb", "") or path.get("verb", ""),
        group=asked.get("group", ""),
        resource=asked.get("resource", ""),
        subresource=asked.get("subresource", ""),
        namespace=asked.get("namespace", ""),
        name=asked.get("name", ""),
        path=path.get("path", ""),
    )
    return {"allowed": allows(store, user, attributes)}


def _told(user: User) -> Object:
    told: Object = {"username": user.name, "groups": list(user.groups)}
    extra = {key: list(values) for key, values in user.extra.items()}
    return told | ({"uid": user.uid} if user.uid else {}) | ({"extra": extra} if extra else {})
