"""Random devices, as they stand in a slice: attributes, capacity with each kind of policy, taints, conditions.

Values come from small sets, so that devices are often equal and selectors and constraints often hold.
"""

from __future__ import annotations

from tests.oracle.asking import Json
from tests.oracle.cases.dice import Dice

EFFECTS = {"NoSchedule": 5.0, "NoExecute": 3.0, "None": 1.0, "Later": 0.5}
TAINT_KEYS = ("example.com/broken", "example.com/reserved")
LISTS: dict[str, tuple[str, tuple[object, ...]]] = {
    "tags": ("strings", ("nvlink", "sxm", "pcie")),
    "lanes": ("ints", (1, 2, 3)),
    "drivers": ("versions", ("1.2.3", "1.2.3+a", "2.0.0")),
    "flags": ("bools", (True, False)),
}
SCALARS: dict[str, tuple[Json, ...]] = {
    "model": ({"string": "H100"}, {"string": "H100"}, {"string": "A100"}, {"int": 100}),
    "index": ({"int": 0}, {"int": 1}, {"int": 2}, {"string": "1"}),
    "numa": ({"int": 0}, {"int": 1}),
    "healthy": ({"bool": True}, {"bool": True}, {"bool": False}),
    "driverVersion": ({"version": "580.65.6"}, {"version": "580.65.6"}, {"version": "575.0.0-rc.1"}),
    "resource.kubernetes.io/pcieRoot": ({"string": "pci0000:00"}, {"string": "pci0000:80"}),
}


def attributes(dice: Dice, driver: str, share: float) -> Json:
    """Each attribute with that probability; a name sometimes with the driver's domain, as the API allows."""
    chosen: Json = {}
    for name, values in SCALARS.items():
        if dice.chance(share):
            full = "/" not in name and dice.chance(0.1)
            chosen[f"{driver}/{name}" if full else name] = dice.pick(values)
    if dice.chance(0.1):
        name, (kind, options) = dice.pick(list(LISTS.items()))
        chosen[name] = {kind: dice.some(options, 1, 2)}
    return chosen


def taints(dice: Dice) -> list[Json]:
    """One taint, sometimes two."""
    return [taint(dice) for _ in range(dice.weighted({1: 4.0, 2: 1.0}))]


def taint(dice: Dice) -> Json:
    made: Json = {"key": dice.pick(TAINT_KEYS), "effect": dice.weighted(EFFECTS)}
    if dice.chance(0.5):
        made["value"] = dice.pick(("yes", "no"))
    return made


def shareable(dice: Dice) -> Json:
    """The fields of a device that many may share: capacity with policies, or without any capacity."""
    made: Json = {"allowMultipleAllocations": True}
    if dice.chance(0.95):
        made["capacity"] = {"memory": capacity(dice, dice.number(8, 32), "Gi")}
        if dice.chance(0.3):
            made["capacity"]["cores"] = capacity(dice, dice.number(4, 16), "")
    return made


POLICIES = {"none": 2.0, "default": 2.0, "validRange": 2.0, "validRange+step": 2.5, "validValues": 2.0}


def capacity(dice: Dice, value: int, unit: str) -> Json:
    """A capacity of `value` units. About half of what its policy lets through fits twice."""
    kind = dice.weighted(POLICIES)
    made: Json = {"value": f"{value}{unit}"}
    if kind == "none":
        return made
    low = dice.number(1, max(1, value // 3))
    policy: Json = {"default": f"{dice.number(low, max(low, value // 2))}{unit}"}
    if kind == "validValues":
        policy["validValues"] = sorted_texts(dice, low, value, unit)
    elif kind != "default":
        policy["validRange"] = valid_range(dice, low, value, unit, step=kind.endswith("step"))
    return made | {"requestPolicy": policy}


def sorted_texts(dice: Dice, low: int, value: int, unit: str) -> list[str]:
    return [f"{number}{unit}" for number in sorted(dice.some(range(low, value + 1), 1, 4))]


def valid_range(dice: Dice, low: int, value: int, unit: str, *, step: bool) -> Json:
    """Bounds in whole units, now and then in fractions (which count only where their gate is on)."""
    if not unit and dice.chance(0.25):
        return {"min": "500m"} | ({"step": dice.pick(("250m", "1500m"))} if step else {})
    made: Json = {"min": f"{low}{unit}"}
    if dice.chance(0.5):
        made["max"] = f"{dice.number(low, value)}{unit}"
    if step:
        made["step"] = f"{dice.number(1, 4)}{unit}"
    return made


def binding(dice: Dice) -> Json:
    """Conditions that a driver sets before a pod may be bound; some of these devices pin the claim to the node."""
    made: Json = {"bindingConditions": ["example.com/ready"], "bindingFailureConditions": ["example.com/failed"]}
    return made | ({"bindsToNode": True} if dice.chance(0.3) else {})
