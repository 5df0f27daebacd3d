"""What a container can read of its devices (KEP-5304): one text per device request, and where it lies. Pure.

Texts and places are those of k8s.io/dynamic-resource-allocation 0.37 (`kubeletplugin/metadata.go`, `api/metadata`): the
same object once per version, newest first, and a reader takes the first that it knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from dra.objects import DeviceAttribute
from dra.objects.meta import ApiStruct, encode
from nodedriver.holding import PreparedClaim, PreparedDevice

type AttributesOf = Callable[[str], Mapping[str, DeviceAttribute]]  # what is published of a device, by its name

_VERSIONS = ("v1beta1", "v1alpha1")
_FOLDER = "/var/run/kubernetes.io/dra-device-attributes"


class _Device(ApiStruct, frozen=True, kw_only=True):
    driver: str
    pool: str
    name: str
    attributes: dict[str, DeviceAttribute]


class _Request(ApiStruct, frozen=True, kw_only=True):
    name: str
    devices: tuple[_Device, ...]


class _Metadata(ApiStruct, frozen=True, kw_only=True):
    name: str
    namespace: str
    uid: str
    generation: int  # of the file; ours are never changed


class _DeviceMetadata(ApiStruct, frozen=True, kw_only=True):
    kind: str
    api_version: str
    metadata: _Metadata
    pod_claim_name: str | None = None
    requests: tuple[_Request, ...]


def texts_of(driver_name: str, claim: PreparedClaim, attributes_of: AttributesOf) -> dict[str, bytes]:
    """The text of each device request of the claim: its devices with what is published of them, and their UUIDs."""
    of_requests: dict[str, list[PreparedDevice]] = {}
    for device in claim.devices:
        of_requests.setdefault(device.device_request, []).append(device)
    return {
        name: _text(claim, _Request(name=own[0].request or name, devices=_devices(driver_name, own, attributes_of)))
        for name, own in of_requests.items()
    }


def container_path(driver_name: str, claim: PreparedClaim, device_request: str) -> str:
    """Where a container has the text: by the name in its pod's spec, which for a claim of a template is the entry's."""
    template = claim.pod_claim_name
    by_name = f"resourceclaimtemplates/{template}" if template else f"resourceclaims/{claim.name}"
    return f"{_FOLDER}/{by_name}/{device_request}/{driver_name}-metadata.json"


def _devices(driver_name: str, own: list[PreparedDevice], attributes_of: AttributesOf) -> tuple[_Device, ...]:
    return tuple(
        _Device(
            driver=driver_name,
            pool=device.pool,
            name=device.device,
            # A MIG device has its UUID only once it exists, so none is published.
            attributes={**attributes_of(device.device), "uuid": DeviceAttribute(string=device.uuid)},
        )
        for device in own
    )


def _text(claim: PreparedClaim, request: _Request) -> bytes:
    return b"".join(_encoded(claim, request, version) for version in _VERSIONS)


def _encoded(claim: PreparedClaim, request: _Request, version: str) -> bytes:
    content = _DeviceMetadata(
        kind="DeviceMetadata",
        api_version=f"metadata.resource.k8s.io/{version}",
        metadata=_Metadata(name=claim.name, namespace=claim.namespace, uid=claim.uid, generation=1),
        pod_claim_name=claim.pod_claim_name or None,
        requests=(request,),
    )
    return msgspec.json.format(encode(content), indent=2) + b"\n"
