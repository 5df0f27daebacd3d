"""Fields, keys, has() and optional selection, one row a rule; answers are cel-go's."""

from __future__ import annotations

import pytest

from tests.dra.cel.asking import said

SELECTION = (
    ("true ? has({'a': {'b': 1}}.?c.b) : false", "error"),
    ("true ? has({'a': {'b': 1}}.?a.b) : false", "error"),
    ("true ? has({'a': {'b': 1}}.a.c) : false", "false"),
    ("(true ? has({'a': {'b': 1}}.?a.b) : false) || true", "true"),
    ("true ? !has({'a': {'b': 1}}.?c.b) : false", "true"),
    ("has(device.driver)", "true"),
    ("has(device.attributes)", "true"),
    ("has(device.attributes.absent)", "true"),
    ("has(device.attributes.absent.foo)", "false"),
    ("has({'a': 1}.a)", "true"),
    ("has({'a': 1}.b)", "false"),
    ("has(dyn(1).a)", "false"),
    ("has(dyn([1]).a)", "error"),
    ("has([1].a)", "does not compile"),
    ("has(a)", "does not compile"),
    ("has(1)", "does not compile"),
    ("has({'a': {'b': 1}}.a.b)", "true"),
    ("has(has({'a': 1}.a))", "true"),
    ("has({'a': 1}.?a)", "does not compile"),
    ("has({'a': 1}.?a.b)", "does not compile"),
    ("has({'a': {'b': 1}}.?a.b)", "true"),
    ("has({'a': {'b': 1}}.?c.b)", "false"),
    ('has(device.attributes["gpu.example.com"].model)', ("true", "false")),
    ('has(device.attributes["gpu.example.com"].model.foo)', ("false", "error")),
    ('has(device.attributes["gpu.example.com"].nope.foo)', "error"),
    ('device.attributes["gpu.example.com"].?nope.foo.hasValue()', "false"),
    ("device.attributes.?absent.foo.hasValue()", "false"),
    ("device.attributes[\"gpu.example.com\"].l.exists(x, x == 'a')", ("true", "error")),
    ("device.attributes[\"gpu.example.com\"].l[0] == 'a'", ("true", "error")),
    ("device.attributes[\"gpu.example.com\"].l[2] == 'a'", "error"),
    ("device.attributes[\"gpu.example.com\"].l[dyn('a')] == 'a'", "error"),
    ("device.attributes[\"gpu.example.com\"].l[1.0] == 'b'", ("true", "error")),
    ("device.attributes[\"gpu.example.com\"].l[1u] == 'b'", ("true", "error")),
    ("device.attributes[\"gpu.example.com\"].l[1.5] == 'b'", "error"),
    ('device.attributes["gpu.example.com"].l[?7].hasValue()', ("false", "error")),
    ('device.attributes["gpu.example.com"][1] == 1', "does not compile"),
    ('device.attributes["gpu.example.com"][dyn(1)] == 1', "error"),
    ("device.attributes[dyn(1)] == {}", "true"),
    ("device.attributes[dyn(null)] == {}", "does not compile"),
)

KEYS = (
    ("{1: 'a'}[1.0] == 'a'", "does not compile"),
    ("{1: 'a'}[dyn(1.0)] == 'a'", "true"),
    ("{1: 'a'}[dyn(1u)] == 'a'", "true"),
    ("{1u: 'a'}[dyn(1)] == 'a'", "true"),
    ("{1.5: 'a'}[1.5] == 'a'", "true"),
    ("{true: 'a'}[true] == 'a'", "true"),
    ("{true: 'a'}[dyn(1)] == 'a'", "error"),
    ("{[1]: 'a'}[[1]] == 'a'", "does not compile"),
    ("{null: 'a'}[null] == 'a'", "does not compile"),
    ("{1: 'a', 1: 'b'} == {1: 'b'}", "true"),
    ("{1: 'a', 2: 'b'}.size() == 2", "true"),
    ('dyn(semver("1.0.0")) in {"a": 1} || true', "error"),
    ('{dyn(semver("1.0.0")): 1} == {} || true', "error"),
    ('dyn(b"1") in {dyn(1):1} || true', "error"),
    ('dyn(quantity("1")) in {"a": 1} || true', "true"),
    ('dyn([1]) in {"a": 1} || true', "true"),
    ('dyn(semver("1.0.0")) in device.attributes["gpu.example.com"]', "false"),
)

DEVICES = (
    ("dyn(device) == device", "true"),
    ("dyn(device).driver == 'gpu.example.com'", "true"),
    ("dyn(device).size() == 4", "true"),
    ("dyn(device).attributes.absent == {}", "true"),
    ("optional.none()[?device.attributes['gpu.example.com'].absent].hasValue()", "false"),
    (
        "device.attributes['gpu.example.com'].?absent[device.attributes['gpu.example.com'].absent].hasValue()",
        "false",
    ),
    ("dyn(device).attributes['gpu.example.com'].?model.orValue('x') == 'H100'", ("true", "false")),
    ("device.attributes == device.attributes", "true"),
    ("device.attributes.size() == 1", ("true", "false")),
    ("device.attributes.map(d, d) == ['gpu.example.com']", ("true", "false")),
    ("device.attributes.all(d, m, m.size() > 0)", "true"),
    ('device.capacity["gpu.example.com"].memory', "does not compile"),
    ('device.capacity["gpu.example.com"].?memory.hasValue()', ("true", "false")),
    ("device.capacity[\"gpu.example.com\"].map(k, k) == ['memory']", ("true", "false")),
)


@pytest.mark.parametrize(("text", "answer"), SELECTION)
def test_selection(text: str, answer: str | tuple[str, str]) -> None:
    assert said(text) == answer


@pytest.mark.parametrize(("text", "answer"), KEYS)
def test_keys(text: str, answer: str | tuple[str, str]) -> None:
    assert said(text) == answer


@pytest.mark.parametrize(("text", "answer"), DEVICES)
def test_devices(text: str, answer: str | tuple[str, str]) -> None:
    assert said(text) == answer
