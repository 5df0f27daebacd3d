"""Rows as tests of pages need them: a fleet in the read model, templates and claims in it, and GPU requests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from django.utils import timezone

from claims.lifecycle import State
from claims.manifests import REQUEST_LABEL
from claims.models import GpuRequest
from gpuinventory.kinds import KINDS
from gpuinventory.models import StreamCursor
from gpuinventory.services.ingest import ingest
from portal.models import Team, User
from tests.cluster.gpuclasses import gpu_class
from tests.gpuinventory import fleet

CLASS = "physical-gpu"
QUERY = "ns=ml-team&name=trainer&class=physical-gpu&count=1&share=100"
CLASS_KEY = f"{CLASS}.deviceclass.resource.k8s.io/devices"
KEY = "3f9a1c5e7b2d4f60"
CEL = 'device.driver == "gpu.portico.dev" && device.attributes["gpu.portico.dev"].deviceType == "Physical"'


def put(kind: str, *bodies: bytes) -> None:
    """These objects are in the read model."""
    ingest(kind, fleet.seen(bodies))


def device_class(name: str = CLASS, expression: str = CEL, **spec: Any) -> bytes:
    """A DeviceClass; with "" as the expression one without a selector."""
    selectors = [{"cel": {"expression": expression}}] if expression else []
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"}
    return json.dumps({"kind": "DeviceClass", "metadata": metadata, "spec": {"selectors": selectors} | spec}).encode()


def template(namespace: str, name: str, key: str = KEY) -> bytes:
    """A ResourceClaimTemplate as the portal makes it; its uid is `uid-<name>`."""
    labels = {REQUEST_LABEL: key}
    uid = f"uid-{name}"[:63]  # a uid is no longer than that
    metadata = {"namespace": namespace, "name": name, "uid": uid, "resourceVersion": "1", "labels": labels}
    return json.dumps({"kind": "ResourceClaimTemplate", "metadata": metadata, "spec": {"spec": {}}}).encode()


def quota(hard: dict[str, str], used: dict[str, str], name: str = "gpu-quota", namespace: str = "ml-team") -> bytes:
    """A ResourceQuota with what it allows and what is charged."""
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": "1"}
    return json.dumps(
        {"kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}, "status": {"hard": hard, "used": used}}
    ).encode()


def put_fleet() -> None:
    """One node with two H100 and three classes, one of which names no driver and has no selector."""
    put("ResourceSlice", *fleet.slices_of("node-1", cards=2))
    extended = {"extendedResourceName": "gpu.portico.dev/h100"}
    put("DeviceClass", device_class(), device_class("h100-shared", **extended), device_class("anything", expression=""))
    put("Node", fleet.node_object("node-1"))
    for kind in KINDS:
        StreamCursor.objects.create(kind=kind, resource_version="1", synced_at=timezone.now())


def gpu_request(
    user: User, team: Team, name: str = "trainer", *, state: State = State.SEEN, key: str = KEY
) -> GpuRequest:
    """A request that this person made for a whole device."""
    return GpuRequest.objects.create(
        user=user,
        team=team,
        namespace=team.name,
        name=name,
        query=QUERY.replace("ns=ml-team", f"ns={team.name}").replace("name=trainer", f"name={name}"),
        key=key,
        state=state,
        template_uid=f"uid-{name}",
        template=f"# as it was sent\nname: {name}\n",
    )


def claims_from(key: str, namespace: str, names: Iterable[str], **more: Any) -> list[bytes]:
    """Claims made from the template of the request with that number."""
    return [fleet.claim(namespace, name, labels={REQUEST_LABEL: key}, **more) for name in names]


def put_gpu_class(name: str, **spec: Any) -> None:
    """A GPUClass is in the read model, for the DeviceClass of most tests if nothing else is said."""
    body = gpu_class(name, **({"deviceClass": {"name": CLASS}} | spec))
    body["metadata"] |= {"uid": f"uid-{name}", "resourceVersion": "1"}
    put("GPUClass", json.dumps(body).encode())
