"""Optional values. Rows of an expression and what cel-go says of it."""

from __future__ import annotations

import pytest

from tests.dra.cel.asking import told

VALUES = (
    ("optional.of(1).value() == 1", "true"),
    ("optional.none().hasValue()", "false"),
    ("optional.none().value() == 1", "error: optional.none() dereference"),
    ("optional.of(null).hasValue()", "true"),
    ("optional.ofNonZeroValue(0).hasValue()", "false"),
    ("optional.ofNonZeroValue('').hasValue()", "false"),
    ("optional.ofNonZeroValue([]).hasValue()", "false"),
    ("optional.ofNonZeroValue({}).hasValue()", "false"),
    ("optional.ofNonZeroValue(null).hasValue()", "false"),
    ("optional.ofNonZeroValue(false).hasValue()", "false"),
    ("optional.ofNonZeroValue(duration('0s')).hasValue()", "false"),
    ("optional.ofNonZeroValue(timestamp('0001-01-01T00:00:00Z')).hasValue()", "false"),
    ("optional.ofNonZeroValue(timestamp(0)).hasValue()", "true"),
    ("optional.ofNonZeroValue('a').hasValue()", "true"),
    ("optional.ofNonZeroValue(quantity('0')).hasValue()", "true"),
    ("optional.none().or(optional.of(2)).value() == 2", "true"),
    ("optional.of(1).or(optional.of(2)).value() == 1", "true"),
    ("optional.none().orValue(3) == 3", "true"),
    ("optional.of(1).orValue(1 / 0) == 1", "true"),
    ("optional.unwrap([optional.of(42), optional.none()]) == [42]", "true"),
    ("[optional.of(42), optional.none()].unwrapOpt() == [42]", "true"),
    ("[dyn(1)].unwrapOpt() == [1]", "error: no such overload: unwrapOpt(list)"),
)


@pytest.mark.parametrize(("text", "answer"), VALUES)
def test_values(text: str, answer: str) -> None:
    assert told(text) == answer
