"""What the server says of itself: version, groups, resources.

Of OpenAPI just enough that kubectl leaves validation to the server; no types stand in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from simulator.kinds import Kind

VERSION: Final = {
    "major": "1", "minor": "37", "gitVersion": "v1.37.2+portico-simulator", "gitCommit": "", "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "", "platform": "linux/amd64",
}  # fmt: skip

type Document = dict[str, Any]


def document(kinds: Sequence[Kind], path: str) -> Document | None:
    """What stands at that path, None where nothing does."""
    found: Document | None = None
    match path.strip("/").split("/"):
        case ["api"]:
            found = _core_versions()
        case ["apis"]:
            found = _groups(kinds)
        case ["api", version]:
            found = _resources(kinds, "", version)
        case ["apis", name]:
            found = _one_group(kinds, name)
        case ["apis", name, version]:
            found = _resources(kinds, name, version)
        case ["openapi", "v3"]:
            found = _openapi_index(kinds)
        case ["openapi", "v3", *root]:
            found = _openapi(kinds, "/".join(root))
    return found


def _core_versions() -> Document:
    """`/api`."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def _groups(kinds: Iterable[Kind]) -> Document:
    """`/apis`."""
    names = sorted({(kind.group, kind.version) for kind in kinds if kind.group})
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(*each) for each in names]}


def _one_group(kinds: Iterable[Kind], name: str) -> Document | None:
    """`/apis/<group>`, None where nothing is served."""
    for kind in kinds:
        if name and kind.group == name:
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, kind.version)}
    return None


def _group(name: str, version: str) -> Document:
    served = {"groupVersion": f"{name}/{version}", "version": version}
    return {"name": name, "versions": [served], "preferredVersion": served}


def _resources(kinds: Iterable[Kind], group: str, version: str) -> Document | None:
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
    if kind.status:
        yield {"name": f"{kind.plural}/status", "singularName": "", **base, "verbs": ["get", "patch", "update"]}


def _openapi_index(kinds: Iterable[Kind]) -> Document:
    """`/openapi/v3`."""
    roots = sorted({_root(kind) for kind in kinds})
    return {"paths": {root: {"serverRelativeURL": f"/openapi/v3/{root}?hash={VERSION['minor']}"} for root in roots}}


def _openapi(kinds: Iterable[Kind], root: str) -> Document | None:
    """`/openapi/v3/<root>`: that each kind there is patched with `fieldValidation`; None where nothing is served."""
    parameters = [{"name": "fieldValidation", "in": "query"}]
    paths = {}
    for kind in kinds:
        if _root(kind) == root:
            gvk = {"group": kind.group, "version": kind.version, "kind": kind.kind}
            patch = {"parameters": parameters, "responses": {}, "x-kubernetes-group-version-kind": gvk}
            paths[f"/{root}/{kind.plural}/{{name}}"] = {"patch": patch}
    info = {"title": "Kubernetes", "version": VERSION["gitVersion"]}
    return {"openapi": "3.0.0", "info": info, "paths": paths} if paths else None


def _root(kind: Kind) -> str:
    return f"apis/{kind.api_version}" if kind.group else f"api/{kind.version}"
