"""cel-go's functions of lists: slice, flatten, sort, reverse, distinct, lists.range, and what `sortBy` expands to.

Follows cel-go ext/lists.go at version 3. The macro `sortBy` itself belongs to the macros.
"""

from __future__ import annotations

from typing import Final

from dra.cel import types
from dra.cel.errors import CelRuntimeError
from dra.cel.functions import Library, Overload
from dra.cel.libraries.go_sort import sorted_indices
from dra.cel.libraries.ordering import compare, is_comparable
from dra.cel.types import DYN, INT, list_of, type_param
from dra.cel.values import INT_MAX, equal, type_name, type_of

type Values = tuple[object, ...]

_T: Final = list_of(type_param("T"))
_SORTABLE: Final = (
    INT,
    types.UINT,
    types.DOUBLE,
    types.BOOL,
    types.DURATION,
    types.TIMESTAMP,
    types.STRING,
    types.BYTES,
)
_LARGEST_RANGE: Final = 1_000_000
_HASHED: Final = frozenset({int, bool, str, bytes})


def _slice(values: Values, start: int, end: int) -> Values:
    where = f"cannot slice({start}, {end}), "
    if start < 0 or end < 0:
        raise CelRuntimeError(where + "negative indexes not supported")
    if start > end:
        raise CelRuntimeError(where + "start index must be less than or equal to end index")
    if end > len(values):
        raise CelRuntimeError(where + f"list is length {len(values)}")
    return values[start:end]


def _flatten(values: Values) -> Values:
    """Lists inside the list replaced by their elements."""
    if not isinstance(values, tuple):
        raise CelRuntimeError(f"no such overload: {type_name(values)}.flatten()")
    return _flatten_by(values, 1)


def _flatten_by(values: Values, depth: object) -> Values:
    if not isinstance(values, tuple) or type(depth) is not int:
        raise CelRuntimeError(f"no such overload: {type_name(values)}.flatten({type_name(depth)})")
    if depth < 0:
        raise CelRuntimeError("level must be non-negative")
    flat = values
    for _ in range(min(depth, INT_MAX)):
        if not any(isinstance(value, tuple) for value in flat):
            break
        flat = tuple(inner for value in flat for inner in (value if isinstance(value, tuple) else (value,)))
    return flat


def _sort(values: Values) -> Values:
    if not isinstance(values, tuple):
        raise CelRuntimeError("no such overload: sort")
    return _sort_by_keys(values, values)


def _sort_by_keys(values: Values, keys: Values) -> Values:
    """The values in the order of their keys, which must be of one comparable type."""
    if not isinstance(values, tuple):
        raise CelRuntimeError("no such overload: @sortByAssociatedKeys")
    if len(values) != len(keys):
        raise CelRuntimeError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, "
            f"but got {len(values)} and {len(keys)} elements respectively"
        )
    if not values:
        return values
    if not is_comparable(keys[0]):
        raise CelRuntimeError("list elements must be comparable")
    if len(keys) > 1 and any(type_of(key) != type_of(keys[0]) for key in keys):
        raise CelRuntimeError("list elements must have the same type")
    if values is keys and type(keys[0]) in _HASHED:
        return tuple(sorted(keys))  # type: ignore[type-var]
    return tuple(
        values[index] for index in sorted_indices(len(keys), lambda left, right: compare(keys[left], keys[right]) == -1)
    )


def _range(size: int) -> Values:
    if size < 0:
        raise CelRuntimeError(f"lists.range: size must be non-negative, got {size}")
    if size > _LARGEST_RANGE:
        raise CelRuntimeError(f"lists.range: size {size} exceeds maximum allowed ({_LARGEST_RANGE})")
    return tuple(range(size))


def _reverse(values: Values) -> Values:
    return values[::-1]


def _distinct(values: Values) -> Values:
    if values and all(type(value) is type(values[0]) for value in values) and type(values[0]) in _HASHED:
        return tuple(dict.fromkeys(values))
    unique: list[object] = []
    for value in values:
        if not any(equal(value, other) for other in unique):
            unique.append(value)
    return tuple(unique)


FUNCTIONS: Final[Library] = {
    "slice": (Overload("list_slice", (_T, INT, INT), _T, _slice, member=True),),
    "flatten": (
        Overload("list_flatten", (list_of(_T),), _T, _flatten, member=True, guarded=False),
        Overload("list_flatten_int", (list_of(DYN), INT), list_of(DYN), _flatten_by, member=True, guarded=False),
    ),
    "sort": tuple(
        Overload(f"list_{kind.name}_sort", (list_of(kind),), list_of(kind), _sort, member=True, guarded=False)
        for kind in _SORTABLE
    ),
    "@sortByAssociatedKeys": tuple(
        Overload(
            f"list_{kind.name}_sortByAssociatedKeys", (_T, list_of(kind)), _T, _sort_by_keys, member=True, guarded=False
        )
        for kind in _SORTABLE
    ),
    "lists.range": (Overload("lists_range", (INT,), list_of(INT), _range),),
    "reverse": (Overload("list_reverse", (_T,), _T, _reverse, member=True),),
    "distinct": (Overload("list_distinct", (_T,), _T, _distinct, member=True),),
}
