"""What a write meets before it is stored: defaults, validation, the namespace's life, quota.

Defaults and rules are those of the kinds that Portico writes (kubernetes/pkg/apis, 1.37.2); kinds that it only reads
get names checked. Admission policies and webhooks are not served. Quota counts ResourceClaims by class and by object.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from dra.errors import DraError
from dra.extended import CLASS_QUOTA_SUFFIX, charges
from dra.names import is_dns_subdomain
from dra.objects import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from dra.objects.meta import decode
from dra.objects.validate import Checked, faults
from dra.quantity import parse_quantity
from simulator import kinds
from simulator.api.failures import ApiError, invalid
from simulator.api.rules import expression_causes
from simulator.kinds import Kind
from simulator.store import Object, Store

_READ: Final[dict[Kind, type[Checked]]] = {
    kinds.DEVICE_CLASS: DeviceClass,
    kinds.RESOURCE_CLAIM: ResourceClaim,
    kinds.RESOURCE_CLAIM_TEMPLATE: ResourceClaimTemplate,
    kinds.RESOURCE_SLICE: ResourceSlice,
    kinds.DEVICE_TAINT_RULE: DeviceTaintRule,
}
_IMMUTABLE: Final = {
    kinds.RESOURCE_CLAIM: "spec",
    kinds.RESOURCE_CLAIM_TEMPLATE: "spec",
    kinds.ROLE_BINDING: "roleRef",
    kinds.CLUSTER_ROLE_BINDING: "roleRef",
}
_FREE_NAMES: Final = (kinds.ROLE, kinds.ROLE_BINDING, kinds.CLUSTER_ROLE, kinds.CLUSTER_ROLE_BINDING)
_WORKLOADS: Final = (kinds.DEPLOYMENT, kinds.STATEFUL_SET, kinds.REPLICA_SET, kinds.JOB)


def defaulted(kind: Kind, given: Object) -> Object:
    """The object with the API server's defaults in it."""
    default = _DEFAULTS.get(kind)
    return default(given) if default else given


def _pod(given: Object) -> Object:
    return _at(given, ("spec",), _pod_spec) | {"status": {"phase": "Pending", "qosClass": "BestEffort"}}


def _workload(given: Object) -> Object:
    given = _at(given, ("spec",), lambda spec: {"replicas": 1} | spec)
    return _at(given, ("spec", "template", "spec"), _pod_spec)


def _namespace(given: Object) -> Object:
    labels = given["metadata"].get("labels", {}) | {"kubernetes.io/metadata.name": given["metadata"]["name"]}
    meta = given["metadata"] | {"labels": labels}
    return given | {"metadata": meta, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}


def _at(given: Object, path: tuple[str, ...], change: Any) -> Object:
    """The object with what stands at the path changed; as it is where nothing stands there."""
    if not path:
        changed: Object = change(given)
        return changed
    inner = given.get(path[0])
    return given | {path[0]: _at(inner, path[1:], change)} if isinstance(inner, dict) else given


def _claim_spec(spec: Object) -> Object:
    devices = spec.get("devices", {})
    if "requests" not in devices:
        return spec
    return spec | {"devices": devices | {"requests": [_device_request(each) for each in devices["requests"]]}}


def _device_request(given: Object) -> Object:
    if isinstance(given.get("exactly"), dict):
        given = given | {"exactly": _exact(given["exactly"])}
    if "firstAvailable" in given:
        given = given | {"firstAvailable": [_exact(each) for each in given["firstAvailable"]]}
    return given


def _exact(given: Object) -> Object:
    made = {"allocationMode": "ExactCount"} | given
    return {"count": 1} | made if made["allocationMode"] == "ExactCount" else made


def _pod_spec(spec: Object) -> Object:
    base = {
        "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
    }  # fmt: skip
    return base | spec


