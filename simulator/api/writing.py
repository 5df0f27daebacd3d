"""Create, replace, patch, apply and delete: from a call and its body to what the store holds, dry runs included."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from simulator import kinds
from simulator.api import admission, body, garbage
from simulator.api.apply import Manager, applied, tracked
from simulator.api.calls import Call, Place
from simulator.api.failures import ApiError
from simulator.api.gates import drop_disabled
from simulator.api.schema import Findings, Schema, refuse_faults, strict_refusal
from simulator.kinds import Kind
from simulator.store import Object, Preconditions, Stamp, Store, changed, made_new

_SUFFIX: Final = "bcdfghjklmnpqrstvwxz2456789"  # apimachinery/pkg/util/rand
_SUFFIX_LENGTH: Final = 5
_MERGE: Final = "application/merge-patch+json"
_APPLY: Final = "application/apply-patch+yaml"
_PATCHES: Final = f"{_MERGE}, {_APPLY}; kubectl sends the latter with --server-side"
_CUSTOM: Final = "portico.dev"  # the group of custom resources, which Kubernetes decodes without Go types


@dataclass(frozen=True, slots=True)
class Writer:
    """One write call at one place."""

    store: Store
    schema: Schema
    call: Call
    place: Place
    stamp: Stamp

    def create(self) -> tuple[Object, list[str]]:
        """The new object and warnings; ApiError or StoreError as the API server refuses."""
        given, findings = self._read(self._body(self.call.header("content-type")))
        return self._made(given, findings, "Update"), self._warnings(findings)

    def replace(self) -> tuple[Object, list[str]]:
        """The object after a PUT, and warnings."""
        given, findings = self._read(self._body(self.call.header("content-type")))
        before = self.store.get(self.place.kind, self.place.name, self._namespace)
        return self._written(before, given, findings), self._warnings(findings)

    def patch(self) -> tuple[Object, list[str], bool]:
        """The object after a PATCH, warnings, and whether an apply made it anew."""
        media = _media_type(self.call.header("content-type"))
        if media == _APPLY:
            return self._apply()
        if media != _MERGE:
            raise ApiError(
                "UnsupportedMediaType",
                f"the body of the request was in an unknown format - accepted media types include: {_PATCHES}",
            )
        before = self.store.get(self.place.kind, self.place.name, self._namespace)
        given, findings = self._read(_merged(before, self._body(body.JSON)))
        return self._written(before, given, findings), self._warnings(findings), False

    def delete(self) -> Object:
        """Remove the object with what it owns; gives its last state, marked where something holds it."""
        options = self._options()
        asked = options.get("preconditions", {})
        conditions = Preconditions(asked.get("uid", ""), asked.get("resourceVersion", ""))
        before = self.store.get(self.place.kind, self.place.name, self._namespace)
        if self._is_dry:
            return before
        return garbage.delete(self.store, before, self.stamp, conditions, _grace(self.place.kind, before, options))

    @property
    def _namespace(self) -> str:
        return self.place.namespace if self.place.kind.namespaced else ""

    @property
    def _is_dry(self) -> bool:
        asked = self.call.query.get("dryRun", "")
        if asked not in {"", "All"}:
            raise ApiError("Invalid", f'dryRun: Unsupported value: "{asked}": supported values: "All"')
        return asked == "All"

    def _manager(self, operation: str) -> Manager:
        agent = self.call.header("user-agent").partition("/")[0]
        name = self.call.query.get("fieldManager") or agent or "unknown"
        force = self.call.query.get("force", "") == "true"
        return Manager(name, operation, self.place.subresource, self.stamp.now, force)

    def _body(self, content_type: str) -> Any:
        given = body.parse(self.call.body, _media_type(content_type))
        given = {} if given is None and self.call.body.strip() else given
        if not isinstance(given, dict):
            raise ApiError("BadRequest", "the body of the request is no object")
        return given

    def _read(self, given: Any, *, partial: bool = False) -> tuple[Object, Findings]:
        self._hold_type(given)
        read, findings = self.schema.read(self.place.kind, given, partial=partial)
        if findings.strict and self.call.query.get("fieldValidation") == "Strict":
            raise strict_refusal(self.place.kind, findings)
        self._hold_identity(read.setdefault("metadata", {}))
        return read, findings

    def _hold_type(self, given: Mapping[str, Any]) -> None:
        """ApiError 400 for another kind than the path's; a built-in kind may be left out, as Go's decoder fills it."""
        kind = self.place.kind
        version, name = given.get("apiVersion"), given.get("kind")
        if kind.group == _CUSTOM and not (version and name):
            raise ApiError("BadRequest", "Object 'Kind' or 'apiVersion' is missing in the body")
        if (version or kind.api_version, name or kind.kind) != (kind.api_version, kind.kind):
            raise ApiError(
                "BadRequest",
                f"{name} in version {version} does not match the expected {kind.kind} in version {kind.api_version}",
            )

    def _hold_identity(self, meta: Object) -> None:
        """Fill in the namespace of the path, and hold name and namespace of the body to it."""
        if self._namespace and meta.setdefault("namespace", self._namespace) != self._namespace:
            raise ApiError(
                "BadRequest", "the namespace of the provided object does not match the namespace sent on the request"
            )
        if (
            self.place.name
            and self.call.method != "POST"
            and meta.setdefault("name", self.place.name) != self.place.name
        ):
            raise ApiError(
                "BadRequest",
                f"the name of the object ({meta['name']}) does not match the name on the URL ({self.place.name})",
            )

    def _warnings(self, findings: Findings) -> list[str]:
        return [] if self.call.query.get("fieldValidation") == "Ignore" else findings.strict

    def _made(self, given: Object, findings: Findings, operation: str) -> Object:
        kind, meta = self.place.kind, given["metadata"]
        if meta.get("resourceVersion"):
            raise ApiError("BadRequest", "resourceVersion should not be set on objects to be created")
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = meta["generateName"] + _suffix(self.stamp.uid)
        if kind.namespaced:
            admission.require_namespace(self.store, self._namespace)
        if kind.status and kind != kinds.NODE:  # a kubelet brings its status along (registry/core/node/strategy.go)
            given = {key: value for key, value in given.items() if key != "status"}
        given = drop_disabled(kind, admission.defaulted(kind, given))
        refuse_faults(kind, meta.get("name", ""), findings)
        admission.validate(kind, given, None, "")
        return self._stored(given, operation)

    def _stored(self, given: Object, operation: str) -> Object:
        kind = self.place.kind
        grown = admission.require_quota(self.store, kind, given) if kind.namespaced else []
        if operation == "Update":
            given = tracked(self.schema, kind, None, given, self._manager(operation))
        if self._is_dry:
            if self.store.find(kind, given["metadata"]["name"], self._namespace):
                return self.store.create(kind, given, self.stamp)  # refuses: the name is taken
            return made_new(kind, given, self.stamp)
        made = self.store.create(kind, given, self.stamp)
        for quota, used in grown:
            self.store.replace(
                kinds.RESOURCE_QUOTA, quota | {"status": quota["status"] | {"used": used}}, subresource="status"
            )
        return garbage.recount(self.store, made) if kind == kinds.RESOURCE_QUOTA else made

    def _written(self, before: Object, given: Object, findings: Findings, *, track: bool = True) -> Object:
        kind, subresource = self.place.kind, self.place.subresource
        after = changed(kind, before, given, subresource)
        refuse_faults(kind, self.place.name, findings)
        admission.validate(kind, after, before, subresource)
        if track:
            after = tracked(self.schema, kind, before, after, self._manager("Update"))
        if self._is_dry:
            return after
        stored = self.store.replace(kind, after, subresource=subresource)
        return garbage.after_write(self.store, before, stored, self.stamp)

    def _apply(self) -> tuple[Object, list[str], bool]:
        if not self.call.query.get("fieldManager"):
            why = "fieldManager: Required value: is required for apply patch"
            raise ApiError("Invalid", f'PatchOptions.meta.k8s.io "" is invalid: {why}')
        given, findings = self._read(self._body(body.YAML), partial=True)
        if given["metadata"].get("managedFields"):
            raise ApiError("BadRequest", "metadata.managedFields must be nil")
        kind = self.place.kind
        live = self.store.find(kind, self.place.name, self._namespace)
        if live is None and self.place.subresource:
            self.store.get(kind, self.place.name, self._namespace)
        merged = applied(self.schema, kind, live, given, self._manager("Apply"))
        whole, later = self.schema.read(kind, merged)
        warnings = self._warnings(findings)
        if live is None:
            return self._made(whole, later, "Apply"), warnings, True
        version = given["metadata"].get("resourceVersion")
        whole["metadata"]["resourceVersion"] = version or live["metadata"]["resourceVersion"]
        return self._written(live, whole, later, track=False), warnings, False

    def _options(self) -> Mapping[str, Any]:
        options: dict[str, Any] = {}
        if self.call.body:
            options = self._body(self.call.header("content-type"))
        for name in ("propagationPolicy", "gracePeriodSeconds"):
            if name in self.call.query:
                text = self.call.query[name]
                options[name] = int(text) if text.isdecimal() else text
        policy = options.get("propagationPolicy") or "Background"
        if policy != "Background":
            raise ApiError("BadRequest", f"propagationPolicy {policy} is not done by the simulator: only Background is")
        return options


def _merged(target: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    made = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = _merged(made.get(key), value)
    return made


def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def _suffix(uid: str) -> str:
    """Five letters that follow from the uid, as a generated name ends."""
    number = int("".join(each for each in uid if each in "0123456789abcdef") or "0", 16)
    letters = ""
    for _ in range(_SUFFIX_LENGTH):
        number, at = divmod(number, len(_SUFFIX))
        letters += _SUFFIX[at]
    return letters


def _grace(kind: Kind, stored: Object, options: Mapping[str, Any]) -> int:
    """How long a pod that is on a node may take to end, in seconds; everything else goes at once."""
    own = garbage.grace_of(stored) if kind == kinds.POD else 0
    asked = options.get("gracePeriodSeconds")
    return int(asked) if own and asked is not None else own
