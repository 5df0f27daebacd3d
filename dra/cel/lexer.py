"""Splits the text of an expression into tokens. Knows no grammar; literals are decoded in `literals`.

Follows the lexer rules of cel-go parser/gen/CEL.g4: the longest token wins, then the earlier rule.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from dra.cel.errors import CelSyntaxError
from dra.cel.places import place


class Kind(Enum):
    """What sort of token it is. Keywords (`in`, `true`, `false`, `null`) and operators are symbols."""

    FLOAT = auto()
    UINT = auto()
    INT = auto()
    STRING = auto()
    BYTES = auto()
    IDENTIFIER = auto()
    ESCAPED_IDENTIFIER = auto()
    SYMBOL = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """One token: its text as written, and its offset in code points."""

    kind: Kind
    text: str
    start: int

    @property
    def end(self) -> int:
        """Offset after the last code point."""
        return self.start + len(self.text)


_ESCAPE: Final = r"""\\(?:[abfnrtv"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"""
_STRING: Final = (
    rf'(?:"""(?:{_ESCAPE}|[^\\])*?"""'
    rf"|'''(?:{_ESCAPE}|[^\\])*?'''"
    rf'|"(?:{_ESCAPE}|[^\\"\n\r])*"'
    rf"|'(?:{_ESCAPE}|[^\\'\n\r])*'"
    r'|[rR]"""[\s\S]*?"""'
    r"|[rR]'''[\s\S]*?'''"
    r'|[rR]"[^"\n\r]*"'
    r"|[rR]'[^'\n\r]*')"
)
_TOKEN: Final = re.compile(
    r"(?P<HIDDEN>(?:[\t \r\n\f]+|//[^\n]*)+)"
    r"|(?P<FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<UINT>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])"
    r"|(?P<INT>0x[0-9a-fA-F]+|[0-9]+)"
    rf"|(?P<BYTES>[bB]{_STRING})"
    rf"|(?P<STRING>{_STRING})"
    r"|(?P<KEYWORD>(?:in|true|false|null)(?![A-Za-z0-9_]))"
    r"|(?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<ESCAPED_IDENTIFIER>`[A-Za-z0-9_.\-/ ]+`)"
    r"|(?P<OPERATOR>==|!=|<=|>=|&&|\|\||[\[\]{}().,\-!?:+*/%<>])"
)
_KINDS: Final = {
    "KEYWORD": Kind.SYMBOL,
    "OPERATOR": Kind.SYMBOL,
    **{kind.name: kind for kind in Kind if kind not in (Kind.SYMBOL, Kind.END)},
}


def tokens(text: str) -> list[Token]:
    """The tokens of the text, without blanks and comments, ended by one of kind END; or CelSyntaxError."""
    found: list[Token] = []
    offset, end = 0, len(text)
    while offset < end:
        match = _TOKEN.match(text, offset)
        if match is None:
            raise _unknown(text, offset)
        group = match.lastgroup
        if group is not None and group != "HIDDEN":
            found.append(Token(_KINDS[group], match.group(), offset))
        offset = match.end()
    found.append(Token(Kind.END, "<EOF>", end))
    return found


def _unknown(text: str, offset: int) -> CelSyntaxError:
    line, column = place(text, offset)
    message = f"Syntax error: token recognition error at: {text[offset]!r}"
    return CelSyntaxError(message, line=line, column=column, rule="a token of CEL")
