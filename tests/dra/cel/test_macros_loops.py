"""What macros mean, one row a rule; answers are cel-go's."""

from __future__ import annotations

import pytest

from tests.dra.cel.asking import said

MACROS = (
    ("[1,2].map(x, x * 2) == [2, 4]", "true"),
    ("[1,2].map(x, x > 1, x * 2) == [4]", "true"),
    ("[1,2].filter(x, x > 1) == [2]", "true"),
    ("[1,2].exists_one(x, x > 1)", "true"),
    ("[1,2].existsOne(x, x > 1)", "does not compile"),
    ("[1,2].existsOne(i, x, x > 1)", "true"),
    ("[1,2].exists(i, v, i == 0 && v == 1)", "true"),
    ("{'a': 1}.all(k, v, k == 'a' && v == 1)", "true"),
    ("{'a': 1}.transformMap(k, v, v + 1) == {'a': 2}", "true"),
    ("{'a': 1}.transformMap(k, v, v > 1, v + 1) == {}", "true"),
    ("{'a': 1}.transformMapEntry(k, v, {v: k}) == {1: 'a'}", "true"),
    ("['a','a'].transformMapEntry(i, v, {v: i}) == {'a': 0}", "error"),
    ("[1,2].transformList(i, v, i + v) == [1, 3]", "true"),
    ("[1].map(1, x)", "does not compile"),
    ("[1].map(a.b, x)", "does not compile"),
    ("[1].all(x, y, z, true)", "does not compile"),
    ("[1].all(x, x, true)", "does not compile"),
    ("[1].all(__result__, true)", "does not compile"),
    ("[1].map(@result, true)", "does not compile"),
    ("[1].all(x, 'a')", "does not compile"),
    ("[1].all(x, dyn('a'))", "error"),
    ("[1, 0].all(x, 1 / x == 1)", "error"),
    ("[1, 0, 2].all(x, 1 / x == 1)", "false"),
    ("[0, 1].exists(x, 1 / x == 1)", "true"),
    ("[0, 2].exists(x, 1 / x == 1)", "error"),
    ("[0, 1].exists_one(x, 1 / x == 1)", "error"),
    ("dyn(1).all(x, true)", "error"),
    ("'abc'.all(x, true)", "does not compile"),
    ("dyn({'a': 1}).map(k, k) == ['a']", "true"),
    ("[1/0].sort() == [1] || true", "error"),
    ("dyn(1).distinct() == [1] || true", "error"),
    ("[1,2].sortBy(x, x/0) == [1] || true", "error"),
    ('dyn("a").sortBy(x, 2).exists(i, x, true) || true', "error"),
)

BIND_AND_OPTIONALS = (
    ("cel.bind(x, 1 / 0, true)", "true"),
    ("cel.bind(x, 1 / 0, x == 1 || true)", "true"),
    ("cel.bind(x, [1,2], [3].all(y, x.all(z, z < y)))", "true"),
    ("cel.bind(x, [1,2].map(i, i * 2), [5, 6].all(j, x.size() > 0 && j > 4))", "true"),
    ("[1,2].all(i, cel.bind(x, i + 1, x > i))", "true"),
    ("cel.bind(x, 1, cel.bind(y, x + 1, x + y == 3))", "true"),
    ("cel.bind(a.b, 1, true)", "does not compile"),
    ("foo.bind(x, 1, true)", "does not compile"),
    ("optional.of(1).optMap(x, x + 1).value() == 2", "true"),
    ("optional.none().optMap(x, x + 1).hasValue()", "false"),
    ("optional.of(1).optFlatMap(x, optional.of(x)).value() == 1", "true"),
    ("optional.none().orValue(1 / 0) == 1", "error"),
    ("optional.of(1).orValue(1 / 0) == 1", "true"),
    ("optional.none().or(optional.of(2)).value() == 2", "true"),
    ("[3,1,2].sortBy(x, -x) == [3,2,1]", "true"),
    ("{'a': 1}.sortBy(x, x) == []", "does not compile"),
    ("lists.range(3) == [0, 1, 2]", "true"),
    ("optional.foo(1)", "does not compile"),
    ("strings.quote('a') == '\"a\"'", "true"),
    ("math.abs(1) == 1", "does not compile"),
    ("base64.encode(b'a') == 'a'", "does not compile"),
    ("sets.contains([1], [1.0])", "does not compile"),
)


@pytest.mark.parametrize(("text", "answer"), MACROS)
def test_macros(text: str, answer: str | tuple[str, str]) -> None:
    assert said(text) == answer


@pytest.mark.parametrize(("text", "answer"), BIND_AND_OPTIONALS)
def test_bind_and_optionals(text: str, answer: str | tuple[str, str]) -> None:
    assert said(text) == answer
