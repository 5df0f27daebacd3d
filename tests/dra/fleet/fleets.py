"""Small fleets from a few words: nodes, pools of cards, claims. Objects are read from wire form, as everywhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from dra.allocation import Allocated, Snapshot
from dra.objects import DeviceClass, Node, ResourceClaim, ResourceClaimStatus, ResourceSlice

DRIVER = "gpu.example.com"
Json = dict[str, Any]


def node(name: str, **labels: str) -> Node:
    allocatable = {"cpu": "8", "memory": "64Gi", "pods": "110"}
    wire = {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": allocatable}}
    return msgspec.convert(wire, Node)


def device(name: str, *, uuid: str = "", share: int = 0, **attributes: str) -> Json:
    """A device; with `share`, one of 100 percent that many claims may have, by steps of that many."""
    texts = attributes | ({"uuid": uuid} if uuid else {})
    wire: Json = {"name": name, "attributes": {key: {"string": value} for key, value in texts.items()}}
    if share:
        policy = {"default": "100", "validRange": {"min": str(share), "max": "100", "step": str(share)}}
        wire |= {"allowMultipleAllocations": True, "capacity": {"percent": {"value": "100", "requestPolicy": policy}}}
    return wire


def pool(where: str, *devices: Json, name: str = "", counters: Iterable[Json] = ()) -> list[ResourceSlice]:
    """The slices of a pool on the node `where`, or for all nodes if that is ""; the counters in their own slice."""
    name = name or where
    contents: list[Json] = [{"sharedCounters": list(counters)}] if counters else []
    contents.append({"devices": list(devices)})
    place: Json = {"nodeName": where} if where else {"allNodes": True}
    facts = {"name": name, "generation": 1, "resourceSliceCount": len(contents)}
    return [
        msgspec.convert(
            {"metadata": {"name": f"{name}-{number}"}, "spec": {"driver": DRIVER, "pool": facts, **place, **content}},
            ResourceSlice,
        )
        for number, content in enumerate(contents)
    ]


def cards(where: str, count: int, *, share: int = 0, **attributes: str) -> list[ResourceSlice]:
    """A pool of that many equal cards but for their UUIDs."""
    return pool(where, *(device(f"gpu-{i}", uuid=f"{where}/{i}", share=share, **attributes) for i in range(count)))


def device_class(*selectors: str) -> DeviceClass:
    wire = {"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": each}} for each in selectors]}}
    return msgspec.convert(wire, DeviceClass)


def claim(name: str = "wish", *selectors: str, count: int = 1, **exactly: Any) -> ResourceClaim:
    """A claim with one device request."""
    chosen = [{"cel": {"expression": each}} for each in selectors]
    request = {"deviceClassName": "gpu", "selectors": chosen, "count": count, **exactly}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": request}]}}
    return msgspec.convert(
        {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec}, ResourceClaim
    )


def percent(amount: int, name: str = "wish") -> ResourceClaim:
    """A claim for a share of a card."""
    return claim(name, capacity={"requests": {"percent": str(amount)}})


def held(where: str, *devices: str) -> list[ResourceClaim]:
    """For each of the devices a claim that has all of it."""
    return [_holding(f"{where}-{each}", where, each) for each in devices]


def _holding(name: str, where: str, device_name: str) -> ResourceClaim:
    result = {"request": "gpu", "driver": DRIVER, "pool": where, "device": device_name}
    status = msgspec.convert({"allocation": {"devices": {"results": [result]}}}, ResourceClaimStatus)
    return msgspec.structs.replace(claim(name), status=status)


def fleet(
    nodes: Iterable[Node],
    *slices: Iterable[ResourceSlice],
    claims: Iterable[ResourceClaim] = (),
    classes: Iterable[DeviceClass] = (device_class(),),
) -> Snapshot:
    return Snapshot.build(
        nodes=nodes, slices=[each for some in slices for each in some], classes=classes, resource_claims=claims
    )


def grant(snapshot: Snapshot, wish: ResourceClaim, answer: Allocated, number: int) -> Snapshot:
    """The snapshot once another claim like the wish has what was given."""
    metadata = msgspec.structs.replace(wish.metadata, name=f"granted-{number}", uid=f"granted-{number}")
    status = ResourceClaimStatus(allocation=answer.results[0])
    return snapshot.with_claim(msgspec.structs.replace(wish, metadata=metadata, status=status))
