"""`string.format`: clauses in a text, each replaced by one element of a list.

The rules of a clause are shared by the call and by the check of a literal call (`format_check`).
Follows cel-go ext/formatting.go at library version 2, which prints numbers for English through x/text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dra.cel import types
from dra.cel.errors import CelRuntimeError
from dra.cel.functions import Library, Overload
from dra.cel.libraries import go_text, times
from dra.cel.types import Type, list_of
from dra.cel.values import CelMap, Duration, Timestamp, UInt, type_name

_DEFAULT_PRECISION: Final = 6
_VERBS: Final = frozenset(b"sdfebxXo")
_NOT_A_NUMBER: Final = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}

WRONG_TYPE: Final = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
    "timestamps, was given ",
    "d": "decimal clause can only be used on integers, was given ",
    "f": "fixed-point clause can only be used on doubles, was given ",
    "e": "scientific clause can only be used on doubles, was given ",
    "b": "only integers and bools can be formatted as binary, was given ",
    "x": "only integers, byte buffers, and strings can be formatted as hex, was given ",
    "X": "only integers, byte buffers, and strings can be formatted as hex, was given ",
    "o": "octal clause can only be used on integers, was given ",
}


class FormatError(CelRuntimeError):
    """A clause cannot be read, has no argument, or got one of a type that it does not print."""


@dataclass(frozen=True, slots=True)
class Clause:
    """What stands after a `%`: the verb, and the digits after the point if there are any."""

    verb: str
    precision: int | None


def interpolate(text: str, size: int, render: Callable[[int, Clause], str]) -> tuple[str, int]:
    """The text with every clause replaced by `render(index, clause)`, and how many of `size` arguments it took.

    Raises FormatError, and passes on what `render` raises, at the first clause that is wrong.
    """
    pieces, used, position = [], 0, 0
    raw = text.encode("utf-8", "surrogatepass")
    while (percent := raw.find(b"%", position)) >= 0:
        pieces.append(raw[position:percent])
        if raw[percent + 1 : percent + 2] == b"%":
            pieces.append(b"%")
            position = percent + 2
            continue
        if used >= size:
            raise FormatError(f"index {used} out of range")
        clause, position = _clause(raw, percent + 1)
        pieces.append(render(used, clause).encode("utf-8", "surrogatepass"))
        used += 1
    return b"".join([*pieces, raw[position:]]).decode("utf-8", "surrogatepass"), used


def _clause(raw: bytes, start: int) -> tuple[Clause, int]:
    if start >= len(raw):
        raise FormatError("unexpected end of string")
    precision, end = _precision(raw, start)
    if raw[end] not in _VERBS:
        raise _unreadable(f'unrecognized formatting clause "{chr(raw[end])}"')
    return Clause(chr(raw[end]), precision), end + 1


def _precision(raw: bytes, start: int) -> tuple[int | None, int]:
    if raw[start] != ord("."):
        return None, start
    end = start + 1
    while end < len(raw) and raw[end : end + 1].isdigit():
        end += 1
    if end >= len(raw):
        raise _unreadable("error while parsing precision: could not find end of precision specifier")
    try:
        return go_text.parse_int(raw[start + 1 : end].decode()), end
    except ValueError as fault:
        raise _unreadable(
            f"error while parsing precision: error while converting precision to integer: {fault}"
        ) from fault


def _unreadable(reason: str) -> FormatError:
    return FormatError(f"could not parse formatting clause: {reason}")


def _format(text: object, arguments: object) -> str:
    assert isinstance(text, str)
    assert isinstance(arguments, tuple)
    return interpolate(text, len(arguments), lambda index, clause: _rendered(clause, arguments[index]))[0]


def _rendered(clause: Clause, value: object) -> str:
    try:
        return _RENDERERS[clause.verb](clause, value)
    except FormatError as fault:
        raise FormatError(f"error during formatting: {fault}") from fault


def _wrong(clause: Clause, value: object) -> FormatError:
    return FormatError(WRONG_TYPE[clause.verb] + type_name(value))


def _decimal(clause: Clause, value: object) -> str:
    if type(value) is int or type(value) is UInt:
        return str(int(value))
    raise _wrong(clause, value)


def _number(clause: Clause, value: object) -> float:
    number = _NOT_A_NUMBER.get(value) if isinstance(value, str) else value
    if type(number) is not float:
        raise _wrong(clause, value)
    return number


def _fixed(clause: Clause, value: object) -> str:
    number = _number(clause, value)
    precision = _DEFAULT_PRECISION if clause.precision is None else clause.precision
    return go_text.english_fixed(number, precision) if go_text.number_fits_format(precision) else "%!(NOVERB)"


def _scientific(clause: Clause, value: object) -> str:
    number = _number(clause, value)
    # cel-go writes the precision where Go reads a width (`%6e`), so it only pads.
    width = _DEFAULT_PRECISION if clause.precision is None else clause.precision
    return go_text.english_scientific(number, width) if go_text.number_fits_format(width) else "%!(NOVERB)"


def _binary(clause: Clause, value: object) -> str:
    if type(value) in (bool, int, UInt):
        return format(int(value), "b")  # type: ignore[call-overload]
    raise _wrong(clause, value)


def _octal(clause: Clause, value: object) -> str:
    if type(value) is int or type(value) is UInt:
        return format(int(value), "o")
    raise _wrong(clause, value)


def _hex(clause: Clause, value: object) -> str:
    if type(value) is int or type(value) is UInt:
        return format(int(value), clause.verb)
    if not isinstance(value, str | bytes):
        raise _wrong(clause, value)
    digits = (value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value).hex()
    return digits.upper() if clause.verb == "X" else digits


def _string(clause: Clause, value: object) -> str:
    match value:
        case bytes():
            return _bytes_text(value)
        case float():
            return go_text.general(value)
        case Timestamp() | Duration():
            return times.text_of(value)
        case _:
            return _nested(clause, value)


def _bytes_text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as fault:
        raise FormatError(
            'could not convert argument "invalid UTF-8 in bytes, cannot convert to string" to string'
        ) from fault


def _nested(clause: Clause, value: object) -> str:
    """What %s writes, where a list or a map writes it of its elements, but for text, numbers with a point and times."""
    if isinstance(value, tuple):
        return "[" + ", ".join(_element(clause, entry) for entry in value) + "]"
    if isinstance(value, CelMap):
        return _map_text(clause, value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | str | Type):
        return value.name if isinstance(value, Type) else str(value)
    raise _wrong(clause, value)


def _map_text(clause: Clause, value: CelMap) -> str:
    pairs = [(_key(key), _element(clause, entry)) for key, entry in value.items()]
    return "{" + ", ".join(f"{key}:{entry}" for key, entry in sorted(pairs, key=lambda pair: pair[0].encode())) + "}"


def _key(key: object) -> str:
    if isinstance(key, str):
        return go_text.quote(key)
    if isinstance(key, float):
        raise FormatError("no formatting function for map key of type double")
    return _nested(Clause("s", None), key)


def _element(clause: Clause, value: object) -> str:
    """An element inside a list or map, written so that CEL could read it."""
    match value:
        case str():
            return go_text.quote(value)
        case bytes():
            return "b" + go_text.quote(_bytes_text(value))
        case float():
            return _double_literal(value)
        case Timestamp():
            return f'timestamp("{times.text_of(value)}")'
        case Duration():
            return f'duration("{times.text_of(value)}")'
        case None | bool() | int() | tuple() | CelMap() | Type():
            return _nested(clause, value)
        case _:
            raise FormatError(f"no formatting function for {type_name(value)}")


def _double_literal(value: float) -> str:
    if value - value == 0:
        return f"{value:.{_DEFAULT_PRECISION}f}"
    return go_text.quote(go_text.general(value))


_RENDERERS: Final[dict[str, Callable[[Clause, object], str]]] = {
    "s": _string,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "x": _hex,
    "X": _hex,
    "o": _octal,
}

FUNCTIONS: Final[Library] = {
    "format": (Overload("string_format", (types.STRING, list_of(types.DYN)), types.STRING, _format, member=True),),
}
