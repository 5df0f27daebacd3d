"""Conversions between types, one row a rule; answers are cel-go's."""

from __future__ import annotations

import pytest

from tests.dra.cel.asking import said

CONVERSIONS = (
    ("int('5') == 5", "true"),
    ("int('+5') == 5", "true"),
    ("int(' 5') == 5", "does not compile"),
    ("int('5_0') == 50", "does not compile"),
    ("int(1.9) == 1", "true"),
    ("int(-1.9) == -1", "true"),
    ("int(1e19) == 1", "does not compile"),
    ("uint(-1) == 0u", "does not compile"),
    ("uint(1.9) == 1u", "true"),
    ("uint('+5') == 5u", "does not compile"),
    ("double('1e5') == 100000.0", "true"),
    ("double('1_000') == 1000.0", "true"),
    ("double('0x1p4') == 16.0", "true"),
    ("double('inf') > 1.0", "true"),
    ("double('-Infinity') < 1.0", "true"),
    ("double('+inf') > 1.0", "true"),
    ("double('nan') == 1.0", "false"),
    ("double('NaN') == 1.0", "false"),
    ("double('+nan') == 1.0", "does not compile"),
    ("double('0x_1p4') == 16.0", "true"),
    ("double('1e999') == 1.0", "does not compile"),
    ("double('.5') == 0.5", "true"),
    ("double('5.') == 5.0", "true"),
    ("double('.') == 5.0", "does not compile"),
    ("double('') == 5.0", "does not compile"),
    ("string(1.0) == '1'", "true"),
    ("string(1e21) == '1e+21'", "true"),
    ("string(1000000.0) == '1e+06'", "true"),
    ("string(123456.0) == '123456'", "true"),
    ("string(0.0001) == '0.0001'", "true"),
    ("string(0.00001) == '1e-05'", "true"),
    ("string(-0.0) == '-0'", "true"),
    ("string(true) == 'true'", "true"),
    ("string(1u) == '1'", "true"),
    ("string(b'a') == 'a'", "true"),
    ("string(dyn(b'\\xff')) == 'a'", "does not compile"),
    ("string(null) == 'null'", "does not compile"),
    ("bool('true')", "true"),
    ("bool('T')", "true"),
    ("bool('yes')", "does not compile"),
    ("bytes('a') == b'a'", "true"),
)


@pytest.mark.parametrize(("text", "answer"), CONVERSIONS)
def test_conversions(text: str, answer: str | tuple[str, str]) -> None:
    assert said(text) == answer
