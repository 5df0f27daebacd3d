"""Which names, types and literals an expression may use, one row a rule; answers are cel-go's."""

from __future__ import annotations

import pytest

from tests.dra.cel.asking import said

NAMES = (
    ("device.driver=='gpu.example.com'", "true"),
    (".device.driver == 'gpu.example.com'", "true"),
    ("[1].all(device, device == 1)", "true"),
    ("[1].all(device, .device.driver == 'gpu.example.com')", "true"),
    ("[1].all(x, .x == 1)", "does not compile"),
    (".int == int", "true"),
    ("[int].all(t, t == int)", "does not compile"),
    ("cel.bind(t, type(1), t == int)", "does not compile"),
    ("cel.bind(int, type('a'), int == string)", "false"),
    ("cel.bind(t, type('a'), int == string)", "does not compile"),
    (".double('') == 5.0", "does not compile"),
    (".duration('x') == duration('1s')", "does not compile"),
    (".matches('(', 'a')", "does not compile"),
    (".size('a') == 1", "true"),
    (".optional.of(1).hasValue()", "true"),
)

LITERALS_CHECKED = (
    ("'%d'.format([1]) == '1'", "true"),
    ("'%d'.format(['a']) == '1'", "does not compile"),
    ("'%s %s'.format([1, 'a']) == '1 a'", "true"),
    ("'%s'.format([[1, 'a']]) == '1'", "false"),
    ("duration('1s') + duration('1s') == duration('2s')", "true"),
    ("duration('x') == duration('1s')", "does not compile"),
    ("timestamp('2020-01-01T00:00:00Z') < timestamp('2021-01-01T00:00:00Z')", "true"),
    ("timestamp('2020-01-01T00:00:00Z') - timestamp('2020-01-01T00:00:00Z') == duration('0s')", "true"),
    ("'a'.matches('(')", "does not compile"),
    ("matches('(', 'a')", "does not compile"),
    ("matches('a', '(')", "does not compile"),
    ("'a'.matches(dyn('('))", "does not compile"),
    ("'a'.find('(') == ''", "does not compile"),
)

MESSAGES = (
    ("kubernetes.DRADevice{driver: 1}.driver == 'x'", "does not compile"),
    ("kubernetes.DRADevice{foo: 1}.driver == 'x'", "does not compile"),
    ("kubernetes.DRADevice{driver: 1/0 > 0 ? 'a' : 'b'}.driver == 'x' || true", "true"),
    (".kubernetes.DRADevice{}.driver == ''", "error"),
    ("Foo{} == 1", "does not compile"),
    ("a.b.Foo{x: 1,} == 1", "does not compile"),
    ("Foo{,} == 1", "does not compile"),
    ("Foo{?x: 1} == 1", "does not compile"),
    ("true ? device.driver : device.driver", "does not compile"),
    ("device.allowMultipleAllocations", "false"),
    ("device.driver", "does not compile"),
    ("null", "does not compile"),
    ("1", "does not compile"),
    ("google.protobuf.NullValue.NULL_VALUE == 0", "true"),
    ("kubernetes.DRADevice == type(1)", "does not compile"),
    ("google.protobuf.Any == type(1)", "does not compile"),
    ("net.CIDR == type(1)", "false"),
    ("kubernetes.Quantity == type(1)", "does not compile"),
)

TYPE_VALUES = (
    ("type(1) == int", "true"),
    ("type([]) == list", "true"),
    ("type({}) == map", "true"),
    ("type(null) == null_type", "true"),
    ("type(1.0) == double", "true"),
    ("type(type) == type", "true"),
    ("type(device.driver) == string", "true"),
    ("type(dyn(device)) == map", "true"),
)


@pytest.mark.parametrize(("text", "answer"), NAMES)
def test_names(text: str, answer: str | tuple[str, str]) -> None:
    assert said(text) == answer


@pytest.mark.parametrize(("text", "answer"), LITERALS_CHECKED)
def test_literals_checked(text: str, answer: str | tuple[str, str]) -> None:
    assert said(text) == answer


@pytest.mark.parametrize(("text", "answer"), MESSAGES)
def test_messages(text: str, answer: str | tuple[str, str]) -> None:
    assert said(text) == answer


@pytest.mark.parametrize(("text", "answer"), TYPE_VALUES)
def test_type_values(text: str, answer: str | tuple[str, str]) -> None:
    assert said(text) == answer
