"""Lists: Kubernetes' functions, cel-go's, and sets. Rows of an expression and what cel-go says of it."""

from __future__ import annotations

import pytest

from tests.dra.cel.asking import told

KUBERNETES = (
    ("[1, 2, 2].isSorted()", "true"),
    ("[2, 1].isSorted()", "false"),
    ("['a', 'b'].isSorted()", "true"),
    ("[].isSorted()", "true"),
    ("[dyn(1), dyn('a'), dyn(0)].isSorted()", "true"),
    ("[[1]].isSorted()", "does not compile"),
    ("[1, 3].sum() == 4", "true"),
    ("[1.5, 3.0].sum() == 4.5", "true"),
    ("[1u, 3u].sum() == 4u", "true"),
    ("[duration('1m'), duration('1s')].sum() == duration('61s')", "true"),
    ("[].sum() == 0", "true"),
    ("[9223372036854775807, 1].sum() == 0", "error: integer overflow"),
    ("[18446744073709551615u, 1u].sum() == 0u", "error: unsigned integer overflow"),
    ("[dyn(1), dyn(2.0)].sum() == 3", "error: no such overload"),
    ("['a'].sum() == 'a'", "does not compile"),
    ("[3, 1, 2].min() == 1", "true"),
    ("[3, 1, 2].max() == 3", "true"),
    ("['b', 'a'].max() == 'b'", "true"),
    ("[dyn(1), dyn(2.5)].max() == 2.5", "true"),
    ("[].min() == 1", "error: min called on empty list"),
    ("[].max() == 1", "error: max called on empty list"),
    ("[1, 2, 2, 3].indexOf(2) == 1", "true"),
    ("[1, 2, 2, 3].lastIndexOf(2) == 2", "true"),
    ("[1].indexOf(5) == -1", "true"),
    ("[dyn(1), dyn('1')].indexOf('1') == 1", "true"),
    ("[1.0].indexOf(dyn(1)) == 0", "true"),
    ("[1, 2].includes(2)", "true"),
    ("[1, 2].includes(3)", "false"),
    ("'a'.includes('a')", "true"),
    ("dyn('a').includes(1)", "false"),
)

CEL_GO = (
    ("[1, 2, 3, 4].slice(1, 3) == [2, 3]", "true"),
    ("[1].slice(1, 1) == []", "true"),
    ("[1].slice(-1, 1) == []", "error: cannot slice(-1, 1), negative indexes not supported"),
    ("[1].slice(1, 0) == []", "error: cannot slice(1, 0), start index must be less than or equal to end index"),
    ("[1].slice(0, 2) == []", "error: cannot slice(0, 2), list is length 1"),
    ("[[1, 2], [3]].flatten() == [1, 2, 3]", "true"),
    ("[[[1]], [[2]]].flatten() == [[1], [2]]", "true"),
    ("[[[1]], [[2]]].flatten(2) == [1, 2]", "true"),
    ("[[1]].flatten(0) == [[1]]", "true"),
    ("[[1]].flatten(-1) == [1]", "error: level must be non-negative"),
    ("dyn([1, 2]).flatten() == [1, 2]", "true"),
    ("dyn(1).flatten() == [1]", "error: no such overload: int.flatten()"),
    ("dyn('a').flatten(1) == ['a']", "error: no such overload: string.flatten(int)"),
    ("[1].flatten() == [1]", "does not compile"),
    ("[3, 1, 2].sort() == [1, 2, 3]", "true"),
    ("['b', 'a'].sort() == ['a', 'b']", "true"),
    ("[dyn(1), dyn('a')].sort() == []", "error: list elements must have the same type"),
    ("dyn([null]).sort() == []", "error: list elements must be comparable"),
    ("dyn(1).sort() == []", "error: no such overload: sort"),
    ("['bb', 'a', 'ccc'].sortBy(s, s.size()) == ['a', 'bb', 'ccc']", "true"),
    (
        (
            "lists.range(20).sortBy(i, i % 3).map(i, string(i)).join(' ') == '0 15 12 9 6 3 18 1 4 7 10 13 16 "
            "19 17 2 14 8 11 5'"
        ),
        "false",
    ),
    ("lists.range(3) == [0, 1, 2]", "true"),
    ("lists.range(0) == []", "true"),
    ("lists.range(-1) == []", "error: lists.range: size must be non-negative, got -1"),
    ("lists.range(1000001) == []", "error: lists.range: size 1000001 exceeds maximum allowed (1000000)"),
    ("[1, 2, 3].reverse() == [3, 2, 1]", "true"),
    ("[1, 2, 1].distinct() == [1, 2]", "true"),
    ("[dyn(1), dyn(1.0), dyn(1u), dyn('1')].distinct().size() == 2", "true"),
    ("[1, 2].first() == optional.of(1)", "true"),
    ("[1, 2].last().value() == 2", "true"),
    ("[].first().hasValue()", "false"),
)

SETS = (
    ("sets.contains([], [])", "true"),
    ("sets.contains([], [1])", "false"),
    ("sets.contains([1, 2, 3, 4], [2, 3])", "true"),
    ("sets.contains([1, 2u, 3.0], [1.0, 2])", "does not compile"),
    ("sets.equivalent([1], [1, 1])", "true"),
    ("sets.equivalent([1], [dyn(1u), 1.0])", "does not compile"),
    ("sets.equivalent([1, 2], [1])", "false"),
    ("sets.intersects([1], [])", "false"),
    ("sets.intersects([1], [1, 2])", "true"),
    ("sets.intersects([[1], [2, 3]], [[1, 2], [2, 3]])", "true"),
)


@pytest.mark.parametrize(("text", "answer"), KUBERNETES)
def test_kubernetes(text: str, answer: str) -> None:
    assert told(text) == answer


@pytest.mark.parametrize(("text", "answer"), CEL_GO)
def test_cel_go(text: str, answer: str) -> None:
    assert told(text) == answer


@pytest.mark.parametrize(("text", "answer"), SETS)
def test_sets(text: str, answer: str) -> None:
    assert told(text) == answer
