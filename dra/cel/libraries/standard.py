"""Operators and the functions of every CEL: arithmetic, order, `in`, `size`, and the tests on strings.

Follows cel-go common/stdlib/standard.go and common/types. Operators that need not evaluate all their operands (`&&`,
`||`, `?:`) and those that reach into values (`[]`, `.?`) are only declared: the evaluator owns them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Final

from dra.cel.errors import CelAbortError, CelRuntimeError
from dra.cel.functions import Library, Overload
from dra.cel.libraries.regex import compile_pattern
from dra.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    INT,
    STRING,
    UINT,
    Type,
    list_of,
    map_of,
    optional_of,
    type_param,
)
from dra.cel.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    CelMap,
    GrowingList,
    GrowingMap,
    UInt,
    check_hashable,
    equal,
    equality,
)

_A: Final = type_param("A")
_B: Final = type_param("B")
_LIST: Final = list_of(_A)
_MAP: Final = map_of(_A, _B)
_OPTIONAL_A: Final = optional_of(_A)
_OPTIONAL_B: Final = optional_of(_B)
_LONGEST_LIST: Final = 1_000_000  # ours: upstream joins lists without a copy, at a cost of 1
NO_OVERLOAD: Final = "no such overload"

type Binary = Callable[..., object]
type Compare = Callable[[Any, Any], bool]


def checked_int(value: int) -> int:
    """The value, if it fits in 64 bits with a sign."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise CelRuntimeError("integer overflow")


def checked_uint(value: int) -> UInt:
    """The value as uint, if it fits in 64 bits without a sign."""
    if 0 <= value <= UINT_MAX:
        return UInt(value)
    raise CelRuntimeError("unsigned integer overflow")


def _on_ints(function: Callable[[int, int], int]) -> Binary:
    return lambda left, right: checked_int(function(left, right))


def _on_uints(function: Callable[[int, int], int]) -> Binary:
    return lambda left, right: checked_uint(function(int(left), int(right)))


def _quotient(left: int, right: int) -> int:
    """Division that rounds towards zero."""
    if right == 0:
        raise CelRuntimeError("division by zero")
    size = abs(left) // abs(right)
    return size if (left < 0) == (right < 0) else -size


def _remainder(left: int, right: int) -> int:
    """What is left of `_quotient`, with the sign of the dividend. INT_MIN % -1 overflows, as it does there."""
    if right == 0:
        raise CelRuntimeError("modulus by zero")
    if left == INT_MIN and right == -1:
        raise CelRuntimeError("integer overflow")
    return left - right * _quotient(left, right)


def _divide_doubles(left: float, right: float) -> float:
    """IEEE 754: division by zero gives an infinity or NaN."""
    if right:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _arithmetic(name: str, ints: Callable[[int, int], int], doubles: Binary | None) -> tuple[Overload, ...]:
    overloads = (
        Overload(f"{name}_int64", (INT, INT), INT, _on_ints(ints)),
        Overload(f"{name}_uint64", (UINT, UINT), UINT, _on_uints(ints)),
    )
    return overloads if doubles is None else (Overload(f"{name}_double", (DOUBLE, DOUBLE), DOUBLE, doubles), *overloads)


def _negate_int(value: int) -> int:
    return checked_int(-value)


# --- order ---

_ORDERED: Final = {"bool": BOOL, "int64": INT, "uint64": UINT, "double": DOUBLE, "string": STRING, "bytes": BYTES}
_NUMBERS: Final = {"int64": INT, "uint64": UINT, "double": DOUBLE}


def _comparable(number: float) -> float:
    if number != number:  # noqa: PLR0124  # NaN
        raise CelRuntimeError("NaN values cannot be ordered")
    return number


def _on_doubles(compare: Compare) -> Binary:
    return lambda left, right: compare(_comparable(left), _comparable(right))


def _order(name: str, compare: Compare) -> tuple[Overload, ...]:
    """Overloads for operands of one type, and for numbers of two."""
    plain: dict[str, Binary] = dict.fromkeys(_ORDERED, compare)
    plain["double"] = _on_doubles(compare)
    same = [Overload(f"{name}_{each}", (kind, kind), BOOL, plain[each]) for each, kind in _ORDERED.items()]
    mixed = [
        Overload(f"{name}_{one}_{other}", (_NUMBERS[one], _NUMBERS[other]), BOOL, _mixed(one, other, compare))
        for one in _NUMBERS
        for other in _NUMBERS
        if one != other
    ]
    return (*same, *mixed)


def _mixed(one: str, other: str, compare: Compare) -> Binary:
    """Against a double, a whole number is rounded to one (common/types/compare.go)."""
    if one == "double":
        return lambda left, right: compare(_comparable(left), float(right))
    if other == "double":
        return lambda left, right: compare(float(left), _comparable(right))
    return compare


# --- equality, membership, size ---


def equals(left: object, right: object) -> bool:
    """`==`."""
    result = equality(left, right)
    if result is None:
        raise CelRuntimeError(NO_OVERLOAD)
    return result


def not_equals(left: object, right: object) -> bool:
    """`!=`: what cannot be compared is not equal (cel-go interpreter `evalNe`)."""
    return not equal(left, right)


def _in_list(element: object, values: tuple[object, ...]) -> bool:
    return any(equal(element, each) for each in values)


