"""The fleet that benchmarks ask about: nodes of 8 H100 cards with 28 devices each, 9 slices a node, from our inventory.

The production inventory gives 26 devices a card (whole, 25 MIG placements). The two kinds that are still to come,
time-sliced and passthrough, are added here as copies of the whole card, since the goals name 28. Objects, no timing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from uuid import NAMESPACE_OID, uuid5

import msgspec

from dra.names import ClaimUID
from dra.objects import (
    AllocationResult,
    Device,
    DeviceAllocationResult,
    DeviceAttribute,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSelector,
    ExactDeviceRequest,
    ObjectMeta,
    OwnerReference,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourceSlice,
    decode,
    encode,
)
from dra.objects.node import Node, NodeStatus
from dra.slices import PoolContent, SliceContent, changes
from nodedriver.facts import GpuFacts
from nodedriver.inventory import InventoryRules, take_inventory
from simulator.silicon.fleet import initialise
from tests.cluster.hardware import facts_of

DRIVER = "gpu.portico.dev"
CLASS = "gpu"
CARDS = 8
DEVICES_PER_CARD = 28
WHOLE = f'device.attributes["{DRIVER}"].deviceType == "Physical"'
STATES = 10
_KINDS_TO_COME = {"timesliced": "TimeSliced", "vfio": "VFIO"}
_NODE = "the-node-of-the-template"
_ALLOCATABLE = {"cpu": "192", "memory": "2Ti", "pods": "110"}


def device_class() -> DeviceClass:
    """The class of every device of our driver."""
    return msgspec.convert(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": CLASS},
            "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
        },
        DeviceClass,
    )


def node(name: str) -> Node:
    """A node with room for pods."""
    return Node(
        metadata=ObjectMeta(name=name, labels={"kubernetes.io/hostname": name}),
        status=NodeStatus(allocatable=_ALLOCATABLE),
    )


def slices_of(node_name: str) -> tuple[ResourceSlice, ...]:
    """What the driver of that node publishes: a slice of counters, and one a card; decoded anew, nothing shared."""
    return tuple(decode(body, ResourceSlice) for body in bodies_of(node_name))


def bodies_of(node_name: str) -> list[bytes]:
    """The same as JSON. Names and UUIDs are the node's own; they are written into a template, which is much quicker."""
    bodies = list(_template())
    for token in (_NODE, *(gpu.uuid for gpu in _facts())):
        own = node_name if token == _NODE else f"GPU-{uuid5(NAMESPACE_OID, f'{node_name}/{token}')}"
        bodies = [body.replace(token.encode(), own.encode()) for body in bodies]
    return bodies


def contents(count: int) -> tuple[Device, ...]:
    """That many devices of a node with different contents, without what selectors can't see."""
    devices = [device for each in slices_of(_NODE) for device in each.spec.devices]
    return tuple(msgspec.structs.replace(device, consumes_counters=()) for device in devices[:count])


def many(devices: tuple[Device, ...], count: int) -> Iterator[bytes]:
    """JSON of `count` devices: the contents in turn, each time with a name and a UUID of its own."""
    for number in range(count):
        device = devices[number % len(devices)]
        attributes = device.attributes | {"uuid": DeviceAttribute(string=f"GPU-{number:012}")}
        yield encode(msgspec.structs.replace(device, name=f"gpu-{number}", attributes=attributes))


def claim(name: str, *selectors: str, count: int = 1) -> ResourceClaim:
    """An unallocated ResourceClaim for devices of the class."""
    exactly = ExactDeviceRequest(
        device_class_name=CLASS, selectors=tuple(_selector(text) for text in selectors), count=count
    )
    return ResourceClaim(
        metadata=ObjectMeta(name=name, namespace="default", uid=ClaimUID(f"uid-{name}")),
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=(DeviceRequest(name="gpu", exactly=exactly),))),
    )


def held(node_name: str, *devices: str) -> Iterator[ResourceClaim]:
    """One allocated ResourceClaim for each of these devices of the node, all of the device."""
    for device in devices:
        result = DeviceRequestAllocationResult(
            request="gpu",
            driver=DRIVER,
            pool=node_name,
            device=device,
            share_id="",
            consumed_capacity={"memory": "0", "sharePercent": "100"},
        )
        allocation = AllocationResult(devices=DeviceAllocationResult(results=(result,)))
        yield msgspec.structs.replace(claim(f"{node_name}-{device}"), status=ResourceClaimStatus(allocation=allocation))


def names(count: int) -> list[str]:
    """Node names in order."""
    return [f"node-{number:05}" for number in range(count)]


def held_by_all(node_names: Iterable[str]) -> Iterator[ResourceClaim]:
    """What is held on these nodes when they are in the ten states in turn."""
    for number, name in enumerate(node_names):
        yield from held(name, *devices_in_state(number % STATES))


def devices_in_state(state: int) -> tuple[str, ...]:
    """What is held on a node in state 0 to 9: n whole cards for 0 to 7; 8 and 9 hold MIG devices beside 3 cards."""
    if state < CARDS:
        return tuple(f"gpu-{card}" for card in range(state))
    slices = ("1g10gb-6", "1g10gb-5") if state == CARDS else ("3g40gb-4",)
    return (*devices_in_state(3), *(f"gpu-3-mig-{each}" for each in slices))


@cache
def _template() -> tuple[bytes, ...]:
    inventory = take_inventory(
        InventoryRules(DRIVER), _facts(), {gpu.pci_address: rank for rank, gpu in enumerate(_facts())}
    )
    owner = OwnerReference(api_version="v1", kind="Node", name=_NODE, uid=f"uid-{_NODE}", controller=True)
    slices = tuple(_complete(content) for content in inventory.slices)
    return tuple(map(encode, changes(PoolContent(driver=DRIVER, node=_NODE, owner=owner, slices=slices), ()).create))


@cache
def _facts() -> tuple[GpuFacts, ...]:
    with tempfile.TemporaryDirectory() as folder:
        return facts_of(initialise(Path(folder), "h100x8"))


def _complete(content: SliceContent) -> SliceContent:
    if not content.devices:
        return content
    whole = content.devices[0]
    return replace(content, devices=(*content.devices, *(_as_kind(whole, *kind) for kind in _KINDS_TO_COME.items())))


def _as_kind(whole: Device, suffix: str, device_type: str) -> Device:
    attributes = whole.attributes | {"deviceType": DeviceAttribute(string=device_type)}
    return msgspec.structs.replace(whole, name=f"{whole.name}-{suffix}", attributes=attributes)


def _selector(text: str) -> DeviceSelector:
    return msgspec.convert({"cel": {"expression": text}}, DeviceSelector)
