"""Decodes literals: numbers within their range, strings and bytes with their escapes.

Follows cel-go parser/unescape.go and the visitors of literals in parser/parser.go. Faults are ValueError with cel-go's
text; the parser adds the place.
"""

from __future__ import annotations

import math
import re
from typing import Final

from dra.cel.values import INT_MAX, INT_MIN, UINT_MAX, UInt

_ESCAPE: Final = re.compile(
    r"\\(?:[xX]([0-9a-fA-F]{2})|(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL
)
_SIMPLE: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def integer(text: str, *, negative: bool = False) -> int:
    """A signed literal, decimal or 0x."""
    value = _digits(text) * (-1 if negative else 1)
    if not INT_MIN <= value <= INT_MAX:
        raise ValueError("invalid int literal")
    return value


def unsigned(text: str) -> UInt:
    """An unsigned literal with its u."""
    value = _digits(text[:-1])
    if value > UINT_MAX:
        raise ValueError("invalid uint literal")
    return UInt(value)


def double(text: str, *, negative: bool = False) -> float:
    """A floating-point literal; one beyond the range of a double is refused."""
    value = float(text)
    if math.isinf(value):
        raise ValueError("invalid double literal")
    return -value if negative else value


def string(token: str) -> str:
    """The value of a string token, quotes and prefix included in the token."""
    raw, body = _body(token)
    return body if raw or "\\" not in body else _ESCAPE.sub(_character, body)


def bytes_(token: str) -> bytes:
    """The value of a bytes token: a hex or octal escape is a byte, other characters are their UTF-8."""
    raw, body = _body(token[1:])
    if raw or "\\" not in body:
        return _utf8(body)
    parts: list[bytes] = []
    end = 0
    for match in _ESCAPE.finditer(body):
        parts += [_utf8(body[end : match.start()]), _byte(match)]
        end = match.end()
    return b"".join([*parts, _utf8(body[end:])])


def _digits(text: str) -> int:
    if text.startswith("0x"):
        return int(text, 16)
    digits = text.lstrip("0")
    return int(digits or "0") if len(digits) <= len(str(UINT_MAX)) else UINT_MAX + 1


def _body(token: str) -> tuple[bool, str]:
    """Whether the string is raw, and what stands between the quotes, with line ends as line feeds."""
    token = token.replace("\r\n", "\n").replace("\r", "\n")
    raw = token[0] in "rR"
    token = token[1:] if raw else token
    quote = 3 if len(token) >= 6 and token.startswith(('"""', "'''")) else 1
    return raw, token[quote:-quote]


def _character(match: re.Match[str]) -> str:
    two, unicode_, octal, simple = match.groups()
    if simple is not None:
        return _SIMPLE.get(simple, simple)
    code = int(octal, 8) if octal is not None else int(two or unicode_[1:], 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise ValueError("invalid unicode code point")
    return chr(code)


def _byte(match: re.Match[str]) -> bytes:
    two, unicode_, octal, simple = match.groups()
    if unicode_ is not None:
        raise ValueError("unable to unescape string")
    if simple is not None:
        return _utf8(_SIMPLE.get(simple, simple))
    return bytes([int(two, 16) if octal is None else int(octal, 8)])


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
