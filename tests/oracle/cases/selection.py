"""Random questions of kind `cel`: some expressions about some devices."""

from __future__ import annotations

from tests.oracle.asking import Json
from tests.oracle.cases.dice import Dice
from tests.oracle.cases.expressions import expression

EXPRESSIONS, DEVICES = 10, 4
DRIVER = "gpu.example.com"
ATTRIBUTES: dict[str, tuple[Json, ...]] = {
    "model": ({"string": "H100"}, {"string": "A100"}, {"string": "héllo-日本"}, {"string": ""}, {"int": 100}),
    "index": ({"int": 0}, {"int": 1}, {"int": -3}, {"int": 9223372036854775807}, {"string": "1"}, {"bool": True}),
    "numa": ({"int": 0}, {"int": 1}),
    "healthy": ({"bool": True}, {"bool": False}, {"string": "true"}),
    "driverVersion": ({"version": "580.65.6"}, {"version": "1.2.3-rc.1+b"}, {"version": "0.0.0"}, {"string": "1.2.3"}),
    "tags": (
        {"strings": ["nvlink", "sxm"]},
        {"strings": ["a"]},
        {"string": "nvlink"},
        {"versions": ["1.2.3", "2.0.0"]},
    ),
    "lanes": ({"ints": [1, 2, 3]}, {"bools": [True]}, {"int": 2}),
    "uuid": ({"string": "GPU-0a1b"}, {"string": "GPU-ffff-2"}),
    "resource.kubernetes.io/pcieRoot": ({"string": "pci0000:00"},),
    "other.example.com/model": ({"string": "H100"}, {"int": 1}),
}
BROKEN: tuple[Json, ...] = ({"version": "1.0"}, {})
AMOUNTS = ("80Gi", "81920Mi", "1500m", "0", "8E", "1e3", "-5", "100k", "0.1")


def question(seed: int | str) -> Json:
    """The case of that seed: EXPRESSIONS x DEVICES cases in truth."""
    dice = Dice(seed)
    asked: Json = {
        "kind": "cel",
        "driver": DRIVER,
        "expressions": [expression(dice) for _ in range(EXPRESSIONS)],
        "devices": [device(dice, number) for number in range(DEVICES)],
    }
    if dice.chance(0.2):
        asked["environment"] = "new"
    if dice.chance(0.3):
        asked["costs"] = True
    return asked


def device(dice: Dice, number: int) -> Json:
    made: Json = {"name": f"dev-{number}"}
    share = dice.pick((0.9, 0.9, 0.5, 0.1))
    attributes = {name: dice.pick(values) for name, values in ATTRIBUTES.items() if dice.chance(share)}
    if dice.chance(0.01):
        attributes["odd"] = dice.pick(BROKEN)
    if attributes:
        made["attributes"] = {full_name(dice, name): value for name, value in attributes.items()}
    capacity = {name: {"value": dice.pick(AMOUNTS)} for name in ("memory", "cores", "odd") if dice.chance(share)}
    if capacity:
        made["capacity"] = {full_name(dice, name): value for name, value in capacity.items()}
    if dice.chance(0.3):
        made["allowMultipleAllocations"] = dice.chance(0.7)
    return made


def full_name(dice: Dice, name: str) -> str:
    return f"{DRIVER}/{name}" if "/" not in name and dice.chance(0.15) else name