_DEFAULTS: Final[dict[Kind, Callable[[Object], Object]]] = {
    kinds.RESOURCE_CLAIM: lambda given: _at(given, ("spec",), _claim_spec),
    kinds.RESOURCE_CLAIM_TEMPLATE: lambda given: _at(given, ("spec", "spec"), _claim_spec),
    kinds.POD: _pod,
    kinds.DEPLOYMENT: _workload,
    kinds.STATEFUL_SET: _workload,
    kinds.REPLICA_SET: _workload,
    kinds.NAMESPACE: _namespace,
    kinds.PRIORITY_CLASS: lambda given: {"preemptionPolicy": "PreemptLowerPriority"} | given,
}


def validate(kind: Kind, given: Object, before: Object | None, subresource: str) -> None:
    """ApiError 422 with every fault of the object, in the server's order: its names, then its kind's rules."""
    name = given["metadata"].get("name", "")
    found = _name_causes(kind, name)
    if kind in _READ:
        found += _domain_causes(kind, given)
        if not subresource and given.get("spec") != (before or {}).get("spec"):  # what is stored stays valid
            found += expression_causes(given.get("spec"), "spec")
    if kind in _WORKLOADS or kind == kinds.POD:
        found += _pod_causes(kind, given)
    if kind == kinds.RESOURCE_QUOTA:
        found += _quota_causes(given)
    if before is not None and not subresource:
        found += _immutable_causes(kind, given, before)
    if found:
        raise invalid(kind, name, found)


def _name_causes(kind: Kind, name: str) -> list[tuple[str, str, str]]:
    if not name:
        return [("FieldValueRequired", "Required value: name or generateName is required", "metadata.name")]
    if kind in _FREE_NAMES or is_dns_subdomain(name):
        return []
    rule = (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
        "and must start and end with an alphanumeric character"
    )
    return [("FieldValueInvalid", f'Invalid value: "{name}": {rule}', "metadata.name")]


def _domain_causes(kind: Kind, given: Object) -> list[tuple[str, str, str]]:
    try:
        found = faults(decode(msgspec.json.encode(given), _READ[kind]))
    except DraError as error:
        return [("FieldValueInvalid", f"Invalid value: {error}", "")]
    return [
        ("FieldValueInvalid", f"Invalid value: {fault.value!r}: {fault.rule}", _field(fault.pointer))
        for fault in found
        if fault.pointer != "/metadata/name"  # told already, in the server's own words
    ]


def _field(pointer: str) -> str:
    """A JSON pointer in the API server's spelling: `/spec/requests/0/name` as `spec.requests[0].name`."""
    steps = pointer.strip("/").split("/")
    return "".join(f"[{step}]" if step.isdecimal() else f".{step}" for step in steps).lstrip(".")


def _pod_causes(kind: Kind, given: Object) -> list[tuple[str, str, str]]:
    at = "spec" if kind == kinds.POD else "spec.template.spec"
    spec = given.get("spec", {})
    pod = spec if kind == kinds.POD else spec.get("template", {}).get("spec", {})
    found = []
    if not pod.get("containers"):
        found.append(("FieldValueRequired", "Required value", f"{at}.containers"))
    claims = {claim["name"] for claim in pod.get("resourceClaims", ())}
    for index, container in enumerate(pod.get("containers", ())):
        for place, used in enumerate(container.get("resources", {}).get("claims", ())):
            if used["name"] not in claims:
                field = f"{at}.containers[{index}].resources.claims[{place}].name"
                found.append(("FieldValueNotFound", f'Not found: "{used["name"]}"', field))
    if kind in {kinds.DEPLOYMENT, kinds.REPLICA_SET, kinds.STATEFUL_SET}:
        found += _selector_causes(spec)
    return found


