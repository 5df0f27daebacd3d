"""Objects of any API version that Portico reads, as the structs of v1.

Differences: v1beta1 keeps a device's contents under `basic` and a request's beside its name. Pointers in errors are
those of the v1 shape. Follows k8s.io/kubernetes/pkg/apis/resource/v1beta1/conversion.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from dra.errors import InvalidObjectError, UnreadKindError
from dra.objects.deviceclass import DeviceClass
from dra.objects.devicetaintrule import DeviceTaintRule
from dra.objects.meta import ApiStruct, decode
from dra.objects.node import Node
from dra.objects.pod import Pod
from dra.objects.reading import of_plain, parse_json
from dra.objects.resourceclaim import ResourceClaim, ResourceClaimTemplate
from dra.objects.resourcequota import ResourceQuota
from dra.objects.resourceslice import API_VERSION, ResourceSlice

type Readable = (
    DeviceClass | DeviceTaintRule | Node | Pod | ResourceClaim | ResourceClaimTemplate | ResourceQuota | ResourceSlice
)

_GROUP: Final = "resource.k8s.io"
_FLAT_REQUEST: Final = frozenset({
    "deviceClassName", "selectors", "allocationMode", "count", "adminAccess", "tolerations", "capacity",
    "derivedAttributes",
})  # fmt: skip


class _KubernetesObject(ApiStruct, frozen=True, kw_only=True):
    """What every object says of itself."""

    api_version: str = ""
    kind: str = ""


def read(body: bytes) -> Readable:
    """The object, in v1 shape whatever its version.

    InvalidObjectError where it is malformed, UnreadKindError where its kind or version is none that Portico reads.
    """
    header = decode(body, _KubernetesObject)
    kind = _KINDS.get((header.api_version, header.kind))
    if kind is not None:
        return decode(body, kind)
    older = _OLDER.get((header.api_version, header.kind))
    if older is None:
        raise UnreadKindError(f"{header.kind or 'no kind'} of {header.api_version or 'no version'} is not read")
    kind, to_v1 = older
    plain = parse_json(body, header.kind)
    to_v1(plain)
    return of_plain(plain | {"apiVersion": API_VERSION}, kind)


def _as_it_is(_: dict[str, Any]) -> None:
    """The shape is that of v1."""


def _slice_to_v1(plain: dict[str, Any]) -> None:
    for device in _objects(plain, "spec", "devices"):
        device.update(_object(device.pop("basic", None)))


def _claim_to_v1(plain: dict[str, Any]) -> None:
    _requests_to_v1(_objects(plain, "spec", "devices", "requests"))


def _template_to_v1(plain: dict[str, Any]) -> None:
    _requests_to_v1(_objects(plain, "spec", "spec", "devices", "requests"))


def _requests_to_v1(device_requests: Iterable[dict[str, Any]]) -> None:
    for device_request in device_requests:
        exactly = {name: device_request.pop(name) for name in _FLAT_REQUEST & device_request.keys()}
        if exactly:
            device_request["exactly"] = exactly


def _rule_to_v1(plain: dict[str, Any]) -> None:
    """Refuse what selected less than v1 can say: read without it, the rule would taint other devices too."""
    selector = _object(_object(plain.get("spec")).get("deviceSelector"))
    for name in ("deviceClassName", "selectors"):
        if selector.get(name) is not None:
            pointer = f"/spec/deviceSelector/{name}"
            raise InvalidObjectError(f"DeviceTaintRule: {pointer} can't be read since Kubernetes 1.35", pointer=pointer)


def _objects(plain: dict[str, Any], *path: str) -> Iterable[dict[str, Any]]:
    """The objects of the list at the path; what has another shape is left to the reader of v1 to refuse."""
    place: object = plain
    for step in path:
        place = _object(place).get(step)
    return [entry for entry in place if isinstance(entry, dict)] if isinstance(place, list) else []


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


_KINDS: Final[Mapping[tuple[str, str], type[Readable]]] = MappingProxyType(
    {(f"{_GROUP}/v1", kind.__name__): kind
     for kind in (DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice)}
    | {("v1", kind.__name__): kind for kind in (Node, Pod, ResourceQuota)}
)  # fmt: skip

type _ToV1 = Callable[[dict[str, Any]], None]
_OLDER: Final[Mapping[tuple[str, str], tuple[type[Readable], _ToV1]]] = MappingProxyType({
    (f"{_GROUP}/v1beta2", "DeviceClass"): (DeviceClass, _as_it_is),
    (f"{_GROUP}/v1beta2", "ResourceClaim"): (ResourceClaim, _as_it_is),
    (f"{_GROUP}/v1beta2", "ResourceClaimTemplate"): (ResourceClaimTemplate, _as_it_is),
    (f"{_GROUP}/v1beta2", "ResourceSlice"): (ResourceSlice, _as_it_is),
    (f"{_GROUP}/v1beta2", "DeviceTaintRule"): (DeviceTaintRule, _rule_to_v1),
    (f"{_GROUP}/v1beta1", "DeviceClass"): (DeviceClass, _as_it_is),
    (f"{_GROUP}/v1beta1", "ResourceClaim"): (ResourceClaim, _claim_to_v1),
    (f"{_GROUP}/v1beta1", "ResourceClaimTemplate"): (ResourceClaimTemplate, _template_to_v1),
    (f"{_GROUP}/v1beta1", "ResourceSlice"): (ResourceSlice, _slice_to_v1),
    (f"{_GROUP}/v1alpha3", "DeviceTaintRule"): (DeviceTaintRule, _rule_to_v1),
})  # fmt: skip
