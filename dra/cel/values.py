"""Run-time values of CEL in Python, their types, and equality.

bool, int (64 bits), float (double), str (code points), bytes, None (null) and tuple (list) are themselves; the rest has
a class here. A library with a type of its own derives its value class from `Opaque`. Follows cel-go common/types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

from dra.cel import types
from dra.cel.errors import CelAbortError
from dra.cel.types import Type
from dra.quantity import Quantity
from dra.semver import Semver

type Known = dict[tuple[int, int], bool]

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
UINT_MAX: Final = 2**64 - 1


class UInt(int):
    """An unsigned 64-bit integer. Arithmetic gives int: wrap its result again."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A point in time: nanoseconds since 1970-01-01T00:00:00Z, within the years 1 to 9999.

    `offset` is how many seconds east of UTC it was written; printing keeps it, comparison does not look at it.
    """

    nanoseconds: int
    offset: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span of time in nanoseconds, 64 bits, signed."""

    nanoseconds: int


@dataclass(frozen=True, slots=True)
class Optional:
    """A value that may be absent (cel-go optional_type). Absent is `NONE`; a value may itself be null."""

    value: object
    present: bool = True


NONE: Final = Optional(None, present=False)


class Opaque:
    """Base of value classes that belong to one library. Subclasses say their type and define `__eq__`.

    `GO_UNHASHABLE` is the name of the Go type where that is no key of a Go map.
    """

    __slots__ = ()
    CEL_TYPE: ClassVar[Type]
    GO_UNHASHABLE: ClassVar[str] = ""


class ComputedQuantity(Quantity):
    """The result of `add` or `sub`: a pointer in Go, for which cel-go has no `==` when it stands on the right."""

    __slots__ = ()


class CelMap:
    """A map. Keys are str, int, UInt, bool or float; a number finds an equal number of another type, True is not 1.

    Inside, str and int keys are themselves, any other key is (its class, it).
    """

    __slots__ = ("entries",)

    def __init__(self, entries: Mapping[object, object]) -> None:
        """Of entries by inner key: make those with `inner_key`, or leave str and int as they are."""
        self.entries = entries

    @classmethod
    def of(cls, *pairs: tuple[object, object]) -> CelMap:
        """Of keys and values as CEL sees them; the last of equal keys wins."""
        return cls({inner_key(key): value for key, value in pairs})

    def __len__(self) -> int:
        return len(self.entries)

    def keys(self) -> Iterator[object]:
        """The keys as CEL sees them, in the order they came in (cel-go's order is random)."""
        return (key[1] if type(key) is tuple else key for key in self.entries)

    def items(self) -> Iterator[tuple[object, object]]:
        """Keys as CEL sees them, with their values."""
        return ((key[1] if type(key) is tuple else key, value) for key, value in self.entries.items())

    def find(self, key: object, default: object = None) -> object:
        """The value of the key, else the default (cel-go map.go `Find`): what `[]` and field selection see."""
        entries = self.entries
        if type(key) is str or type(key) is int:
            if key in entries:
                return entries[key]
            return default if type(key) is str else self._find_number(key, default)
        inner = (type(key), key)
        try:
            if inner in entries:
                return entries[inner]
        except TypeError:  # what cannot be hashed is no key
            return default
        return self._find_number(key, default) if isinstance(key, int | float) and type(key) is not bool else default

    def has(self, key: object) -> bool:
        """Whether the key is there: what `in` sees."""
        return CelMap.find(self, key, _MISSING) is not _MISSING

    def _find_number(self, key: object, default: object) -> object:
        """The value of an equal key of another number type: int or uint (a double is no key of its own there)."""
        assert isinstance(key, int | float)
        if isinstance(key, float) and not (INT_MIN < key < UINT_MAX and key.is_integer()):
            return default
        whole = int(key)
        for inner in (whole, (UInt, whole)):
            if inner in self.entries and (inner is not whole or whole <= INT_MAX):
                return self.entries[inner]
        return default


class GrowingList(list[object]):
    """What a comprehension has gathered so far. No expression can name it; `frozen` makes it a list."""

    __slots__ = ()

    def frozen(self) -> tuple[object, ...]:
        """As a value."""
        return tuple(self)


class GrowingMap(CelMap):
    """What a comprehension has gathered so far, like `GrowingList`."""

    __slots__ = ("_grown",)

    def __init__(self) -> None:
        """Empty."""
        self._grown: dict[object, object] = {}
        super().__init__(self._grown)

    def insert(self, key: object, value: object) -> GrowingMap:
        """Add an entry, in place."""
        self._grown[inner_key(key)] = value
        return self

    def frozen(self) -> CelMap:
        """As a value."""
        return CelMap(self._grown)


_MISSING: Final = object()


def inner_key(key: object) -> object:
    """The key under which `CelMap` keeps an entry. CelAbortError for what panics as a key of a Go map."""
    check_hashable(key)
    return key if type(key) is str or type(key) is int else (type(key), key)


