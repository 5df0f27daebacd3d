"""Operators, one row a rule; answers are cel-go's."""

from __future__ import annotations

import pytest

from tests.dra.cel.asking import said

OPERATORS = (
    ("1 ? 2 : 3", "does not compile"),
    ("true ? 1 : 'a'", "does not compile"),
    ("true ? 1 : dyn('a')", "error"),
    ("(true ? 1 : dyn('a')) == 1", "true"),
    ("true ? true : false ? true : false", "true"),
    ("true ? false ? true : false : true", "does not compile"),
    ("1 < 2 < 3", "does not compile"),
    ("1 < 2 == true", "true"),
    ("1 == 1 == true", "true"),
    ("1 in [1] in [true]", "true"),
    ("2 - 1 - 1 == 0", "true"),
    ("2 * 3 + 4 * 5 == 26", "true"),
    ("7 % 4 * 2 == 6", "true"),
    ("true || false && false", "true"),
    ("(true || false) && false", "false"),
    ("1 + 2 == 3 // comment", "true"),
    ("/* c */ true", "does not compile"),
    ("true //", "true"),
    ("true;", "does not compile"),
    (" true", "true"),
    ("true\n&& true", "true"),
    ("dyn(optional.of(true))", "true"),
    ("dyn(optional.none())", "error"),
    ("dyn(1u)", "error"),
    ("dyn(1.5)", "error"),
    ('dyn(b"a")', "error"),
    ("dyn([])", "error"),
    ("dyn({})", "error"),
    ("dyn(null)", "error"),
    ("dyn(type(1))", "error"),
    ("dyn(timestamp(0))", "error"),
    ('dyn(duration("1s"))', "error"),
    ('device.attributes["gpu.example.com"].v', "error"),
    ('device.attributes["gpu.example.com"].model && true', "error"),
    ('true || device.attributes["gpu.example.com"].model', "true"),
    ('device.attributes["gpu.example.com"].model || true', "true"),
    ('device.attributes["gpu.example.com"].model && false', "false"),
    (
        'device.attributes["gpu.example.com"].absent == 1 || device.attributes["gpu.example.com"].index == 1',
        ("true", "error"),
    ),
)

EQUALITY = (
    ("{1: 1} == {1: dyn(1.0)}", "true"),
    ("[1] == [dyn(1.0)]", "true"),
    ("[1, 2] == [1]", "false"),
    ("dyn(1) == 1.0", "true"),
    ("dyn(1) == 1u", "true"),
    ("dyn(1) == '1'", "false"),
    ("dyn(1) != '1'", "true"),
    ("null == 1", "does not compile"),
    ("dyn(null) == 1", "false"),
    ("null == null", "true"),
    ("dyn(semver('1.0.0')) == 'a'", "error"),
    ("dyn(semver('1.0.0')) != 'a'", "true"),
    ("dyn('a') == semver('1.0.0')", "false"),
    ("dyn(semver('1.0.0')) == null", "false"),
    ("[dyn(semver('1.0.0'))] == ['a']", "true"),
    ("dyn(quantity('1')) == 1", "error"),
    ("optional.of(1) == optional.of(1)", "true"),
    ("optional.of(1) == optional.none()", "false"),
    ("optional.of(dyn(1)) == optional.of(1.0)", "true"),
    ("optional.none() == optional.none()", "true"),
)

ARITHMETIC = (
    ("9223372036854775807 + 1 > 0", "error"),
    ("-9223372036854775808 - 1 < 0", "error"),
    ("9223372036854775807 * 2 > 0", "error"),
    ("-(-9223372036854775808) > 0", "error"),
    ("-9223372036854775808 / -1 > 0", "error"),
    ("-9223372036854775808 % -1 == 0", "error"),
    ("-7 / 2 == -3", "true"),
    ("-7 % 2 == -1", "true"),
    ("7 / -2 == -3", "true"),
    ("1u - 2u > 0u", "error"),
    ("18446744073709551615u + 1u > 0u", "error"),
    ("1.0 / 0.0 > 1.0", "true"),
    ("0.0 / 0.0 == 0.0 / 0.0", "false"),
    ("0.0 / 0.0 < 1.0", "error"),
    ("1 < 0.0 / 0.0", "error"),
    ("1 / 0 == 1 || true", "true"),
    ("true || 1 / 0 == 1", "true"),
    ("1 / 0 == 1 && false", "false"),
    ("9007199254740993 == dyn(9007199254740992.0)", "true"),
    ("dyn(9223372036854775807) == 9223372036854775808.0", "true"),
    ("dyn(18446744073709551615u) == 18446744073709551616.0", "true"),
    ("dyn(-0.0) == 0", "true"),
    ("dyn(-0.0) == 0u", "true"),
    ("dyn(2.5) > 2", "true"),
    ("dyn(9223372036854775807) < 9223372036854775808.0", "false"),
)

