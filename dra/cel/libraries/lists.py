"""Kubernetes' functions of lists: isSorted, sum, min, max, indexOf, lastIndexOf, includes.

Follows k8s.io/apiserver/pkg/cel/library/lists.go at version 1. What cel-go adds stands in `list_extensions`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Final

from dra.cel import types
from dra.cel.errors import CelRuntimeError
from dra.cel.functions import Library, Overload
from dra.cel.libraries.ordering import compare, is_comparable
from dra.cel.libraries.times import add_durations
from dra.cel.types import BOOL, DYN, INT, Type, list_of, type_param
from dra.cel.values import INT_MAX, INT_MIN, UINT_MAX, Duration, UInt, equal

type Values = tuple[object, ...]

_A: Final = type_param("A")
_COMPARABLE: Final = {
    "int": INT,
    "uint": types.UINT,
    "double": types.DOUBLE,
    "bool": BOOL,
    "duration": types.DURATION,
    "timestamp": types.TIMESTAMP,
    "string": types.STRING,
    "bytes": types.BYTES,
}
_ZERO: Final[dict[str, object]] = {"int": 0, "uint": UInt(0), "double": 0.0, "duration": Duration(0)}


def _no_such_overload() -> CelRuntimeError:
    return CelRuntimeError("no such overload")


def _is_sorted(values: Values) -> bool:
    if values and not is_comparable(values[0]):
        raise _no_such_overload()
    for left, right in pairwise(values):
        if not is_comparable(right):
            raise _no_such_overload()
        if compare(left, right) == 1:
            return False
    return True


def _sum(zero: object) -> Callable[[Values], object]:
    def add_up(values: Values) -> object:
        total = zero
        for value in values:
            total = _plus(total, value)
        return total

    return add_up


def _plus(left: object, right: object) -> object:
    if type(left) is not type(right):
        raise _no_such_overload()
    match left, right:
        case Duration(), Duration():
            return add_durations(left, right)
        case float(), float():
            return left + right
        case UInt(), UInt():
            if left + right > UINT_MAX:
                raise CelRuntimeError("unsigned integer overflow")
            return UInt(left + right)
        case int(), int() if INT_MIN <= left + right <= INT_MAX:
            return left + right
    raise CelRuntimeError("integer overflow")


def _extreme(name: str, worse: int) -> Callable[[Values], object]:
    def find(values: Values) -> object:
        if not values:
            raise CelRuntimeError(f"{name} called on empty list")
        best = values[0]
        for value in values:
            if not is_comparable(value):
                raise _no_such_overload()
            if compare(best, value) == worse:
                best = value
        return best

    return find


def _index_of(values: Values, wanted: object) -> int:
    return next((index for index, value in enumerate(values) if equal(value, wanted)), -1)


def _last_index_of(values: Values, wanted: object) -> int:
    return next((index for index in reversed(range(len(values))) if equal(values[index], wanted)), -1)


def _includes(target: object, wanted: object) -> bool:
    if isinstance(target, tuple):
        return any(equal(value, wanted) for value in target)
    return equal(target, wanted)


def _per_type(
    ids: str, kinds: Callable[[Type], Type], call: Callable[[str], Callable[[Values], object]]
) -> tuple[Overload, ...]:
    """One overload for each comparable type that `_COMPARABLE` names; `{}` in the id is that name."""
    return tuple(
        Overload(ids.replace("{}", name), (list_of(kind),), kinds(kind), call(name), member=True)
        for name, kind in _COMPARABLE.items()
    )


FUNCTIONS: Final[Library] = {
    "isSorted": _per_type("list_{}_is_sorted_bool", lambda _: BOOL, lambda _: _is_sorted),
    "sum": tuple(
        Overload(f"list_{name}_sum_{name}", (list_of(_COMPARABLE[name]),), _COMPARABLE[name], _sum(zero), member=True)
        for name, zero in _ZERO.items()
    ),
    "max": _per_type("list_{}_max_{}", lambda kind: kind, lambda _: _extreme("max", -1)),
    "min": _per_type("list_{}_min_{}", lambda kind: kind, lambda _: _extreme("min", 1)),
    "indexOf": (Overload("list_a_index_of_int", (list_of(_A), _A), INT, _index_of, member=True),),
    "lastIndexOf": (Overload("list_a_last_index_of_int", (list_of(_A), _A), INT, _last_index_of, member=True),),
    "includes": (Overload("list_includes_dyn_dyn", (DYN, DYN), BOOL, _includes, member=True),),
}
