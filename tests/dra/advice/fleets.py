"""Small fleets for tests of advice: two-word builders over plain objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dra.allocation import Snapshot
from dra.features import Features
from dra.objects import DeviceClass, Node, ResourceClaim, ResourceSlice

DRIVER = "gpu.example.com"
CLASS = "gpu"
MEMORY_80 = 'device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0'


def a_device(name: str, *, memory: str = "80Gi", attributes: Mapping[str, object] | None = None, **more: Any) -> Any:
    """A device with memory and attributes; texts are strings, numbers ints."""
    typed = {key: _typed(value) for key, value in {"model": "h100", **(attributes or {})}.items()}
    return {"name": name, "attributes": typed, "capacity": {"memory": {"value": memory}}, **more}


def _typed(value: object) -> dict[str, object]:
    kind = "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "string"
    return {kind: value}


def a_slice(node: str, devices: Sequence[Any], *, pool: str = "", count: int = 1, **spec: Any) -> ResourceSlice:
    """One slice of a pool on a node."""
    name = f"{pool or node}-{spec.pop('number', 0)}"
    return msgspec.convert(
        {
            "metadata": {"name": name},
            "spec": {
                "driver": DRIVER,
                "nodeName": node,
                "pool": {"name": pool or node, "generation": 1, "resourceSliceCount": count},
                "devices": list(devices),
                **spec,
            },
        },
        ResourceSlice,
    )


def a_class(name: str = CLASS, *selectors: str) -> DeviceClass:
    """A class; of the driver unless selectors are given."""
    texts = selectors or (f'device.driver == "{DRIVER}"',)
    spec = {"selectors": [{"cel": {"expression": text}} for text in texts]}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, DeviceClass)


def a_request(name: str = "gpu", *selectors: str, **exactly: Any) -> Any:
    """A device request for the class."""
    return {"name": name, "exactly": _exact(selectors, exactly)}


def an_alternative(name: str, *selectors: str, **exactly: Any) -> Any:
    """One entry of a firstAvailable list."""
    return {"name": name, **_exact(selectors, exactly)}


def _exact(selectors: Sequence[str], exactly: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "deviceClassName": CLASS,
        "selectors": [{"cel": {"expression": text}} for text in selectors],
        **exactly,
    }


def a_claim(*requests: Any, name: str = "wish", namespace: str = "mine", **devices: Any) -> ResourceClaim:
    """An unallocated claim."""
    spec = {"devices": {"requests": list(requests), **devices}}
    return msgspec.convert({"metadata": {"name": name, "namespace": namespace}, "spec": spec}, ResourceClaim)


def held_by(namespace: str, name: str, *devices: str, pool: str = "node-a", **result: Any) -> ResourceClaim:
    """A claim that has these devices."""
    results = [{"request": "r", "driver": DRIVER, "pool": pool, "device": each, **result} for each in devices]
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}"},
            "status": {"allocation": {"devices": {"results": results}}},
        },
        ResourceClaim,
    )


def a_fleet(
    *slices: ResourceSlice,
    held: Sequence[ResourceClaim] = (),
    classes: Sequence[DeviceClass] = (),
    features: Features | None = None,
) -> Snapshot:
    """The snapshot of these slices, with a node for each node name in them."""
    names = dict.fromkeys(each.spec.node_name for each in slices if each.spec.node_name)
    nodes = [msgspec.convert({"metadata": {"name": name}}, Node) for name in names]
    return Snapshot.build(
        nodes=nodes, slices=slices, classes=classes or [a_class()], resource_claims=held, features=features
    )


def draws(slices: str, memory: str) -> dict[str, Any]:
    """What a partition takes of the card."""
    counters = {"slice": {"value": slices}, "memory": {"value": memory}}
    return {"consumesCounters": [{"counterSet": "card", "counters": counters}]}


def shared(value: str, **policy: object) -> dict[str, Any]:
    """Consumable memory of a device that several claims may have."""
    capacity = {"memory": {"value": value, "requestPolicy": policy} if policy else {"value": value}}
    return {"allowMultipleAllocations": True, "capacity": capacity}


def asks_for(memory: str) -> dict[str, Any]:
    """A capacity request."""
    return {"capacity": {"requests": {"memory": memory}}}


def a_card(*parts: tuple[str, str], held: Sequence[str] = ()) -> Snapshot:
    """A card of four slices and 80Gi with a partition part-0, part-1 and so on for each pair of slices and memory."""
    devices = [a_device(f"part-{index}", **draws(*part)) for index, part in enumerate(parts)]
    counters = [{"name": "card", "counters": {"slice": {"value": "4"}, "memory": {"value": "80Gi"}}}]
    slices = (
        a_slice("node-a", devices, count=2),
        a_slice("node-a", [], count=2, number=1, sharedCounters=counters),
    )
    return a_fleet(*slices, held=[held_by("theirs", "training", *held)] if held else [])
