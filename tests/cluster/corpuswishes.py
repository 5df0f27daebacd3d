"""Wishes over the mixed fleet of `corpusfleet`, the same ones for a seed: what people could ask of it, possible or not.

Values only. Weighted so that each answer of the fit panel comes up: sizes above the largest node, selectors that no
device or only some satisfy, selectors that fail, classes whose free cards lie behind closed nodes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final

from claims.wish import (
    Choice,
    Constraint,
    ConstraintKind,
    Mode,
    Owner,
    Preset,
    Strategy,
    Style,
    Toleration,
    Wish,
    Workload,
)
from dra.quantity import parse_quantity
from tests.cluster.corpusfleet import AMD, HAMI, INTEL, NPU, NVIDIA, OURS

_OURS: Final = ("h100", "h200", "a100", "l4", "whole")
_OTHERS: Final = (NVIDIA, "mig.nvidia.com", AMD, INTEL, "links", "ports", "npu", "npu-two", "anything")
# Parts of a DeviceClass that the portal offers by itself: claims name the class and bring a selector on top.
_PARTS: Final = (
    "anything.nvidia-h100-80gb-hbm3",
    "gpu.intel.com.flex-170",
    "mig.nvidia-h100-80gb-hbm3-3g-40gb",
    "mig.nvidia-h200-1g-18gb",
    "npu.two",
    "whole.nvidia-h200",
    "whole.nvidia-l4",
)
_CLASSES: Final = (*_OURS * 3, *("mig",) * 4, *_OTHERS, *_PARTS, *(HAMI,) * 2, *("slots",) * 2)
_EXTENDED: Final = ("h100", "a100", "l4", "whole", NVIDIA, AMD, "npu", "links")
_PROFILES: Final = ("1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb", "7g.80gb", "1g.18gb", "3g.71gb", "1g.10gb+me", "1g.5gb")
_FLOORS: Final = ("4Gi", "10Gi", "20Gi", "40Gi", "79Gi", "100Gi", "140Gi", "1Ti")
_EXPRESSIONS: Final = (
    "true",
    f'device.driver == "{OURS}"',
    f'device.attributes["{OURS}"].?productName.orValue("").startsWith("NVIDIA H")',
    f'device.capacity[?"{OURS}"].?memory.hasValue()',
    'device.attributes["resource.kubernetes.io"].?numaNode.orValue(7) == 0',
    'device.attributes[device.driver].productName.startsWith("NVIDIA")',  # fails where there is no such attribute
    f'device.attributes["{OURS}"].architecture == "Blackwell"',
)
_ATTRIBUTES: Final = ("resource.kubernetes.io/pcieRoot", "resource.kubernetes.io/numaNode", f"{OURS}/productName")
_TOLERATIONS: Final = (
    Toleration(),
    Toleration(key="gpu.example.com/xid", effect="NoExecute", seconds=300),
    Toleration(key="gpu.example.com/maintenance", operator="Equal", value="true", effect="NoSchedule"),
    Toleration(key="gpu.example.com/other"),
)


FEATURES: Final[Mapping[str, Callable[[Wish], object]]] = {
    "extended resource": lambda wish: wish.style is Style.EXTENDED,
    "shared claim": lambda wish: wish.owner is Owner.SHARED,
    "alternatives": lambda wish: wish.alternatives,
    "constraint": lambda wish: wish.constraints,
    "toleration": lambda wish: wish.tolerations,
    "CEL": lambda wish: wish.cel,
    "profile": lambda wish: wish.profile,
    "share": lambda wish: wish.mode is Mode.SHARE,
    "slots": lambda wish: wish.slots,
    "memory": lambda wish: wish.memory,
    "several devices": lambda wish: wish.count > 1,
    "several pods": lambda wish: wish.replicas > 1,
    "part of a class": lambda wish: wish.device_class in _PARTS,
    "autoscaler": lambda wish: wish.autoscale,
    "priority": lambda wish: wish.priority,
}


def features_of(wish: Wish) -> set[str]:
    """What the wish makes use of."""
    return {name for name, uses in FEATURES.items() if uses(wish)}


def first_wishes(namespace: str) -> Iterator[Wish]:
    """Made by hand: on the empty fleet they bring up each answer of the panel, whatever the seed."""
    counts = {"a100": 4, "h100": 5, "l4": 4, NVIDIA: 5, "whole": 1, **dict.fromkeys(_PARTS, 1)}
    for number, (name, count) in enumerate(counts.items()):
        yield Wish(namespace=namespace, name=f"first-{number}", device_class=name, count=count)
    yield Wish(namespace=namespace, name="first-share", device_class="a100", share=25)
    scaled: dict[str, Any] = {"workload": Workload.DEPLOYMENT, "autoscale": (1, 4)}  # it asks for a CPU a pod
    yield Wish(namespace=namespace, name="first-cpu", device_class="slots", slots=1, **scaled)
    fails = f'device.attributes["{NPU}"].model == "two"'  # one of them has no such attribute
    yield Wish(namespace=namespace, name="first-fails", device_class="npu", count=3, cel=(fails,))


def wishes(namespace: str, seed: int) -> Iterator[Wish]:
    """The wishes of a seed, without end."""
    return (_wish(Random(f"{seed}/{number}"), namespace, f"w{number:04}") for number in itertools.count())


def _wish(random: Random, namespace: str, name: str) -> Wish:
    fields: dict[str, Any] = {"namespace": namespace, "name": name, **_workload(random)}
    # The other presets claim volumes, which wait for a storage class: nothing that the panel speaks of.
    fields["preset"] = random.choice([None, None, Preset.KUBEFLOW])
    if random.random() < 0.12:
        device_class = random.choice(_EXTENDED)
        return Wish(**fields, device_class=device_class, count=random.randint(1, 5), style=Style.EXTENDED)
    return _by_claims(random, fields)


def _workload(random: Random) -> dict[str, Any]:
    workload = random.choices(list(Workload)[:4], (70, 12, 12, 6))[0]
    if workload is Workload.POD:
        return {"workload": workload, "priority": "system-cluster-critical" if random.random() < 0.06 else ""}
    if workload is Workload.DEPLOYMENT and random.random() < 0.3:
        return {"workload": workload, "autoscale": (1, 4)}
    return {"workload": workload, "replicas": random.randint(1, 3)}


def _by_claims(random: Random, fields: dict[str, Any]) -> Wish:
    first = _choice(random)
    alternatives = tuple(Choice(**_choice(random)) for _ in range(_some(random, 0.25, 3)))
    if first["device_class"] in _OURS and random.random() < 0.2:
        fields["strategy"] = Strategy.MPS
    return Wish(
        **fields,
        **first,
        alternatives=alternatives,
        owner=Owner.SHARED if random.random() < 0.12 else Owner.OWN,
        cel=tuple(random.sample(_EXPRESSIONS, _some(random, 0.3, 2))),
        constraints=tuple(_constraint(random) for _ in range(_some(random, 0.15, 2))),
        tolerations=tuple(random.sample(_TOLERATIONS, _some(random, 0.15, 2))),
    )


def _some(random: Random, often: float, most: int) -> int:
    """None, or one to `most` where something comes up so often."""
    return random.randint(1, most) if random.random() < often else 0


def _choice(random: Random) -> dict[str, Any]:
    name = random.choice(_CLASSES)
    return {"device_class": name, **_size(random, name)}


def _size(random: Random, name: str) -> dict[str, Any]:
    if name == "mig":
        return {"profile": random.choice(_PROFILES), "count": random.choice([1, 1, 2, 3, 8])}
    if name == "slots":
        return {"slots": random.randint(1, 5)}
    if name in (*_OURS, HAMI) and random.random() < 0.4:
        return {"share": random.randint(1, 19) * 5, **_memory(random, 0.3, _FLOORS[:4])}
    return {"count": random.choice([1, 1, 1, 2, 2, 3, 4, 5]), **_memory(random, 0.25, _FLOORS)}


def _memory(random: Random, often: float, floors: Sequence[str]) -> dict[str, Any]:
    return {"memory": parse_quantity(random.choice(floors))} if random.random() < often else {}


def _constraint(random: Random) -> Constraint:
    return Constraint(random.choice(list(ConstraintKind)), random.choice(_ATTRIBUTES))
