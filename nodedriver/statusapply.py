"""How this driver writes into a claim's status: by server-side apply, each part of it as a field manager of its own.

Neither then takes back what the other says. Makes requests and sends none.
"""

from __future__ import annotations

from collections.abc import Iterable

from dra.kube.requests import RESOURCE_CLAIMS, Request, apply, path_of
from dra.names import ClaimRef
from dra.objects import API_VERSION, AllocatedDeviceStatus
from dra.objects.meta import ApiStruct, encode


class _Metadata(ApiStruct, frozen=True, kw_only=True):
    name: str
    namespace: str
    uid: str  # refused with 409 when the name is another claim's by now


class _Status(ApiStruct, frozen=True, kw_only=True):
    devices: tuple[AllocatedDeviceStatus, ...]


class _AppliedClaim(ApiStruct, frozen=True, kw_only=True, omit_defaults=False):
    """The fields that we own, for server-side apply."""

    api_version: str = API_VERSION
    kind: str = RESOURCE_CLAIMS.kind
    metadata: _Metadata
    status: _Status


def status_request(manager: str, ref: ClaimRef, statuses: Iterable[AllocatedDeviceStatus]) -> Request:
    """All that this field manager says of the claim's devices from now on."""
    body = _AppliedClaim(
        metadata=_Metadata(name=ref.name, namespace=ref.namespace, uid=ref.uid),
        status=_Status(devices=tuple(statuses)),
    )
    path = path_of(RESOURCE_CLAIMS, namespace=ref.namespace, name=ref.name, subresource="status")
    return apply(path, encode(body), manager=manager)