def _in_map(key: object, values: CelMap) -> bool:
    if len(values) > 0 and type(values) is CelMap:  # a device's maps have only strings for keys
        check_hashable(key)
    return values.has(key)


def _size(name: str, kind: Type) -> tuple[Overload, ...]:
    return (
        Overload(f"size_{name}", (kind,), INT, len),
        Overload(f"{name}_size", (kind,), INT, len, member=True),
    )


def _not(value: bool) -> bool:  # noqa: FBT001  # an operand
    return not value


# --- strings ---


def _matches(text: str, pattern: str) -> bool:
    """Searches in bytes: the library would translate its offsets, which nobody asks for."""
    return compile_pattern(pattern).search(text.encode("utf-8", "surrogatepass")) is not None


def _contains(text: str, part: str) -> bool:
    return part in text


def _on_text(function_id: str, call: Callable[[str, str], bool], *, member: bool = True) -> Overload:
    return Overload(function_id, (STRING, STRING), BOOL, call, member=member)


# --- lists and maps that comprehensions build ---


def _add_lists(left: tuple[object, ...] | GrowingList, right: tuple[object, ...]) -> object:
    if len(left) + len(right) > _LONGEST_LIST:
        raise CelAbortError(f"list of more than {_LONGEST_LIST} elements")
    if isinstance(left, tuple):
        return left + right
    left.extend(right)
    return left


def _insert(into: CelMap, key: object, value: object) -> CelMap:
    if into.has(key):
        raise CelRuntimeError(f"insert failed: key {key} already exists")
    if isinstance(into, GrowingMap):
        return into.insert(key, value)
    return CelMap.of(*into.items(), (key, value))


def _insert_all(into: CelMap, more: CelMap) -> CelMap:
    for key, value in more.items():
        into = _insert(into, key, value)
    return into


def _owned_by_evaluator(*_: object) -> object:
    raise AssertionError("the evaluator does not call this")


def _declared(name: str, params: tuple[Type, ...], result: Type) -> Overload:
    return Overload(name, params, result, _owned_by_evaluator)


# Of several overloads that fit, the first one says what an element of an empty list is: the order is upstream's.
FUNCTIONS: Final[Library] = {
    "_?_:_": (_declared("conditional", (BOOL, _A, _A), _A),),
    "_&&_": (_declared("logical_and", (BOOL, BOOL), BOOL),),
    "_||_": (_declared("logical_or", (BOOL, BOOL), BOOL),),
    "@not_strictly_false": (_declared("not_strictly_false", (BOOL,), BOOL),),
    "!_": (Overload("logical_not", (BOOL,), BOOL, _not),),
    "_==_": (Overload("equals", (_A, _A), BOOL, equals),),
    "_!=_": (Overload("not_equals", (_A, _A), BOOL, not_equals),),
    "_+_": (
        Overload("add_bytes", (BYTES, BYTES), BYTES, operator.add),
        *_arithmetic("add", operator.add, operator.add),
        Overload("add_string", (STRING, STRING), STRING, operator.add),
        Overload("add_list", (_LIST, _LIST), _LIST, _add_lists),
    ),
    "_-_": _arithmetic("subtract", operator.sub, operator.sub),
    "_*_": _arithmetic("multiply", operator.mul, operator.mul),
    "_/_": _arithmetic("divide", _quotient, _divide_doubles),
    "_%_": _arithmetic("modulo", _remainder, None),
    "-_": (
        Overload("negate_double", (DOUBLE,), DOUBLE, operator.neg),
        Overload("negate_int64", (INT,), INT, _negate_int),
    ),
    "_<_": _order("less", operator.lt),
    "_<=_": _order("less_equals", operator.le),
    "_>_": _order("greater", operator.gt),
    "_>=_": _order("greater_equals", operator.ge),
    "@in": (
        Overload("in_list", (_A, _LIST), BOOL, _in_list),
        Overload("in_map", (_A, _MAP), BOOL, _in_map),
    ),
    "_[_]": (
        _declared("index_list", (_LIST, INT), _A),
        _declared("index_map", (_MAP, _A), _B),
        _declared("optional_list_index_int", (optional_of(_LIST), INT), _OPTIONAL_A),
        _declared("optional_map_index_value", (optional_of(_MAP), _A), _OPTIONAL_B),
    ),
    "_[?_]": (
        _declared("list_optindex_optional_int", (_LIST, INT), _OPTIONAL_A),
        _declared("optional_list_optindex_optional_int", (optional_of(_LIST), INT), _OPTIONAL_A),
        _declared("map_optindex_optional_value", (_MAP, _A), _OPTIONAL_B),
        _declared("optional_map_optindex_optional_value", (optional_of(_MAP), _A), _OPTIONAL_B),
    ),
    "_?._": (_declared("select_optional_field", (DYN, STRING), optional_of(_A)),),
    "size": (*_size("bytes", BYTES), *_size("list", _LIST), *_size("map", _MAP), *_size("string", STRING)),
    "contains": (_on_text("contains_string", _contains),),
    "startsWith": (_on_text("starts_with_string", str.startswith),),
    "endsWith": (_on_text("ends_with_string", str.endswith),),
    "matches": (_on_text("matches", _matches, member=False), _on_text("matches_string", _matches)),
    "cel.@mapInsert": (
        Overload("@mapInsert_map_key_value", (_MAP, _A, _B), _MAP, _insert),
        Overload("@mapInsert_map_map", (_MAP, _MAP), _MAP, _insert_all),
    ),
}
