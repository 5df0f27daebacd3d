"""Random pools: slices of devices on a node, with counters, older generations, missing slices, and faults.

All slices of one generation agree on their number: which one counts where they don't depends on a random order.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.oracle.asking import Json
from tests.oracle.cases import devices
from tests.oracle.cases.dice import Dice

NODE = "node-a"
LABELS = {"zone": "z1", "rank": "3"}
DRIVERS = {"gpu.example.com": 6.0, "nic.example.com": 1.0}
PLAIN: dict[str, Json] = {"name": {"nodeName": NODE}, "all": {"allNodes": True}, "far": {"nodeName": "node-b"}}
FAULTS = ("devices twice", "counter set twice", "no such counter set", "no such counter")
HERE: tuple[Json, ...] = (
    {"key": "zone", "operator": "In", "values": ["z1", "z2"]},
    {"key": "zone", "operator": "NotIn", "values": ["z2"]},
    {"key": "zone", "operator": "Exists"},
    {"key": "rack", "operator": "DoesNotExist"},
    {"key": "rank", "operator": "Gt", "values": ["2"]},
    {"key": "rank", "operator": "Lt", "values": ["10"]},
)
ELSEWHERE: tuple[Json, ...] = (
    {"key": "zone", "operator": "In", "values": ["z2"]},
    {"key": "rack", "operator": "Exists"},
    {"key": "rank", "operator": "Gt", "values": ["3"]},
)


@dataclass
class Plan:
    """One pool before it becomes slices."""

    driver: str
    name: str
    style: str
    generation: int
    devices: list[Json] = field(default_factory=list)
    counter_sets: list[Json] = field(default_factory=list)


def plan(dice: Dice, number: int) -> Plan:
    """A pool of one style: whole devices, shared ones, or partitions that draw on counters."""
    driver = dice.weighted(DRIVERS)
    style = dice.weighted({"whole": 4.0, "shared": 4.0, "parts": 2.5})
    made = Plan(driver, f"pool-{number}", style, dice.number(1, 3))
    full = dice.pick((1.0, 0.9, 0.9, 0.6))
    make = {"whole": whole, "shared": shared, "parts": parts}[style]
    make(dice, made)
    tainted = devices.taints(dice) if dice.chance(0.25) else []
    bound = devices.binding(dice) if dice.chance(0.08) else {}
    for device in made.devices:
        decorate(dice, device, driver, full)
        if tainted and dice.chance(0.8):
            device["taints"] = tainted
        device.update(bound)
    return made


def whole(dice: Dice, made: Plan) -> None:
    for index in range(dice.number(2, 5)):
        made.devices.append({"name": f"dev-{index}", "capacity": {"memory": {"value": dice.pick(("40Gi", "80Gi"))}}})


def shared(dice: Dice, made: Plan) -> None:
    """Shareable devices, and sometimes a whole one among them."""
    for index in range(dice.number(1, 3)):
        device: Json = {"name": f"dev-{index}"}
        made.devices.append(device | (devices.shareable(dice) if dice.chance(0.9) else {}))


def parts(dice: Dice, made: Plan) -> None:
    """Cards with counters for memory and slots; per card the whole and some parts of it."""
    for card in range(dice.number(1, 2)):
        made.counter_sets.append(
            {"name": f"card-{card}", "counters": {"memory": {"value": "40Gi"}, "slots": {"value": "4"}}}
        )
        sizes = [4, *dice.some((1, 1, 2, 2, 3), 1, 3)]
        for index, size in enumerate(dice.shuffled(sizes)):
            device = {"name": f"card-{card}-{index}", "consumesCounters": [drawn(card, size)]}
            made.devices.append(device | (devices.shareable(dice) if dice.chance(0.1) else {}))


def drawn(card: int, size: int) -> Json:
    return {
        "counterSet": f"card-{card}",
        "counters": {"memory": {"value": f"{10 * size}Gi"}, "slots": {"value": str(size)}},
    }


def decorate(dice: Dice, device: Json, driver: str, full: float) -> None:
    """Attributes for all; taints, conditions and compatibility groups for some."""
    if made := devices.attributes(dice, driver, full):
        device["attributes"] = made
    if dice.chance(0.07):
        device["taints"] = devices.taints(dice)
    if dice.chance(0.03):
        device.update(devices.binding(dice))
    if "consumesCounters" in device and dice.chance(0.02):
        device["consumesCounters"][0]["compatibilityGroups"] = dice.some(("a", "b"), 1, 2)


def slices(dice: Dice, made: Plan) -> list[Json]:
    """The slices of a pool: devices in one or two, counters in one of their own, names in random order."""
    names = [f"{made.name}-{number}" for number in dice.shuffled((1, 2, 10, 20))]
    where = selection(dice)
    bodies: list[Json] = [{"devices": group} | where for group in groups(dice, made.devices)]
    if "perDeviceNodeSelection" in where:
        for device in made.devices:
            device.update(own_selection(dice))
    if made.counter_sets:
        bodies.append({"sharedCounters": made.counter_sets, "nodeName": NODE})
    if "nodeName" in where and dice.chance(0.1):
        bodies.append({"devices": [{"name": "far-0"}], "nodeName": "node-b"})
    return [slice_(made, name, body, len(bodies)) for name, body in zip(names, bodies, strict=False)]


def groups(dice: Dice, all_devices: list[Json]) -> list[list[Json]]:
    if len(all_devices) < 2 or dice.chance(0.6):
        return [all_devices]
    cut = dice.number(1, len(all_devices) - 1)
    return [all_devices[:cut], all_devices[cut:]]


def slice_(made: Plan, name: str, body: Json, count: int) -> Json:
    pool = {"name": made.name, "generation": made.generation, "resourceSliceCount": count}
    return {"metadata": {"name": name}, "spec": {"driver": made.driver, "pool": pool} | body}


def selection(dice: Dice) -> Json:
    """From which nodes a slice can be used; mostly from ours."""
    kind = dice.weighted({"name": 6.0, "all": 1.0, "selector": 2.0, "per device": 1.5, "far": 0.2})
    if kind == "selector":
        return {"nodeSelector": node_selector(dice)}
    if kind == "per device":
        return {"perDeviceNodeSelection": True}
    return PLAIN[kind]


def own_selection(dice: Dice) -> Json:
    """The same for one device."""
    kind = dice.weighted({"name": 3.0, "all": 2.0, "selector": 2.0, "far": 1.0})
    if kind == "selector":
        return {"nodeSelector": node_selector(dice)}
    return PLAIN[kind]


def node_selector(dice: Dice) -> Json:
    """One term that mostly matches; rarely one that no parser accepts."""
    if dice.chance(0.1):
        return term({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [NODE]}]})
    if dice.chance(0.01):
        return term({"matchExpressions": [{"key": "rank", "operator": "Gt", "values": ["many"]}]})
    wanted = dice.some(HERE, 1, 2) + (dice.some(ELSEWHERE, 1, 1) if dice.chance(0.12) else [])
    return term({"matchExpressions": wanted})


def term(content: Json) -> Json:
    return {"nodeSelectorTerms": [content]}


def spoil(dice: Dice, made: Plan, pieces: list[Json]) -> list[Json]:
    """The pool as it looks halfway through an update."""
    kind = dice.weighted({"count": 5.0, "older": 3.0, "newer elsewhere": 2.0})
    if kind == "older":
        return pieces + [regenerated(piece, -1) for piece in pieces]
    if kind == "newer elsewhere":
        newer = regenerated(pieces[0], 1)
        newer["spec"] = {key: newer["spec"][key] for key in ("driver", "pool")} | {"nodeName": "node-b"}
        return [*pieces, newer]
    for piece in pieces:
        piece["spec"]["pool"]["resourceSliceCount"] += -1 if len(pieces) > 1 and dice.chance(0.3) else 1
    return pieces


def regenerated(piece: Json, step: int) -> Json:
    spec = piece["spec"]
    return {
        "metadata": {"name": f"at{step}-{piece['metadata']['name']}"},
        "spec": spec | {"pool": spec["pool"] | {"generation": spec["pool"]["generation"] + step}},
    }


def break_(dice: Dice, pieces: list[Json]) -> None:
    """A fault that makes a pool invalid."""
    fault = dice.pick(FAULTS)
    bodies = [piece["spec"] for piece in pieces]
    with_devices = [body for body in bodies if body.get("devices")]
    with_counters = [body for body in bodies if body.get("sharedCounters")]
    last = with_devices[-1]["devices"]
    if fault == "devices twice" or not with_counters:
        last.append({"name": last[0]["name"]})
    elif fault == "counter set twice":
        with_counters[0]["sharedCounters"].append(with_counters[0]["sharedCounters"][0])
    elif fault == "no such counter set":
        last[-1] = last[-1] | {"consumesCounters": [drawn(9, 1)]}
    else:
        unknown = {"counterSet": "card-0", "counters": {"copies": {"value": "1"}}}
        last[-1] = last[-1] | {"consumesCounters": [unknown]}
