"""Reviews: questions about rights that are answered and not kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulator import kinds
from simulator.api.access import Attributes, User, allows
from simulator.kinds import Kind
from simulator.store import Object, Store


def review(store: Store, kind: Kind, given: Object, user: User) -> Object:
    """The review with its status: about the one who asks, or about the one it names."""
    spec: Mapping[str, Any] = given.get("spec", {})
    if kind == kinds.SUBJECT_ACCESS_REVIEW:
        user = User(spec.get("user", ""), tuple(spec.get("groups", ())))
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
    status = {"allowed": allows(store, user, attributes)}
    return given | {"apiVersion": kind.api_version, "kind": kind.kind, "status": status}
