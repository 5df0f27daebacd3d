"""Random expressions: type-directed ones of the grammar, and real selectors with something changed."""

from __future__ import annotations

import re

from tests.oracle.cases.dice import Dice
from tests.oracle.cases.grammar import LEAVES, LITERALS, TEMPLATES

HOLE = re.compile(r"<([a-z0-9 ]+)>|@([a-z]+):([a-z]+)")
TOKEN = re.compile(r'"[^"]*"|\'[^\']*\'|\w+|[^\w\s"\']{1,2}|\s+')
WRONG_TYPE, ATTRIBUTE_INSTEAD = 0.012, 0.05
# Texts that an attribute's value may stand in for, where the environment takes it as dyn.
LOOSE = ("bool", "int", "double", "string", "semver", "strings", "ints")

SUBJECTS = tuple((kind, text) for kind, texts in TEMPLATES.items() for text in texts if "(" in text and kind != "named")

REAL = (
    'device.driver == "gpu.example.com"',
    'device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].model == "H100"',
    'device.attributes["gpu.example.com"].model.lowerAscii().matches("^.*h100.*$")',
    'device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0',
    'device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("10Gi")) && !device.allowMultipleAllocations',
    'device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("579.0.0"))',
    'device.attributes["gpu.example.com"].index in [0, 1, 2]',
    'device.attributes["gpu.example.com"].index < 4 || device.attributes["gpu.example.com"].numa == 0',
    '"model" in device.attributes["gpu.example.com"] && device.attributes["gpu.example.com"].model.startsWith("H")',
    'has(device.attributes["gpu.example.com"].healthy) && device.attributes["gpu.example.com"].healthy',
    'device.attributes["gpu.example.com"].?model.orValue("none") in ["H100", "A100"]',
    'device.attributes["resource.kubernetes.io"].pcieRoot == "pci0000:00"',
    'device.attributes["gpu.example.com"].tags.exists(t, t == "nvlink")',
    'device.attributes["gpu.example.com"].tags.includes("nvlink")',
    'cel.bind(a, device.attributes["gpu.example.com"], a.model == "H100" && a.index >= 0)',
    'device.attributes["gpu.example.com"].all(k, k != "absent")',
    '["H100", "A100"].exists(m, device.attributes["gpu.example.com"].model.contains(m))',
    'device.attributes["gpu.example.com"].uuid.matches("^GPU-[0-9a-f-]+$") ? true : device.driver.endsWith(".com")',
    'int(device.attributes["gpu.example.com"].index) % 2 == 0 && quantity("1Gi").isLessThan(quantity("2Gi"))',
    'device.attributes["gpu.example.com"].model.split("-").size() == 1 && sets.contains([1, 2], [1])',
)


def expression(dice: Dice) -> str:
    """One expression: two of three are made from the grammar, the others are real ones, mostly changed.

    Of those from the grammar every second one is about one function, each as often as any other.
    """
    if dice.chance(0.35):
        return Maker(dice).about(*dice.pick(SUBJECTS))
    if dice.chance(0.5):
        return Maker(dice).make("bool", dice.weighted({1: 2.0, 2: 4.0, 3: 3.0, 4: 1.0}))
    text = dice.pick(REAL)
    for _ in range(dice.weighted({0: 1.0, 1: 4.0, 2: 2.0, 3: 1.0})):
        text = changed(dice, text)
    return text


def changed(dice: Dice, text: str) -> str:
    """One token less, twice, from another selector, or of another value."""
    tokens = TOKEN.findall(text)
    place = dice.number(0, len(tokens) - 1)
    kind = dice.weighted({"drop": 0.6, "double": 0.3, "foreign": 2.0, "value": 5.0})
    if kind == "value":
        places = [number for number, token in enumerate(tokens) if token[0] in "\"'0123456789" or token == "true"]
        place = dice.pick(places) if places else place
        tokens[place] = dice.pick(LITERALS[dice.weighted({"string": 3, "int": 2, "double": 1, "bool": 1, "regex": 1})])
    elif kind == "foreign":
        like = [token for token in TOKEN.findall(dice.pick(REAL)) if sort_of(token) == sort_of(tokens[place])]
        like += [tokens[place]]
        tokens[place] = dice.pick(like)
    else:
        tokens[place] *= 0 if kind == "drop" else 2
    return "".join(tokens) or "true"


def sort_of(token: str) -> str:
    """Texts are put in place of texts, words in place of words, signs in place of signs."""
    return "text" if token[0] in "\"'" else "word" if token[0].isalnum() else "sign"


class Maker:
    """Fills templates. Keeps which variables are in scope."""

    def __init__(self, dice: Dice) -> None:
        self._dice = dice
        self._scope: list[tuple[str, str]] = []

    def make(self, kind: str, depth: int) -> str:
        """An expression of that type, at most `depth` templates deep."""
        dice = self._dice
        if kind in LOOSE and dice.chance(ATTRIBUTE_INSTEAD):
            kind = "dyn"
        if kind in LOOSE and dice.chance(WRONG_TYPE):
            kind = dice.pick(LOOSE)
        if (variables := [name for name, of in self._scope if of == kind]) and dice.chance(0.5):
            return dice.pick(variables)
        if depth <= 0 or kind not in TEMPLATES:
            return dice.pick(LEAVES.get(kind) or LITERALS[kind])
        if kind in LITERALS and dice.chance(0.25):
            return dice.pick(LITERALS[kind])
        return self._fill(dice.pick(TEMPLATES[kind]), depth - 1)

    def about(self, kind: str, template: str) -> str:
        """An expression around that template."""
        text = self._fill(template, self._dice.number(0, 2))
        if kind == "bool":
            return text
        return f"{text}.hasValue()" if kind == "optdyn" else f"{text} == {self.make(kind, 1)}"

    def _fill(self, template: str, depth: int) -> str:
        before = len(self._scope)

        def fill(match: re.Match[str]) -> str:
            if match[1]:
                return self.make(match[1], depth)
            name = f"{match[2]}{len(self._scope)}" if self._dice.chance(0.9) else match[2]
            self._scope.append((name, match[3]))
            return name

        text = HOLE.sub(fill, template)
        del self._scope[before:]
        return text
