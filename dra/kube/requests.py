"""Verb, kind and object to a request value. Pure: nothing is sent here.

Paths and parameters: Kubernetes API concepts ("Resource URIs", "Dry-run", "Field validation", "Watch bookmarks",
"Streaming lists"); impersonation headers: "User impersonation" of the authentication reference.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

import msgspec

FIELD_MANAGER = "portico"
PAGE = 100  # objects per page of a list; measured best for slices, in memory and time
type Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Resource:
    """A served kind: where its objects are found."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = False

    @property
    def api_version(self) -> str:
        """`group/version`, or the version alone for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def full_name(self) -> str:
        """`plural.group`, as kubectl takes it for any group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


RESOURCE_SLICES = Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice")
DEVICE_CLASSES = Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass")
RESOURCE_CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", namespaced=True)
RESOURCE_CLAIM_TEMPLATES = Resource(
    "resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", namespaced=True
)
NODES = Resource("", "v1", "nodes", "Node")
PODS = Resource("", "v1", "pods", "Pod", namespaced=True)
DEVICE_TAINT_RULES = Resource("resource.k8s.io", "v1", "devicetaintrules", "DeviceTaintRule")
RESOURCE_QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota", namespaced=True)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace")
EVENTS = Resource("", "v1", "events", "Event", namespaced=True)
PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass")
GPU_CLASSES = Resource("portico.dev", "v1alpha1", "gpuclasses", "GPUClass")
PHYSICAL_GPUS = Resource("portico.dev", "v1alpha1", "physicalgpus", "PhysicalGPU")


@dataclass(frozen=True, slots=True)
class Person:
    """Whom a request acts for: user name and groups as the cluster knows them."""

    username: str
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request to the API server."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    query: Pairs = ()
    headers: Pairs = ()
    body: bytes | None = None

    def as_person(self, person: Person) -> Request:
        """The same request, impersonating that person."""
        groups = tuple(("Impersonate-Group", group) for group in person.groups)
        return dataclasses.replace(self, headers=(*self.headers, ("Impersonate-User", person.username), *groups))


def path_of(resource: Resource, *, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """The path of a collection or an object."""
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    scope = f"/namespaces/{quote(namespace, safe='')}" if resource.namespaced and namespace else ""
    tail = f"/{quote(name, safe='')}" if name else ""
    return f"{root}{scope}/{resource.plural}{tail}" + (f"/{subresource}" if subresource else "")


def read(path: str) -> Request:
    """Read what the server says of itself: `/version`, `/apis/…` (discovery)."""
    return Request("GET", path)


def get(resource: Resource, name: str, *, namespace: str = "") -> Request:
    """Read one object."""
    return Request("GET", path_of(resource, namespace=namespace, name=name))


def list_page(
    resource: Resource, *, namespace: str = "", continue_token: str = "", field_selector: str = "", limit: int = PAGE
) -> Request:
    """Read one page of a collection. An expired token is answered with 410: start over."""
    query = (("limit", str(limit)), ("continue", continue_token), ("fieldSelector", field_selector))
    return Request("GET", path_of(resource, namespace=namespace), _given(query))


def watch(
    resource: Resource,
    *,
    resource_version: str = "",
    initial_events: bool = False,
    seconds: int = 60,
    field_selector: str = "",
) -> Request:
    """Follow a collection, in all namespaces, for at most so many seconds, with bookmarks.

    With `initial_events` the server first sends every object as ADDED and ends the list with a marked bookmark
    (KEP-3157); a server that can't do that answers 422.
    """
    query: Pairs = (
        ("watch", "true"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", str(seconds)),
        ("resourceVersion", resource_version), ("fieldSelector", field_selector),
    )  # fmt: skip
    if initial_events:
        query += (("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan"))
    return Request("GET", path_of(resource), _given(query))


def create(
    resource: Resource, body: bytes, *, namespace: str = "", yaml: bool = False, dry_run: bool = False
) -> Request:
    """Make one object, strictly validated: an unknown or doubled field, or a name that exists, is an error."""
    media = "application/yaml" if yaml else "application/json"
    query = _given((*_WRITE, ("dryRun", "All" if dry_run else "")))
    return Request("POST", path_of(resource, namespace=namespace), query, (("Content-Type", media),), body)


def replace(resource: Resource, name: str, body: bytes, *, namespace: str = "", subresource: str = "") -> Request:
    """Write the whole object; a resourceVersion in it makes this conditional."""
    path = path_of(resource, namespace=namespace, name=name, subresource=subresource)
    return Request("PUT", path, _WRITE, (("Content-Type", "application/json"),), body)


def merge_patch(resource: Resource, name: str, body: bytes, *, namespace: str = "", subresource: str = "") -> Request:
    """Change the given fields (RFC 7396)."""
    path = path_of(resource, namespace=namespace, name=name, subresource=subresource)
    return Request("PATCH", path, _WRITE, (("Content-Type", "application/merge-patch+json"),), body)


def apply(path: str, body: bytes, *, manager: str, dry_run: bool = False) -> Request:
    """Server-side apply of our own fields to the object at that path (`path_of`), as that field manager.

    Conflicts are taken over: what we apply is ours alone.
    """
    dry = "All" if dry_run else ""
    query = _given((("fieldManager", manager), ("force", "true"), ("fieldValidation", "Strict"), ("dryRun", dry)))
    return Request("PATCH", path, query, (("Content-Type", "application/apply-patch+yaml"),), body)


def delete(resource: Resource, name: str, *, namespace: str = "", uid: str = "", resource_version: str = "") -> Request:
    """Remove one object; with a uid or resourceVersion only if it still is that one (else 409)."""
    preconditions = dict(_given((("uid", uid), ("resourceVersion", resource_version))))
    options = {"apiVersion": "v1", "kind": "DeleteOptions"} | (
        {"preconditions": preconditions} if preconditions else {}
    )
    path = path_of(resource, namespace=namespace, name=name)
    return Request("DELETE", path, (), (("Content-Type", "application/json"),), msgspec.json.encode(options))


_WRITE: Pairs = (("fieldManager", FIELD_MANAGER), ("fieldValidation", "Strict"))


def _given(query: Pairs) -> Pairs:
    return tuple((key, value) for key, value in query if value)