def _selector_causes(spec: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    wanted = spec.get("selector", {}).get("matchLabels", {})
    labels = spec.get("template", {}).get("metadata", {}).get("labels", {})
    if wanted.items() <= labels.items():
        return []
    message = f"Invalid value: {msgspec.json.encode(labels).decode()}: `selector` does not match template `labels`"
    return [("FieldValueInvalid", message, "spec.template.metadata.labels")]


def _quota_causes(given: Object) -> list[tuple[str, str, str]]:
    """Names that a real server would count and this one does not: a limit that never holds would be a lie."""
    counted = {f"count/{kind.qualified}" for kind in kinds.KINDS} | {"pods"}
    why = "the simulator counts devices by class, pods and objects, nothing else"
    return [
        ("FieldValueNotSupported", f'Unsupported value: "{name}": {why}', f"spec.hard[{name}]")
        for name in given.get("spec", {}).get("hard", {})
        if name not in counted and not name.endswith(CLASS_QUOTA_SUFFIX) and not re.match(r"requests\..+/", name)
    ]


def _immutable_causes(kind: Kind, given: Object, before: Object) -> list[tuple[str, str, str]]:
    field = _IMMUTABLE.get(kind)
    if field is None or given.get(field) == before.get(field):
        return []
    return [("FieldValueInvalid", "Invalid value: field is immutable", field)]


def require_namespace(store: Store, namespace: str) -> None:
    """ApiError 404 where the namespace is missing (the NamespaceLifecycle plugin)."""
    if store.find(kinds.NAMESPACE, namespace) is None:
        raise ApiError("NotFound", f'namespaces "{namespace}" not found', kind=kinds.NAMESPACE, name=namespace)


def require_quota(store: Store, kind: Kind, given: Object) -> list[tuple[Object, dict[str, str]]]:
    """ApiError 403 where a ResourceQuota of the namespace is exceeded; else each quota with its new `used`."""
    asked = usage(store, kind, given)
    meta = given["metadata"]
    grown = []
    for quota in store.all(kinds.RESOURCE_QUOTA, meta["namespace"]):
        hard, used = quota.get("spec", {}).get("hard", {}), quota.get("status", {}).get("used", {})
        counted = {key: value for key, value in asked.items() if key in hard}
        over = [key for key in sorted(counted) if _sum(used, key, counted[key]) > parse_quantity(hard[key]).value]
        if over:
            told = f"requested: {_listed(counted, over)}, used: {_listed(used, over)}, limited: {_listed(hard, over)}"
            why = f"exceeded quota: {quota['metadata']['name']}, {told}"
            raise ApiError(
                "Forbidden", f'{kind.qualified} "{meta["name"]}" is forbidden: {why}', kind=kind, name=meta["name"]
            )
        if counted:
            grown.append((quota, used | {key: str(_sum(used, key, value)) for key, value in counted.items()}))
    return grown


def _sum(used: Mapping[str, str], key: str, more: int) -> int:
    return int(parse_quantity(used.get(key, "0")).value) + more


def _listed(amounts: Mapping[str, Any], keys: list[str]) -> str:
    return ",".join(f"{key}={amounts.get(key, 0)}" for key in keys)


def usage(store: Store, kind: Kind, given: Object) -> dict[str, int]:
    """What one object counts for quota: devices by class, and itself as an object."""
    counted = {f"count/{kind.qualified}": 1} | ({kind.plural: 1} if kind == kinds.POD else {})
    if kind != kinds.RESOURCE_CLAIM:
        return counted
    claim = decode(msgspec.json.encode(given), ResourceClaim)
    classes = [decode(msgspec.json.encode(each), DeviceClass) for each in store.all(kinds.DEVICE_CLASS)]
    return counted | charges(claim.spec, classes)


def recounted(store: Store, quota: Object) -> Object:
    """The status of a quota as its controller writes it: `hard` of its spec, `used` counted anew."""
    hard = quota.get("spec", {}).get("hard", {})
    used = dict.fromkeys(hard, 0)
    for kind in kinds.KINDS:
        if kind.namespaced and (f"count/{kind.qualified}" in hard or kind in _COUNTED):
            for stored in store.all(kind, quota["metadata"]["namespace"]):
                counted = usage(store, kind, stored)
                used |= {key: used[key] + counted[key] for key in counted if key in used}
    return {"hard": dict(hard), "used": {key: str(value) for key, value in used.items()}}


_COUNTED: Final = (kinds.RESOURCE_CLAIM, kinds.POD)
