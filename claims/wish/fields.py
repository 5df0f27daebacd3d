"""One field of a query at a time: its value if it has one within its bounds, else a refusal is noted. Pure.

A value that is refused reads as its default, so that all that is wrong is found in one pass.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum

from claims.refusals import Code, Refusal, quoted, refuse
from claims.wish.keys import EXAMPLES, LABELS
from claims.wish.values import LEAST_MEMORY, LEAST_SHARE, MAX_COUNT, MOST_MEMORY, SHARE_STEP, WHOLE
from dra.cel import CelCompileError, compile_expression
from dra.errors import InvalidQuantityError
from dra.quantity import Quantity, parse_quantity

# A profile of MIG, or a partition of AMD: its compute and its memory mode.
_PROFILE = re.compile(
    r"(?:[1-9]c\.)?[1-9]g\.[1-9][0-9]{0,3}gb(?:[+-][a-z]{1,8}(?:\.[a-z]{1,8})*){0,2}|[a-z]{2,4}_nps[1-8]", re.ASCII
)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")  # `fromisoformat` also reads weeks and days without dashes
MAX_CEL = 10 * 1024  # bytes (resource.k8s.io/v1, CELSelectorExpressionMaxLength)
MAX_CEL_COST = 1_000_000  # as estimated (resource.k8s.io/v1, CELSelectorExpressionMaxCost)


@dataclass(frozen=True, slots=True)
class Fields:
    """The values of a query under a prefix, such as `alt.1.`; refusals are noted under their full key."""

    values: Mapping[str, str]
    prefix: str = ""
    refusals: list[Refusal] = field(default_factory=list)

    def under(self, prefix: str) -> Fields:
        """The fields of one entry of a list; its refusals are noted here too."""
        return Fields(self.values, prefix, self.refusals)

    def text(self, key: str) -> str:
        """The value, "" where there is none."""
        return self.values.get(self.prefix + key, "")

    def no(self, code: Code, key: str, **facts: object) -> None:
        """Note a refusal."""
        self.refusals.append(refuse(code, self.prefix + key, **facts))

    def lacking(self, key: str) -> bool:
        """Whether a field that must be filled is not."""
        if self.text(key):
            return False
        label, example = EXAMPLES[key]
        self.no(Code.FIELD_MISSING, key, label=label, example=example)
        return True

    def member[E: StrEnum](self, key: str, known: type[E]) -> E | None:
        """One of several words, None where none is given."""
        text = self.text(key)
        if not text or text in set(known):
            return known(text) if text else None
        self.no(Code.CHOICE_UNKNOWN, key, label=LABELS[key], value=quoted(text), known=", ".join(known))
        return None

    def number(self, key: str, least: int, most: int) -> int | None:
        """A whole number within its bounds, None where none is given."""
        text = self.text(key)
        if not text:
            return None
        number = whole_number(text, least, most)
        if number is None:
            self.no(Code.NUMBER_BOUNDS, key, label=LABELS[key], value=quoted(text), least=least, most=most)
        return number

    def count(self) -> int:
        """The number of devices, 1 where the key is absent; an emptied field is wrong."""
        text = self.values.get(self.prefix + "count", "1")
        number = whole_number(text, 1, MAX_COUNT)
        if number is None:
            self.no(Code.COUNT_BOUNDS, "count", value=quoted(text), least=1, most=MAX_COUNT)
        return number or 1

    def share(self) -> int:
        """Percent of a device."""
        text = self.text("share") or "50"
        number = whole_number(text, LEAST_SHARE, WHOLE)
        if number is None or number % SHARE_STEP:
            bounds = {"least": LEAST_SHARE, "most": WHOLE, "step": SHARE_STEP}
            self.no(Code.SHARE_BOUNDS, "share", value=quoted(text), **bounds)
        return number or WHOLE

    def memory(self) -> Quantity | None:
        """Whole bytes per device."""
        text = self.text("memory")
        if not text:
            return None
        try:
            memory = parse_quantity(text)
        except InvalidQuantityError:
            self.no(Code.MEMORY_SHAPE, "memory", value=quoted(text))
            return None
        if not LEAST_MEMORY <= memory <= MOST_MEMORY:
            self.no(Code.MEMORY_BOUNDS, "memory", value=quoted(text), least=LEAST_MEMORY, most=MOST_MEMORY)
            return None
        return Quantity.of(memory.value, memory.format)

    def profile(self) -> str:
        """The name of a MIG profile."""
        text = self.text("profile")
        if not text:
            self.no(Code.FIELD_MISSING, "profile", label=LABELS["profile"], example="1g.10gb")
        elif _PROFILE.fullmatch(text) is None:
            self.no(Code.PROFILE_SHAPE, "profile", value=quoted(text))
        return text

    def day(self, key: str) -> date | None:
        """A calendar day, None where none is given."""
        text = self.text(key)
        if not text:
            return None
        try:
            return date.fromisoformat(text if _DAY.fullmatch(text) else "")
        except ValueError:
            self.no(Code.DAY_SHAPE, key, label=LABELS[key], value=quoted(text))
            return None

    def cel(self, key: str) -> str:
        """A selector that kube-apiserver compiles for a new object."""
        text = self.text(key).replace("\r\n", "\n")
        if len(text.encode(errors="replace")) > MAX_CEL:
            self.no(Code.CEL_LONG, key, value=quoted(text), most=MAX_CEL)
            return text
        try:
            cost = compile_expression(text, environment="new").max_cost
        except CelCompileError as error:
            self.no(Code.CEL_WRONG, key, value=quoted(text), reason=quoted(str(error).rstrip(".")))
            return text
        if cost > MAX_CEL_COST:
            self.no(Code.CEL_COST, key, value=quoted(text), cost=cost, most=MAX_CEL_COST)
        return text


def whole_number(text: str, least: int, most: int) -> int | None:
    """The number, if it is one within its bounds; longer than any bound is none (and cheap to refuse)."""
    if not text.isascii() or not text.isdecimal() or len(text) > len(str(most)):
        return None
    return int(text) if least <= int(text) <= most else None
