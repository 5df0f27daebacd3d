"""Random classes and claims: what a pod asks for, and what is in use already."""

from __future__ import annotations

from tests.oracle.asking import Json
from tests.oracle.cases import devices
from tests.oracle.cases.dice import Dice

OUR_DRIVER = "gpu.example.com"
D = f'device.attributes["{OUR_DRIVER}"]'
C = f'device.capacity["{OUR_DRIVER}"]'

# Selectors that say something about the devices of `pools`; the first ones never fail on any device.
CAREFUL = (
    f'{D}.?model.orValue("") == "H100"',
    f"{D}.?healthy.orValue(true)",
    f"{D}.?index.orValue(0) != 1",
    f'"numa" in {D} && {D}.numa == 0',
    f'has({D}.driverVersion) && {D}.driverVersion.isGreaterThan(semver("579.0.0"))',
    f'!has({C}.memory) || {C}.memory.compareTo(quantity("20Gi")) >= 0',
    "!device.allowMultipleAllocations",
    f'device.driver == "{OUR_DRIVER}"',
    "true",
)
# These meet a missing attribute or a value of another type on some devices.
CARELESS = (
    f'{D}.model == "H100"',
    f"{D}.index >= 1",
    f"{D}.healthy",
    f'{D}.model.startsWith("H")',
    f'{C}.memory.isGreaterThan(quantity("20Gi"))',
    f"{D}.numa == 0 || {D}.healthy",
    'device.attributes["resource.kubernetes.io"].pcieRoot == "pci0000:00"',
)
NOT_COMPILING = ('device.model == "H100"', "device.driver ==", '"text"')
CLASSES = {"gpu": 6.0, "any": 3.0, "h100": 1.5, "shared": 1.0, "careless": 0.5, "broken": 0.05, "gone": 0.05}
ATTRIBUTES = tuple(f"{OUR_DRIVER}/{name}" for name in ("model", "numa", "index", "driverVersion", "tags", "healthy"))
ROOT = "resource.kubernetes.io/pcieRoot"
AMOUNTS = {"memory": ("1Gi", "3Gi", "5Gi", "8Gi", "12Gi", "20Gi", "0", "1000M"), "cores": ("1", "3", "600m", "5")}
ODD_AMOUNTS = ({"memory": "-1"}, {"absent": "1"}, {f"{OUR_DRIVER}/memory": "1Gi"}, {"memory": "100Gi"})


def classes(dice: Dice) -> list[Json]:
    """All classes that claims may name but one; some with configuration."""
    selectors = {
        "gpu": [f'device.driver == "{OUR_DRIVER}"'],
        "any": [],
        "h100": [CAREFUL[0]],
        "shared": ["device.allowMultipleAllocations"],
        "careless": [dice.pick(CARELESS)],
        "broken": [dice.pick(NOT_COMPILING)],
    }
    made = []
    for name, texts in selectors.items():
        spec: Json = {"selectors": [selector(text) for text in texts]} if texts else {}
        if dice.chance(0.25):
            spec["config"] = [configuration(f"class {name} {number}") for number in range(dice.number(1, 2))]
        made.append({"metadata": {"name": name}, "spec": spec})
    return made


def selector(text: str) -> Json:
    return {"cel": {"expression": text}}


def configuration(origin: str) -> Json:
    return {"opaque": {"driver": OUR_DRIVER, "parameters": {"from": origin}}}


def claim(dice: Dice, number: int, *, fancy: bool) -> Json:
    """A claim of one to three requests; `fancy` ones are asked for much at once."""
    count = dice.weighted({1: 5.0, 2: 3.0, 3: 1.0}) if fancy else 1
    asked = [request(dice, f"r{index}") for index in range(count)]
    wanted: Json = {"requests": asked}
    names = [entry["name"] for entry in asked] + [
        f"{entry['name']}/{alternative['name']}" for entry in asked for alternative in entry.get("firstAvailable", ())
    ]
    if dice.chance(0.35):
        wanted["constraints"] = [constraint(dice, names) for _ in range(dice.weighted({1: 5.0, 2: 1.0}))]
    if dice.chance(0.25):
        wanted["config"] = [claim_configuration(dice, names, index) for index in range(dice.number(1, 2))]
    return {"metadata": {"namespace": "default", "name": f"claim-{number}"}, "spec": {"devices": wanted}}