ORDER = (
    ("'a' < 'b'", "true"),
    ("'Z' < 'a'", "true"),
    ("b'a' < b'b'", "true"),
    ("false < true", "true"),
    ("dyn([1]) < [2]", "does not compile"),
    ("[1] < [2]", "does not compile"),
    ("dyn(1) < 'a'", "error"),
    ("dyn('a') + 1 == 'a1'", "does not compile"),
    ("[1] + ['a'] == [1]", "does not compile"),
    ("[1] + dyn(['a']) == [1]", "false"),
    ("([1] + dyn(['a'])).all(x, x > 0)", "error"),
    ("'a' + 'b' == 'ab'", "true"),
    ("b'a' + b'b' == b'ab'", "true"),
    ("1 in {1: 2}", "true"),
    ("dyn(1.0) in [1]", "true"),
    ("1 in dyn(5)", "error"),
    ("'a' in 'abc'", "does not compile"),
    ("size('héllo') == 5", "true"),
    ("'héllo'.size() == 5", "true"),
    ("size(b'\\xff') == 1", "true"),
    ("size([1,2]) == 2", "true"),
    ("size({}) == 0", "true"),
    ("size(dyn(1)) == 0", "error"),
    ('dyn(b"a") in ["a"] || true', "error"),
    ('dyn(semver("1.0.0")) in ["a"] || true', "error"),
    ('dyn([1]) in ["a"]', "false"),
    ('dyn(null) in ["a"]', "false"),
    ("1/0 in []", "false"),
    ("dyn(1.0) in [1, 2]", "true"),
    ("dyn(true) in [1]", "false"),
    ('dyn(format.dns1123Label()) in ["a"]', "error"),
)


# What the checker takes for a string, a bool, an int may be of another type: dyn in a list is taken for any.
MISTAKEN = (
    ("dyn(100) > [dyn(1)].first().orValue('a')", "true"),
    ("[dyn(1)].first().orValue('a') + [dyn(1)].first().orValue('a') == dyn(2)", "true"),
    ("([dyn(1)].first().orValue('a') + [dyn(1)].first().orValue('a')).startsWith('2')", "error"),
    ("[dyn(1)].first().orValue('a').startsWith('1')", "error"),
    ("[dyn(1)].first().orValue('a').lowerAscii() == '1'", "error"),
    ("size([dyn([1, 2])].first().orValue('a')) == 2", "true"),
    ("string([dyn(3)].first().orValue(true)) == '3'", "true"),
    ("int([dyn(3)].first().orValue('5')) == 3", "true"),
    ("![dyn(1)].first().orValue(true)", "error"),
    ("-[dyn('a')].first().orValue(1) == 1", "error"),
    ("'a' in [dyn(['a'])].first().orValue({'a': 1})", "true"),
)


@pytest.mark.parametrize(("text", "answer"), MISTAKEN)
def test_values_decide_what_a_standard_function_does(text: str, answer: str) -> None:
    assert said(text) == answer


@pytest.mark.parametrize(("text", "answer"), OPERATORS)
def test_operators(text: str, answer: str | tuple[str, str]) -> None:
    assert said(text) == answer


@pytest.mark.parametrize(("text", "answer"), EQUALITY)
def test_equality(text: str, answer: str | tuple[str, str]) -> None:
    assert said(text) == answer


@pytest.mark.parametrize(("text", "answer"), ARITHMETIC)
def test_arithmetic(text: str, answer: str | tuple[str, str]) -> None:
    assert said(text) == answer


@pytest.mark.parametrize(("text", "answer"), ORDER)
def test_order(text: str, answer: str | tuple[str, str]) -> None:
    assert said(text) == answer
