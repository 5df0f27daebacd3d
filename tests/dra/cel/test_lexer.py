"""Tokens: the longest wins, then the earlier rule; literals within their limits."""

from __future__ import annotations

import pytest

from dra.cel import CelSyntaxError
from dra.cel.lexer import Kind, tokens
from dra.cel.literals import bytes_, string


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1.5", [(Kind.FLOAT, "1.5")]),
        ("1.e5", [(Kind.INT, "1"), (Kind.SYMBOL, "."), (Kind.IDENTIFIER, "e5")]),
        ("1e5u", [(Kind.FLOAT, "1e5"), (Kind.IDENTIFIER, "u")]),
        ("0x1Fu", [(Kind.UINT, "0x1Fu")]),
        ("0xg", [(Kind.INT, "0"), (Kind.IDENTIFIER, "xg")]),
        ("a.5", [(Kind.IDENTIFIER, "a"), (Kind.FLOAT, ".5")]),
        ("inner in", [(Kind.IDENTIFIER, "inner"), (Kind.SYMBOL, "in")]),
        ("rb''", [(Kind.IDENTIFIER, "rb"), (Kind.STRING, "''")]),
        ("br'\\'", [(Kind.BYTES, "br'\\'")]),
        ('"""a"b"""', [(Kind.STRING, '"""a"b"""')]),
        ('""""', [(Kind.STRING, '""'), (Kind.STRING, '""')]),
        ('"""a', None),
        ("'a' // b\n'c'", [(Kind.STRING, "'a'"), (Kind.STRING, "'c'")]),
        ("`a.b-c/d e`", [(Kind.ESCAPED_IDENTIFIER, "`a.b-c/d e`")]),
        ("``", None),
        ("a & b", None),
        ("'a\nb'", None),
        ("'\\q'", None),
        ("é", None),
    ],
)
def test_tokens(text: str, found: list[tuple[Kind, str]] | None) -> None:
    if found is None:
        with pytest.raises(CelSyntaxError, match="token recognition error"):
            tokens(text)
    else:
        assert [(each.kind, each.text) for each in tokens(text)] == [*found, (Kind.END, "<EOF>")]


@pytest.mark.parametrize(
    ("token", "value"),
    [
        (r"'\a\b\f\n\r\t\v\\\'\"\`\?'", "\a\b\f\n\r\t\v\\'\"`?"),
        (r"'\x41\X42\u0043\U00000044\105'", "ABCDE"),
        (r"'\u00e9\xe9\351'", "ééé"),
        ("'''a\r\nb\rc'''", "a\nb\nc"),
        (r"r'\n'", "\\n"),
        ("''''''", ""),
    ],
)
def test_strings(token: str, value: str) -> None:
    assert string(token) == value


@pytest.mark.parametrize(
    ("token", "value"),
    [
        (r"b'\xff\377é'", b"\xff\xff\xc3\xa9"),
        (r"b'é\n'", b"\xc3\xa9\n"),
        (r"br'\xff'", rb"\xff"),
        ("B''", b""),
    ],
)
def test_bytes(token: str, value: bytes) -> None:
    assert bytes_(token) == value
