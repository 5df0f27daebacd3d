"""Objects as an API server would send them: a node's slices from the node driver's own inventory, and claims on them.

Bytes carry a uid and a resourceVersion, as received ones do.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from dra.kube.responses import Header
from dra.objects import OwnerReference, decode, encode
from dra.slices import PoolContent, changes
from gpuinventory.capabilities import Capabilities
from gpuinventory.kinds import CAPABILITIES
from gpuinventory.models import ClusterObject
from gpuinventory.services.changelog import bump_revision
from gpuinventory.services.ingest import Seen, ingest
from nodedriver.inventory import InventoryRules, taint_of_unclean, take_inventory
from tests.nodedriver.gpus import card

DRIVER = "gpu.portico.dev"
H100_MEMORY = 80 * 1024**3


def slices_of(node: str, *, cards: int = 1, unclean: Iterable[int] = (), version: int = 1) -> list[bytes]:
    """The ResourceSlices of a node with so many H100, each card with every MIG placement."""
    gpus = tuple(card(bus=0x18 + index) for index in range(cards))
    taint, tainted = taint_of_unclean(DRIVER, "checkpoint-unreadable"), {gpus[index].pci_address for index in unclean}
    inventory = take_inventory(
        InventoryRules(DRIVER),
        gpus,
        {gpu.pci_address: index for index, gpu in enumerate(gpus)},
        taints=lambda gpu, _: (taint,) if gpu in tainted else (),
    )
    owner = OwnerReference(api_version="v1", kind="Node", name=node, uid=f"uid-{node}")
    pool = PoolContent(driver=DRIVER, node=node, owner=owner, slices=inventory.slices)
    return [stamped(encode(each), version) for each in changes(pool, ()).create]


def stamped(body: bytes, version: int) -> bytes:
    """The same object with the uid and the resourceVersion that a server gives."""
    content = json.loads(body)
    metadata = content["metadata"]
    metadata |= {"uid": f"uid-{metadata['name']}", "resourceVersion": str(version)}
    return json.dumps(content).encode()


def claim(
    namespace: str,
    name: str,
    devices: Sequence[Mapping[str, Any]] = (),
    *,
    pods: Sequence[str] = (),
    version: int = 1,
    **metadata: Any,
) -> bytes:
    """A ResourceClaim, allocated if devices are given (see `device`), and reserved for these pods."""
    content: dict[str, Any] = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{namespace}-{name}",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-01-02T03:04:05Z",
        }
        | metadata,
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "physical-gpu"}}]}},
        "status": {"reservedFor": [{"resource": "pods", "name": pod, "uid": f"uid-{pod}"} for pod in pods]},
    }
    if devices:
        content["status"]["allocation"] = {"devices": {"results": list(devices)}}
    return json.dumps(content).encode()


def device(node: str, name: str, *, percent: int | None = None, admin: bool = False) -> dict[str, Any]:
    """One allocated device, or a share of it."""
    result: dict[str, Any] = {"request": "gpu", "driver": DRIVER, "pool": node, "device": name}
    if percent is not None:
        result |= {"shareID": f"share-{percent}", "consumedCapacity": {"sharePercent": str(percent), "memory": "0"}}
    return result | ({"adminAccess": True} if admin else {})


def node_object(name: str, *, unschedulable: bool = False, ready: bool = True, version: int = 1) -> bytes:
    """A Node."""
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version)},
            "spec": {"unschedulable": unschedulable},
            "status": {
                "allocatable": {"pods": "110"},
                "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            },
        }
    ).encode()


def device_class(name: str, expression: str) -> bytes:
    """A DeviceClass with one selector."""
    content = {
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }
    return json.dumps(content).encode()


def put_classes() -> None:
    """Classes of whole cards, and one whose selector reads what no device has."""
    whole = f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].deviceType == "Physical"'
    broken = f'device.attributes["{DRIVER}"].colour == "red"'
    ingest("DeviceClass", seen([device_class("physical-gpu", whole), device_class("red-gpu", broken)]))


def keep(found: Capabilities) -> None:
    """This is what the last look at the cluster found."""
    body = {"body": msgspec.json.encode(found), "changed_at_revision": bump_revision()}
    ClusterObject.objects.update_or_create(kind=CAPABILITIES, name="cluster", defaults=body)


def seen(bodies: Iterable[bytes]) -> list[Seen]:
    """As the stream hands them to `ingest`."""
    return [Seen(decode(body, Header).metadata, body) for body in bodies]


def gone(body: bytes) -> Seen:
    """The same object deleted."""
    return Seen(msgspec.structs.replace(decode(body, Header).metadata), None)