def check_hashable(key: object) -> None:
    """CelAbortError for a version, bytes and what else looking for in a Go map panics."""
    name = key.GO_UNHASHABLE if isinstance(key, Opaque) else _UNHASHABLE.get(type(key))
    if name:
        raise CelAbortError(f"internal error: runtime error: hash of unhashable type {name}")


_UNHASHABLE: Final[dict[type, str]] = {Semver: "cel.Semver", bytes: "types.Bytes"}


_TYPES: Final[dict[type, Type]] = {
    bool: types.BOOL,
    int: types.INT,
    UInt: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    tuple: types.LIST,
    GrowingList: types.LIST,
    CelMap: types.MAP,
    type(None): types.NULL,
    Timestamp: types.TIMESTAMP,
    Duration: types.DURATION,
    Optional: types.OPTIONAL,
    Quantity: types.QUANTITY,
    ComputedQuantity: types.QUANTITY,
    Semver: types.SEMVER,
    Type: types.TYPE,
}


def type_of(value: object) -> Type:
    """The run-time type of a value; list and map without their parameters."""
    found = _TYPES.get(type(value))
    if found is not None:
        return found
    return types.MAP if isinstance(value, CelMap) else value.CEL_TYPE  # type: ignore[attr-defined]


def type_name(value: object) -> str:
    """The name of a value's type as cel-go prints it, e.g. int, map, google.protobuf.Duration, kubernetes.Quantity."""
    return type_of(value).name


_FLOAT_RANGES: Final[dict[type, tuple[float, float]]] = {
    int: (float(INT_MIN), float(INT_MAX)),
    UInt: (0.0, float(UINT_MAX)),
}
_NUMBERS: Final = (int, UInt, float)
_PLAIN: Final = frozenset({bool, int, UInt, float, str, bytes, type(None), Timestamp, Duration, Quantity, Semver})
_STRICT: Final = (Quantity, Semver, Opaque)


def equal(left: object, right: object) -> bool:
    """Whether CEL's `==` is true of two values: numbers by value over types, else only values of one type."""
    return equality(left, right) is True


def equality(left: object, right: object, known: Known | None = None) -> bool | None:
    """CEL's `==`; None where it is an error: quantities and other library values against another type but null.

    Elements of lists and maps that cannot be compared count as equal, as in cel-go (common/types/list.go `Equal`).
    `known` has what was found of containers on the way: one that stands in many places is compared once.
    """
    kind = type(left)
    if kind is type(right):
        return left == right if kind in _PLAIN else _equality_deep(left, right, {} if known is None else known)
    if kind in _NUMBERS and type(right) in _NUMBERS:
        return _equal_numbers(left, right)
    return _equality_over_types(left, right, {} if known is None else known)


def _equality_over_types(left: object, right: object, known: Known) -> bool | None:
    match left, right:
        case CelMap(), CelMap():
            return _equal_maps(left, right, known)
        case Quantity(), Quantity():
            return _equality_of_quantities(left, right)
    return None if isinstance(left, _STRICT) and right is not None else False


def _equality_of_quantities(left: Quantity, right: Quantity) -> bool | None:
    return None if isinstance(right, ComputedQuantity) else left == right


def _equal_numbers(left: object, right: object) -> bool:
    """Numbers of two types. Against a double, a whole number is rounded to one, as in cel-go."""
    number, other = (left, right) if isinstance(left, float) else (right, left)
    if not isinstance(number, float):
        return left == right
    assert isinstance(other, int)
    low, high = _FLOAT_RANGES[type(other)]
    return low <= number <= high and number == float(other)


def _equality_deep(left: object, right: object, known: Known) -> bool | None:
    match left, right:
        case tuple(), tuple():
            return _equal_lists(left, right, known)
        case CelMap(), CelMap():
            return _equal_maps(left, right, known)
        case Optional(present=True), Optional(present=True):
            return equality(left.value, right.value, known)
        case Type(), Type():
            return left.name == right.name
        case Quantity(), Quantity():
            return _equality_of_quantities(left, right)
    return left == right


def _equal_lists(left: tuple[object, ...], right: tuple[object, ...], known: Known) -> bool:
    if len(left) != len(right):
        return False
    pair = id(left), id(right)
    if pair not in known:
        pairs = zip(left, right, strict=True)
        known[pair] = all(equality(one, other, known) is not False for one, other in pairs)
    return known[pair]


def _equal_maps(left: CelMap, right: CelMap, known: Known) -> bool:
    if len(left) != len(right):
        return False
    pair = id(left), id(right)
    if pair not in known:
        pairs = ((value, right.find(key, _MISSING)) for key, value in left.items())
        known[pair] = all(
            other is not _MISSING and equality(value, other, known) is not False for value, other in pairs
        )
    return known[pair]
