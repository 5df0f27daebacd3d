"""The grammar of CEL, one row a rule; answers are cel-go's."""

from __future__ import annotations

import pytest

from tests.dra.cel.asking import said

SYNTAX = (
    ("--1 == 1", "true"),
    ("---1 == -1", "true"),
    ("- - 1 == 1", "true"),
    ("!!true", "true"),
    ("!!!true", "false"),
    ("!-1 == 1", "does not compile"),
    ("-!true", "does not compile"),
    ("-1u == 1u", "does not compile"),
    ("-9223372036854775808 < 0", "true"),
    ("9223372036854775808 > 0", "does not compile"),
    ("--9223372036854775808 > 0", "does not compile"),
    ("-0x8000000000000000 < 0", "true"),
    ("0xFFFFFFFFFFFFFFFFu > 0u", "true"),
    ("1e400 > 0.0", "does not compile"),
    (".5 == 0.5", "true"),
    ("1.e5 == 1", "does not compile"),
    ("1.5.5 == 1", "does not compile"),
    ("-.5 == -0.5", "true"),
    ("- .5 == -0.5", "true"),
    ("\"a\" 'b' == 'ab'", "does not compile"),
    ("'\\x41\\u0042\\U00000043\\101' == 'ABCA'", "true"),
    ("'\\ud800' == 'a'", "does not compile"),
    ("'\\U00110000' == 'a'", "does not compile"),
    ("b'\\xff\\377' == b'\\xff\\xff'", "true"),
    ("b'\\u0041' == b'A'", "does not compile"),
    ("b'é' == b'\\xc3\\xa9'", "true"),
    ("'\\400' == 'a'", "does not compile"),
    ("'\\q' == 'q'", "does not compile"),
    ("r'\\q' == '\\\\q'", "true"),
    ('R"a" == "a"', "true"),
    ("rb'a' == b'a'", "does not compile"),
    ("br'\\x' == b'\\\\x'", "true"),
    ("bR'a' == b'a'", "true"),
    ("'''a'b''' == \"a'b\"", "true"),
    ('"""a"b""" == \'a"b\'', "true"),
    ('""""a""" == \'"a\'', "true"),
    ("'''''' == ''", "true"),
    ("\"a\\nb\" == 'a\\nb'", "true"),
    ("true.foo", "does not compile"),
    ("in == 1", "does not compile"),
    ("a.in == 1", "does not compile"),
    ("{}.for == 1", "error"),
    ("{'for': 1}.for == 1", "true"),
    ("{'a-b': 1}.`a-b` == 1", "true"),
    ("{'a b': 1}.`a b` == 1", "true"),
    ("`device`.driver == 'x'", "does not compile"),
    ("{'x': 1}.`x`() == 1", "does not compile"),
    ("{'a': 1}.?a.orValue(2) == 1", "true"),
    ("{'a': 1}.?b.orValue(2) == 2", "true"),
    ("{'a': 1}[?'a'].orValue(2) == 1", "true"),
    ("[1][?0].orValue(2) == 1", "true"),
    ("[1][?5].orValue(2) == 2", "true"),
    ("[?optional.of(1), ?optional.none()] == [1]", "true"),
    ("{?'a': optional.of(1), ?'b': optional.none()} == {'a': 1}", "true"),
    ("[?1] == [1]", "does not compile"),
    ("{?'a': 1} == {'a': 1}", "does not compile"),
)


@pytest.mark.parametrize(("text", "answer"), SYNTAX)
def test_syntax(text: str, answer: str | tuple[str, str]) -> None:
    assert said(text) == answer
