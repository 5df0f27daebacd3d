"""Conversions between bool, int, uint, double, string and bytes. Those of timestamps and durations stand in `times`.

Follows `ConvertToType` in cel-go common/types, which reads text as Go's strconv does.
"""

from __future__ import annotations

import math
import re
from typing import Final

from dra.cel.errors import CelRuntimeError
from dra.cel.functions import Library, Overload
from dra.cel.libraries.go_text import general
from dra.cel.libraries.standard import checked_int, checked_uint
from dra.cel.types import BOOL, BYTES, DOUBLE, DYN, INT, STRING, UINT, type_of_type, type_param
from dra.cel.values import UInt, type_of

_A: Final = type_param("A")
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})
_INT: Final = re.compile(r"[+-]?[0-9]+")
_UINT: Final = re.compile(r"[0-9]+")
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_HEX: Final = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+")
_NOT_FINITE: Final = re.compile(r"[+-]?(?:inf|infinity)|nan", re.IGNORECASE)
_SEPARATOR: Final = re.compile(r"(?<=[0-9])_(?=[0-9])")
_HEX_SEPARATOR: Final = re.compile(r"(?<=[0-9a-fA-FxX])_(?=[0-9a-fA-F])")
_HEX_PREFIX: Final = re.compile(r"[+-]?0[xX]")
_LONGEST: Final = 20  # digits of 2^64 - 1
_TWO_TO_63: Final = 2.0**63
_TWO_TO_64: Final = 2.0**64


def identity(value: object) -> object:
    """The value itself."""
    return value


def _refused(wanted: str) -> CelRuntimeError:
    return CelRuntimeError(f"type conversion error from 'string' to '{wanted}'")


def _string_to_bool(text: str) -> bool:
    if text not in _TRUE and text not in _FALSE:
        raise _refused("bool")
    return text in _TRUE


def _digits(text: str, wanted: str) -> int:
    """The number that the text writes, or one too large for any type."""
    syntax = _INT if wanted == "int" else _UINT
    if syntax.fullmatch(text) is None:
        raise _refused(wanted)
    digits = text.lstrip("+-").lstrip("0")
    size = int(digits or "0") if len(digits) <= _LONGEST else 10**_LONGEST
    return -size if text.startswith("-") else size


def _string_to_int(text: str) -> int:
    value = _digits(text, "int")
    if not -(2**63) <= value < 2**63:
        raise _refused("int")
    return value


def _string_to_uint(text: str) -> UInt:
    value = _digits(text, "uint")
    if value >= 2**64:
        raise _refused("uint")
    return UInt(value)


def _string_to_double(text: str) -> float:
    if _NOT_FINITE.fullmatch(text):
        return float(text)
    text = (_HEX_SEPARATOR if _HEX_PREFIX.match(text) else _SEPARATOR).sub("", text)
    try:
        if _HEX.fullmatch(text):
            return float.fromhex(text)
        value = float(text) if _DECIMAL.fullmatch(text) else math.inf
    except OverflowError:
        raise _refused("double") from None
    if math.isinf(value):
        raise _refused("double")
    return value


def _double_to_int(value: float) -> int:
    if not -_TWO_TO_63 < value < _TWO_TO_63:
        raise CelRuntimeError("integer overflow")
    return int(value)


def _double_to_uint(value: float) -> UInt:
    if not 0 <= value < _TWO_TO_64:
        raise CelRuntimeError("unsigned integer overflow")
    return UInt(value)


def _int_to_uint(value: int) -> UInt:
    return checked_uint(value)


def _uint_to_int(value: UInt) -> int:
    return checked_int(int(value))


def _bool_to_string(value: bool) -> str:  # noqa: FBT001  # an operand
    return "true" if value else "false"


def _whole_to_string(value: int) -> str:
    return str(int(value))


def _bytes_to_string(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise CelRuntimeError("invalid UTF-8 in bytes, cannot convert to string") from None


def _string_to_bytes(value: str) -> bytes:
    return value.encode("utf-8", "surrogatepass")


FUNCTIONS: Final[Library] = {
    "bool": (
        Overload("bool_to_bool", (BOOL,), BOOL, identity),
        Overload("string_to_bool", (STRING,), BOOL, _string_to_bool),
    ),
    "bytes": (
        Overload("bytes_to_bytes", (BYTES,), BYTES, identity),
        Overload("string_to_bytes", (STRING,), BYTES, _string_to_bytes),
    ),
    "double": (
        Overload("double_to_double", (DOUBLE,), DOUBLE, identity),
        Overload("int64_to_double", (INT,), DOUBLE, float),
        Overload("string_to_double", (STRING,), DOUBLE, _string_to_double),
        Overload("uint64_to_double", (UINT,), DOUBLE, float),
    ),
    "int": (
        Overload("int64_to_int64", (INT,), INT, identity),
        Overload("double_to_int64", (DOUBLE,), INT, _double_to_int),
        Overload("string_to_int64", (STRING,), INT, _string_to_int),
        Overload("uint64_to_int64", (UINT,), INT, _uint_to_int),
    ),
    "string": (
        Overload("string_to_string", (STRING,), STRING, identity),
        Overload("bool_to_string", (BOOL,), STRING, _bool_to_string),
        Overload("bytes_to_string", (BYTES,), STRING, _bytes_to_string),
        Overload("double_to_string", (DOUBLE,), STRING, general),
        Overload("int64_to_string", (INT,), STRING, _whole_to_string),
        Overload("uint64_to_string", (UINT,), STRING, _whole_to_string),
    ),
    "uint": (
        Overload("uint64_to_uint64", (UINT,), UINT, identity),
        Overload("double_to_uint64", (DOUBLE,), UINT, _double_to_uint),
        Overload("int64_to_uint64", (INT,), UINT, _int_to_uint),
        Overload("string_to_uint64", (STRING,), UINT, _string_to_uint),
    ),
    "type": (Overload("type", (_A,), type_of_type(_A), type_of),),
    "dyn": (Overload("to_dyn", (_A,), DYN, identity),),
}
