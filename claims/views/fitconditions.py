"""What a condition asked and what a device has, in words: "has 79.6 GiB of memory, asked 100 GiB".

Pure. Only plain comparisons are put into words; any other condition is quoted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

from claims.refusals import quoted
from claims.wish import gib
from dra.advice.literals import Comparison, comparisons
from dra.errors import InvalidQuantityError
from dra.quantity import parse_quantity
from gpuinventory.gpuclasses import Traits

_MIB: Final = 2**20
_RELATIONS: Final = {"==": "", ">=": "", ">": "more than ", "<=": "at most ", "<": "less than "}
_PERCENT: Final = frozenset({"sharePercent", "cores"})
_ABSENT: Final = "absent"
_DRIVER: Final = re.compile(r'device\.driver == "([^"]+)"')
_OR_NOTHING: Final = re.compile(r'device\.attributes\[.+\]\.\?(\w+)\.orValue\(""\) == ("(?:[^"\\]|\\.)*")', re.DOTALL)
_HAS: Final = re.compile(r"has\(device\.(?:attributes|capacity)\[.+\]\.(\w+)\)", re.DOTALL)


def amount(name: str, text: str) -> str:
    """A quantity as people read it: memory in GiB, a share in percent, anything else as it is written."""
    if name.rpartition("/")[2] in _PERCENT:
        return f"{text} %"
    try:
        number = parse_quantity(text).value
    except InvalidQuantityError:
        return text
    return gib(number) if number >= _MIB else text


def kind_words(traits: Traits) -> str:
    """What such a device is, as far as its driver says."""
    named = (each.value for each in (traits.product, traits.profile, traits.type_) if each is not None)
    words = ", ".join((*named, *((gib(traits.memory),) if traits.memory else ())))
    return words or f"a device of {traits.driver}"


def condition_words(condition: str, values: Sequence[str]) -> str:
    """Why a condition did not hold. `values` are what it saw, each `text = value` as `dra.cel` writes them."""
    seen = [value for _, _, value in (each.partition(" = ") for each in values)]
    found = seen[-1] if seen else ""
    if (asked := _DRIVER.fullmatch(condition)) and found:
        return f"its driver is {_plain(found)}, asked {asked[1]}"
    if asked := _OR_NOTHING.fullmatch(condition):
        return _unequal(asked[1], found, _plain(asked[2]))
    if asked := _HAS.fullmatch(condition):
        return f"has no {asked[1]}"
    (comparison, *others) = comparisons(condition) or (None,)
    if comparison is not None and not others and found:
        return _compared(comparison, found)
    saw = f" ({quoted(', '.join(values))})" if values else ""
    return f"“{quoted(condition)}” is false{saw}"


def _compared(comparison: Comparison, found: str) -> str:
    asked = _RELATIONS[comparison.relation]
    if comparison.wrapper == "quantity" and found != _ABSENT:
        name = comparison.identifier
        return f"has {amount(name, found)} of {name}, asked {asked}{amount(name, str(comparison.value))}"
    return _unequal(comparison.identifier, found, f"{asked}{quoted(str(comparison.value))}")


def _unequal(name: str, found: str, asked: str) -> str:
    return f"has no {name}, asked {asked}" if found == _ABSENT else f"its {name} is {_plain(found)}, asked {asked}"


def _plain(literal: str) -> str:
    """A text without its quotes."""
    if not literal.startswith('"'):
        return quoted(literal)
    try:
        return quoted(str(json.loads(literal)))
    except ValueError:
        return quoted(literal)
