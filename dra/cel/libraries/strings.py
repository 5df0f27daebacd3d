"""Functions of strings, and `join` of lists of them. `format` stands in `formatting`.

Positions count code points. Follows cel-go ext/strings.go at version 2: there is `quote` and `join`, but no `reverse`.
"""

from __future__ import annotations

from typing import Final

from dra.cel.errors import CelRuntimeError
from dra.cel.functions import Library, Overload
from dra.cel.libraries.go_text import ESCAPES
from dra.cel.types import INT, STRING, Type, list_of
from dra.cel.values import type_name

_STRINGS: Final = list_of(STRING)
# What Go's unicode.IsSpace takes for white space (property White_Space).
_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_LOWER: Final = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_UPPER: Final = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_QUOTED: Final = str.maketrans(ESCAPES)


def _out_of_range(position: int) -> CelRuntimeError:
    return CelRuntimeError(f"index out of range: {position}")


def _char_at(text: str, position: int) -> str:
    if not 0 <= position <= len(text):
        raise _out_of_range(position)
    return text[position : position + 1]


def _index_of(text: str, wanted: str, start: int = 0) -> int:
    if start < 0:
        raise _out_of_range(start)
    if not wanted:
        return min(start, len(text))
    return text.find(wanted, start)


def _last_index_of(text: str, wanted: str) -> int:
    return text.rfind(wanted)


def _last_index_of_from(text: str, wanted: str, start: int) -> int:
    if start < 0:
        raise _out_of_range(start)
    if not wanted:
        return min(start, len(text))
    # A start past the end finds nothing, though one within the last match would still count.
    return text.rfind(wanted, 0, start + len(wanted)) if start < len(text) else -1


def _lower_ascii(text: str) -> str:
    return text.lower() if text.isascii() else text.translate(_LOWER)


def _upper_ascii(text: str) -> str:
    return text.upper() if text.isascii() else text.translate(_UPPER)


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    return text.replace(old, new, max(count, -1))


def _split(text: str, separator: str) -> tuple[str, ...]:
    return tuple(text.split(separator) if separator else text)


def _split_up_to(text: str, separator: str, count: int) -> tuple[str, ...]:
    """At most `count` pieces, the last one with the rest; 0 gives none, a negative number all."""
    if count <= 0:
        return _split(text, separator) if count else ()
    if separator:
        return tuple(text.split(separator, count - 1))
    pieces = tuple(text[: count - 1])
    return (*pieces, text[count - 1 :]) if len(text) >= count else pieces


def _substring(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    return text[start:]


def _substring_range(text: str, start: int, end: int) -> str:
    if start > end:
        raise CelRuntimeError(f"invalid substring range. start: {start}, end: {end}")
    for position in (start, end):
        if not 0 <= position <= len(text):
            raise _out_of_range(position)
    return text[start:end]


def _trim(text: str) -> str:
    return text.strip(_SPACE)


def _quote(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


def _join(pieces: tuple[object, ...], separator: str = "") -> str:
    for piece in pieces:
        if not isinstance(piece, str):
            raise CelRuntimeError(f"join: invalid input: a value of type {type_name(piece)}")
    return separator.join(pieces)  # type: ignore[arg-type]


def _member(name: str, result: Type, call: object, *params: Type) -> Overload:
    return Overload(name, params, result, call, member=True)  # type: ignore[arg-type]


FUNCTIONS: Final[Library] = {
    "charAt": (_member("string_char_at_int", STRING, _char_at, STRING, INT),),
    "indexOf": (
        _member("string_index_of_string", INT, _index_of, STRING, STRING),
        _member("string_index_of_string_int", INT, _index_of, STRING, STRING, INT),
    ),
    "lastIndexOf": (
        _member("string_last_index_of_string", INT, _last_index_of, STRING, STRING),
        _member("string_last_index_of_string_int", INT, _last_index_of_from, STRING, STRING, INT),
    ),
    "lowerAscii": (_member("string_lower_ascii", STRING, _lower_ascii, STRING),),
    "replace": (
        _member("string_replace_string_string", STRING, _replace, STRING, STRING, STRING),
        _member("string_replace_string_string_int", STRING, _replace, STRING, STRING, STRING, INT),
    ),
    "split": (
        _member("string_split_string", _STRINGS, _split, STRING, STRING),
        _member("string_split_string_int", _STRINGS, _split_up_to, STRING, STRING, INT),
    ),
    "substring": (
        _member("string_substring_int", STRING, _substring, STRING, INT),
        _member("string_substring_int_int", STRING, _substring_range, STRING, INT, INT),
    ),
    "trim": (_member("string_trim", STRING, _trim, STRING),),
    "upperAscii": (_member("string_upper_ascii", STRING, _upper_ascii, STRING),),
    "strings.quote": (Overload("strings_quote", (STRING,), STRING, _quote),),
    "join": (
        _member("list_join", STRING, _join, _STRINGS),
        _member("list_join_string", STRING, _join, _STRINGS, STRING),
    ),
}