def request(dice: Dice, name: str) -> Json:
    if dice.chance(0.2):
        count = dice.weighted({1: 1.0, 2: 4.0, 3: 1.0})
        alternatives = [{"name": f"s{index}"} | exactly(dice, sub=True) for index in range(count)]
        return {"name": name, "firstAvailable": alternatives}
    return {"name": name, "exactly": exactly(dice, sub=False)}


def exactly(dice: Dice, *, sub: bool) -> Json:
    """One request or, with `sub`, one alternative, which cannot have admin access."""
    made: Json = {"deviceClassName": dice.weighted(CLASSES)}
    if dice.chance(0.12):
        made["allocationMode"] = "All"
    elif dice.chance(0.4):
        made["count"] = dice.weighted({1: 2.0, 2: 4.0, 3: 1.5, 33: 0.02})
    if dice.chance(0.3):
        texts = CARELESS if dice.chance(0.25) else CAREFUL
        made["selectors"] = [selector(text) for text in dice.some(texts, 1, 2)]
    if dice.chance(0.3):
        made["tolerations"] = [toleration(dice) for _ in range(dice.weighted({1: 4.0, 2: 1.0}))]
    if dice.chance(0.3):
        made["capacity"] = {"requests": amounts(dice)}
    if not sub and dice.chance(0.1):
        made["adminAccess"] = True
    return made


def toleration(dice: Dice) -> Json:
    """Every second one tolerates everything, the others one key, value or effect."""
    if dice.chance(0.5):
        return {"operator": "Exists"}
    made: Json = {}
    if dice.chance(0.5):
        made["operator"] = dice.pick(("Exists", "Exists", "Equal"))
    if dice.chance(0.5):
        made["key"] = dice.pick(devices.TAINT_KEYS)
    if dice.chance(0.3) and made.get("operator") != "Exists":
        made["value"] = dice.pick(("yes", "no"))
    if dice.chance(0.5):
        made["effect"] = dice.pick(("NoSchedule", "NoExecute"))
        if made["effect"] == "NoExecute" and dice.chance(0.3):
            made["tolerationSeconds"] = 60
    return made


def amounts(dice: Dice) -> Json:
    if dice.chance(0.05):
        return dict(dice.pick(ODD_AMOUNTS))
    names = ["memory"] if dice.chance(0.85) else dice.some(("memory", "cores"), 1, 2)
    return {name: dice.pick(AMOUNTS[name]) for name in names}


def constraint(dice: Dice, names: list[str]) -> Json:
    made: Json = {}
    if dice.chance(0.5):
        made["requests"] = dice.some(names, 1, len(names))
    attribute = ROOT if dice.chance(0.3) else dice.pick(ATTRIBUTES)
    return made | {dice.pick(("matchAttribute", "distinctAttribute")): attribute}


def claim_configuration(dice: Dice, names: list[str], index: int) -> Json:
    chosen = {"requests": dice.some(names, 1, len(names))} if dice.chance(0.7) else {}
    return chosen | configuration(f"claim {index}")


def allocated(dice: Dice, slices: list[Json]) -> list[Json]:
    """Claims that hold some of the devices in those slices: whole, in shares, with admin access, or gone meanwhile."""
    results: list[Json] = []
    for piece in slices:
        spec = piece["spec"]
        for device in spec.get("devices", ()):
            place = {"request": "r", "driver": spec["driver"], "pool": spec["pool"]["name"], "device": device["name"]}
            results += [place | held for held in holdings(dice, device)]
            if dice.chance(0.01):
                results.append(place | {"device": "gone"})
    return [
        {
            "metadata": {"namespace": "used", "name": f"claim-{number}"},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "any"}}]}},
            "status": {"allocation": {"devices": {"results": [result]}}},
        }
        for number, result in enumerate(results)
    ]


def holdings(dice: Dice, device: Json) -> list[Json]:
    if device.get("allowMultipleAllocations"):
        if not dice.chance(0.35):
            return []
        return [share(dice, device, number) for number in range(dice.number(1, 2))]
    if not dice.chance(0.15):
        return []
    return [{"adminAccess": True}] if dice.chance(0.15) else [{}]


def share(dice: Dice, device: Json, number: int) -> Json:
    """A share with a quarter of each capacity, rarely one without a share identity, which takes all."""
    made: Json = {} if dice.chance(0.05) else {"shareID": f"share-{number}"}
    consumed = {name: quarter(entry["value"]) for name, entry in device.get("capacity", {}).items()}
    return made | ({"consumedCapacity": consumed} if consumed else {})


def quarter(value: str) -> str:
    number = value.removesuffix("Gi")
    return f"{max(1, int(number) // 4)}{value[len(number) :]}"
