"""Values that may be absent: making them, asking them, taking them out; the first and last element of a list.

`optMap`, `optFlatMap` and the `?` syntax belong to macros and evaluator, and so does evaluating the argument of `or`
and `orValue` only when it is needed. Follows cel-go cel/library.go `OptionalTypes`, all versions.
"""

from __future__ import annotations

from typing import Final

from dra.cel.errors import CelRuntimeError
from dra.cel.functions import Library, Overload
from dra.cel.libraries.go_time import FIRST_SECOND, SECOND
from dra.cel.types import BOOL, list_of, optional_of, type_param
from dra.cel.values import NONE, CelMap, Duration, Optional, Timestamp, type_name

type Values = tuple[object, ...]

_V: Final = type_param("V")
_OPTIONAL: Final = optional_of(_V)
_LIST: Final = list_of(_V)
_ZERO_TIME: Final = Timestamp(FIRST_SECOND * SECOND)


def _is_zero(value: object) -> bool:
    match value:
        case None:
            return True
        case bool() | int() | float() | str() | bytes() | tuple():
            return not value
        case CelMap():
            return len(value) == 0
        case Duration():
            return value.nanoseconds == 0
        case Timestamp():
            return value == _ZERO_TIME
        case _:
            return False


def _of_non_zero(value: object) -> Optional:
    return NONE if _is_zero(value) else Optional(value)


def _none() -> Optional:
    return NONE


def _value(optional: Optional) -> object:
    if not optional.present:
        raise CelRuntimeError("optional.none() dereference")
    return optional.value


def _has_value(optional: Optional) -> bool:
    return optional.present


def _or(optional: Optional, other: object) -> object:
    return optional if optional.present else other


def _or_value(optional: Optional, other: object) -> object:
    return optional.value if optional.present else other


def _first(values: Values) -> Optional:
    return Optional(values[0]) if values else NONE


def _last(values: Values) -> Optional:
    return Optional(values[-1]) if values else NONE


def _unwrap(values: Values) -> Values:
    for value in values:
        if not isinstance(value, Optional):
            raise CelRuntimeError(f"value of type {type_name(value)} is not optional")
    return tuple(value.value for value in values if isinstance(value, Optional) and value.present)


FUNCTIONS: Final[Library] = {
    "optional.of": (Overload("optional_of", (_V,), _OPTIONAL, Optional),),
    "optional.ofNonZeroValue": (Overload("optional_ofNonZeroValue", (_V,), _OPTIONAL, _of_non_zero),),
    "optional.none": (Overload("optional_none", (), _OPTIONAL, _none),),
    "value": (Overload("optional_value", (_OPTIONAL,), _V, _value, member=True),),
    "hasValue": (Overload("optional_hasValue", (_OPTIONAL,), BOOL, _has_value, member=True),),
    "or": (Overload("optional_or_optional", (_OPTIONAL, _OPTIONAL), _OPTIONAL, _or, member=True),),
    "orValue": (Overload("optional_orValue_value", (_OPTIONAL, _V), _V, _or_value, member=True),),
    "first": (Overload("list_first", (_LIST,), _OPTIONAL, _first, member=True),),
    "last": (Overload("list_last", (_LIST,), _OPTIONAL, _last, member=True),),
    "optional.unwrap": (Overload("optional_unwrap", (list_of(_OPTIONAL),), _LIST, _unwrap),),
    "unwrapOpt": (Overload("optional_unwrapOpt", (list_of(_OPTIONAL),), _LIST, _unwrap, member=True),),
}
