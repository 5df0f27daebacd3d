"""Random questions of kind `allocate`: a node, its pools, what is in use, and the claims of one pod.

The sizes keep the scheduler's exhaustive search short: a dozen devices, a handful asked for.
"""

from __future__ import annotations

from tests.oracle.asking import Json
from tests.oracle.cases import claims, devices, pools
from tests.oracle.cases.dice import Dice

TIMEOUT_SECONDS = 1
# Never all three that the stable allocator does without: its choice depends on the order of a Go map.
SWITCHES: tuple[dict[str, bool], ...] = (
    {"DRAListTypeAttributes": True},
    {"DRAListTypeAttributes": True, "DRAConsumableCapacity": False},
    {"DRAFractionalCapacityRange": True},
    {"DRADeviceCompatibilityGroups": True},
    {"DRAOptionalNodeOperations": True},
    {"DRADerivedAttributes": True},
    {"DRAAdminAccess": False},
    {"DRADeviceTaints": False},
    {"DRADeviceTaintRules": False},
    {"DRAPartitionableDevices": False},
    {"DRAConsumableCapacity": False},
    {"DRAPrioritizedList": False},
    {"DRADeviceBindingConditions": False},
    {"DRAResourceClaimDeviceStatus": False},
)


def question(seed: int | str) -> Json:
    """The case of that seed."""
    dice = Dice(seed)
    calm = dice.chance(0.3)
    slices = cluster(dice, calm=calm)
    asked: Json = {
        "kind": "allocate",
        "timeoutSeconds": TIMEOUT_SECONDS,
        "node": {"metadata": {"name": pools.NODE, "labels": pools.LABELS}},
        "slices": dice.shuffled(slices),
        "classes": claims.classes(dice),
        "claims": [
            claims.claim(dice, number, fancy=dice.chance(0.4)) for number in range(dice.weighted({1: 6, 2: 2, 3: 1}))
        ],
    }
    if not calm and dice.chance(0.6):
        asked["allocatedClaims"] = claims.allocated(dice, slices)
    if dice.chance(0.12):
        asked["taintRules"] = [taint_rule(dice, slices, number) for number in range(dice.number(1, 2))]
    if dice.chance(0.15):
        switch(dice, asked)
    return asked


def cluster(dice: Dice, *, calm: bool) -> list[Json]:
    """Slices of one to three pools; unless it is calm, some of them in the middle of an update or broken."""
    made: list[Json] = []
    for number in range(dice.weighted({1: 1.0, 2: 4.0, 3: 3.0})):
        plan = pools.plan(dice, number)
        pieces = pools.slices(dice, plan)
        fate = "well" if calm else dice.weighted({"well": 12.0, "spoilt": 1.8, "broken": 1.8})
        if fate == "spoilt":
            pieces = pools.spoil(dice, plan, pieces)
        elif fate == "broken":
            pools.break_(dice, pieces)
        made += pieces
    return made


def taint_rule(dice: Dice, slices: list[Json], number: int) -> Json:
    """A rule for a driver, a pool, a device, everything, or (without a selector) nothing."""
    piece = dice.pick(slices)["spec"]
    names = [device["name"] for device in piece.get("devices", ())] or ["none"]
    wanted = {"driver": piece["driver"], "pool": piece["pool"]["name"], "device": dice.pick(names)}
    spec: Json = {"taint": devices.taint(dice)}
    if dice.chance(0.9):
        chosen = dice.some(list(wanted), 0 if dice.chance(0.1) else 1, 3)
        spec["deviceSelector"] = {key: wanted[key] for key in chosen}
    return {"metadata": {"name": f"rule-{number}"}, "spec": spec}


def switch(dice: Dice, asked: Json) -> None:
    """Other gates, and what only they make possible."""
    asked["features"] = gates = dict(dice.pick(SWITCHES))
    if "DRAOptionalNodeOperations" in gates:
        for piece in asked["slices"]:
            if dice.chance(0.5):
                piece["spec"]["skipNodeOperations"] = dice.some(
                    ("NodePrepareResources", "NodeUnprepareResources"), 1, 2
                )
        if dice.chance(0.7):
            asked["node"]["status"] = {"declaredFeatures": ["DRAOptionalNodeOperations"]}
    if "DRADerivedAttributes" in gates or dice.chance(0.02):
        derive(dice, asked)


def derive(dice: Dice, asked: Json) -> None:
    """Derived attributes in some requests, and a constraint on one of them."""
    for claim in asked["claims"]:
        wanted = claim["spec"]["devices"]
        for request in wanted["requests"]:
            for entry in [request["exactly"]] if "exactly" in request else request["firstAvailable"]:
                if dice.chance(0.7):
                    text = dice.pick(DERIVED)
                    entry["derivedAttributes"] = [{"name": "example.com/derived", "expression": text}]
        if dice.chance(0.7):
            kind = dice.pick(("matchAttribute", "distinctAttribute"))
            wanted["constraints"] = [{kind: "example.com/derived"}]


DERIVED = (
    f"{claims.D}.?index.orValue(7)",
    f'{claims.D}.?model.orValue("none")',
    f"{claims.D}.index",
    "device.driver",
    "1.5",
)
