"""Lists as sets: sets.contains, sets.equivalent, sets.intersects. Follows cel-go ext/sets.go."""

from __future__ import annotations

from typing import Final

from dra.cel.functions import Library, Overload
from dra.cel.types import BOOL, list_of, type_param
from dra.cel.values import equal

type Values = tuple[object, ...]

_T: Final = list_of(type_param("T"))


def _holds(values: Values, wanted: object) -> bool:
    return any(equal(wanted, value) for value in values)


def _contains(values: Values, wanted: Values) -> bool:
    return all(_holds(values, value) for value in wanted)


def _equivalent(left: Values, right: Values) -> bool:
    return _contains(left, right) and _contains(right, left)


def _intersects(left: Values, right: Values) -> bool:
    return any(_holds(right, value) for value in left)


FUNCTIONS: Final[Library] = {
    "sets.contains": (Overload("list_sets_contains_list", (_T, _T), BOOL, _contains),),
    "sets.equivalent": (Overload("list_sets_equivalent_list", (_T, _T), BOOL, _equivalent),),
    "sets.intersects": (Overload("list_sets_intersects_list", (_T, _T), BOOL, _intersects),),
}
