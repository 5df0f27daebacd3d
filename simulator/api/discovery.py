"""What the server says of itself: version, groups, resources, and the kinds of each group (old and aggregated form)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from simulator.kinds import Kind

VERSION: Final = {
    "major": "1", "minor": "37", "gitVersion": "v1.37.2+portico-simulator", "gitCommit": "", "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "", "platform": "linux/amd64",
}  # fmt: skip
AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

type Document = dict[str, Any]


def core_versions() -> Document:
    """`/api`."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def groups(kinds: Iterable[Kind]) -> Document:
    """`/apis`."""
    names = sorted({(kind.group, kind.version) for kind in kinds if kind.group})
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(*each) for each in names]}


def group(kinds: Iterable[Kind], name: str) -> Document | None:
    """`/apis/<group>`, None where nothing is served."""
    for kind in kinds:
        if name and kind.group == name:
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, kind.version)}
    return None


def _group(name: str, version: str) -> Document:
    served = {"groupVersion": f"{name}/{version}", "version": version}
    return {"name": name, "versions": [served], "preferredVersion": served}


def resources(kinds: Iterable[Kind], group: str, version: str) -> Document | None:
    """`/api/v1`, `/apis/<group>/<version>`: its kinds and their subresources; None where nothing is served."""
    found = [kind for kind in kinds if (kind.group, kind.version) == (group, version)]
    if not found:
        return None
    listed = [entry for kind in found for entry in _entries(kind)]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": found[0].api_version, "resources": listed}


def _entries(kind: Kind) -> Iterable[Document]:
    base = {"namespaced": kind.namespaced, "kind": kind.kind}
    names = {"shortNames": list(kind.short_names)} if kind.short_names else {}
    yield {"name": kind.plural, "singularName": kind.singular, **base, "verbs": list(kind.verbs), **names}
    for subresource in subresources(kind):
        verbs = ["create"] if subresource == "binding" else ["get", "patch", "update"]
        yield {"name": f"{kind.plural}/{subresource}", "singularName": "", **base, "verbs": verbs}


def subresources(kind: Kind) -> tuple[str, ...]:
    """What stands below one object."""
    return (("status",) if kind.status else ()) + (("binding",) if kind.kind == "Pod" else ())


def aggregated(kinds: Iterable[Kind], *, core: bool) -> Document:
    """`/api` or `/apis` in the form of `apidiscovery.k8s.io/v2`."""
    served = [kind for kind in kinds if (not kind.group) == core]
    items = []
    for name, version in sorted({(kind.group, kind.version) for kind in served}):
        found = [kind for kind in served if kind.group == name]
        listed = [_aggregated(kind) for kind in found]
        versions = [{"version": version, "resources": listed, "freshness": "Current"}]
        items.append({"metadata": {"name": name} if name else {}, "versions": versions})
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _aggregated(kind: Kind) -> Document:
    response = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    below = [
        {"subresource": each, "responseKind": response, "verbs": ["get", "patch", "update"]}
        for each in subresources(kind)
    ]
    return {
        "resource": kind.plural,
        "responseKind": response,
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
        **({"shortNames": list(kind.short_names)} if kind.short_names else {}),
        **({"subresources": below} if below else {}),
    }
