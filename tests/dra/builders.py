"""Two-word builders for tests of allocation: small clusters in a few lines. Everything belongs to one driver and node.

Quantities are texts, counters whole numbers; what is not said is as the API server would have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from dra.allocation import Answer, Snapshot, allocate
from dra.features import Features
from dra.objects import Device, DeviceClass, DeviceTaintRule, Node, ResourceClaim, ResourceSlice

DRIVER = "gpu.example.com"
NODE = "node-a"
POOL = "pool-a"

type Json = dict[str, Any]


def of_model(model: str) -> str:
    """A selector: devices of that model."""
    return f'device.attributes["{DRIVER}"].model == "{model}"'


def a_device(name: str, *, draws: Mapping[str, Mapping[str, int]] | None = None, **fields: Any) -> Json:
    """A device. `attributes` and `capacity` by name as plain values; `shared` for allowMultipleAllocations."""
    attributes = {key: _attribute(value) for key, value in fields.pop("attributes", {}).items()}
    capacity = {
        key: value if isinstance(value, dict) else {"value": value} for key, value in fields.pop("capacity", {}).items()
    }
    counters = [
        {"counterSet": each, "counters": {key: {"value": str(amount)} for key, amount in amounts.items()}}
        for each, amounts in (draws or {}).items()
    ]
    shared = {"allowMultipleAllocations": True} if fields.pop("shared", False) else {}
    return (
        {"name": name, "attributes": attributes, "capacity": capacity, "consumesCounters": counters} | shared | fields
    )


def _attribute(value: object) -> Json:
    match value:
        case bool():
            return {"bool": value}
        case int():
            return {"int": value}
        case list():
            return {"strings": value}
        case dict():
            return value
        case _:
            return {"string": value}


def some_devices(count: int, **fields: Any) -> list[Json]:
    """`gpu-0`, `gpu-1`, and so on, all alike."""
    return [a_device(f"gpu-{number}", **fields) for number in range(count)]


def a_slice(devices: Iterable[Json] = (), *, name: str = "slice-a", pool: str = POOL, **fields: Any) -> ResourceSlice:
    """A slice of this node, the only one of its pool unless `count` says otherwise."""
    where = (
        {"nodeName": NODE}
        if not {"allNodes", "nodeSelector", "perDeviceNodeSelection", "nodeName"} & fields.keys()
        else {}
    )
    sets = [
        {"name": each, "counters": {key: {"value": str(amount)} for key, amount in amounts.items()}}
        for each, amounts in fields.pop("counters", {}).items()
    ]
    counted = {"generation": fields.pop("generation", 1), "resourceSliceCount": fields.pop("count", 1)}
    spec = {"driver": fields.pop("driver", DRIVER), "pool": {"name": pool, **counted}, "devices": list(devices)}
    return msgspec.convert(
        {"metadata": {"name": name}, "spec": spec | where | {"sharedCounters": sets} | fields}, ResourceSlice
    )


def some_cards(cards: int) -> list[ResourceSlice]:
    """Cards of 2 slots, each as one whole device and two halves that exclude the whole: 3 devices a card."""
    counters = {f"card-{card}": {"slots": 2} for card in range(cards)}
    devices = [
        a_device(
            f"card-{card}-{part}", draws={f"card-{card}": {"slots": slots}}, attributes={"model": model, "card": card}
        )
        for card in range(cards)
        for part, slots, model in (("whole", 2, "whole"), ("half-0", 1, "half"), ("half-1", 1, "half"))
    ]
    return [a_slice(name="counters", counters=counters, count=2), a_slice(devices, name="devices", count=2)]


def a_class(name: str = "gpu", *selectors: str, **fields: Any) -> DeviceClass:
    """A class; without selectors it has every device."""
    chosen = [{"cel": {"expression": text}} for text in selectors]
    return msgspec.convert({"metadata": {"name": name}, "spec": {"selectors": chosen, **fields}}, DeviceClass)


def a_node(name: str = NODE, **labels: str) -> Node:
    """A node with labels."""
    return msgspec.convert({"metadata": {"name": name, "labels": labels}}, Node)


def a_request(name: str = "gpu", *selectors: str, **fields: Any) -> Json:
    """A device request for one device of the class `gpu`."""
    return {"name": name, "exactly": _asked(selectors, fields)}


def an_alternative(name: str, *selectors: str, **fields: Any) -> Json:
    """One entry of a `firstAvailable` list."""
    return {"name": name, **_asked(selectors, fields)}


def a_choice(name: str, *alternatives: Json) -> Json:
    """A device request with alternatives."""
    return {"name": name, "firstAvailable": list(alternatives)}


def _asked(selectors: Sequence[str], fields: dict[str, Any]) -> Json:
    capacity = {"capacity": {"requests": fields.pop("capacity")}} if "capacity" in fields else {}
    chosen = [{"cel": {"expression": text}} for text in selectors]
    return {"deviceClassName": "gpu", "selectors": chosen} | capacity | fields


def a_claim(*requests: Json, name: str = "claim", **fields: Any) -> ResourceClaim:
    """An unallocated claim; one device request for one device where none is given."""
    devices = {"requests": list(requests or (a_request(),)), **fields}
    return msgspec.convert(
        {"metadata": {"namespace": "default", "name": name}, "spec": {"devices": devices}}, ResourceClaim
    )


def a_holder(*results: str | Json, name: str = "holder") -> ResourceClaim:
    """A claim that has these devices of the pool: a name for a whole device, fields for anything else."""
    entries = [
        {"request": "gpu", "driver": DRIVER, "pool": POOL, **({"device": each} if isinstance(each, str) else each)}
        for each in results
    ]
    status = {"allocation": {"devices": {"results": entries}}}
    return msgspec.convert({"metadata": {"namespace": "default", "name": name}, "status": status}, ResourceClaim)


def a_share(device: str, **consumed: str) -> Json:
    """What a holder has of a shared device."""
    return {"device": device, "shareID": f"share-of-{device}", "consumedCapacity": consumed}


def a_rule(name: str = "rule", *, selector: Json | None = None, **taint: str) -> DeviceTaintRule:
    """A DeviceTaintRule."""
    chosen = {} if selector is None else {"deviceSelector": selector}
    return msgspec.convert(
        {"metadata": {"name": name}, "spec": {"taint": {"key": "k", "effect": "NoSchedule"} | taint, **chosen}},
        DeviceTaintRule,
    )


def a_snapshot(*slices: ResourceSlice, **fields: Any) -> Snapshot:
    """The cluster: one node and the class `gpu` unless others are given; `gates` by their Kubernetes names."""
    return Snapshot.build(
        nodes=fields.pop("nodes", [a_node()]),
        slices=slices,
        classes=fields.pop("classes", [a_class()]),
        resource_claims=fields.pop("held", ()),
        taint_rules=fields.pop("rules", ()),
        features=Features().with_gates(fields.pop("gates", {})),
    )


def ask_for(snapshot: Snapshot, *claims: ResourceClaim) -> Answer:
    """What allocation on the node answers."""
    return allocate(snapshot, NODE, claims or (a_claim(),))


def a_struct(device: Json) -> Device:
    """The device as objects have it."""
    return msgspec.convert(device, Device)
