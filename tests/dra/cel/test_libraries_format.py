"""string.format, and what its literal calls meet before they run. Rows of an expression and what cel-go says of it."""

from __future__ import annotations

import pytest

from tests.dra.cel.asking import told

PRINTED = (
    ("'%s %s'.format(['a', 1]) == 'a 1'", "true"),
    ("'100%% %d'.format([7u]) == '100% 7'", "true"),
    ("'%s'.format([1000000.0]) == '1e+06'", "true"),
    ("'%s'.format([123456.5]) == '123456.5'", "true"),
    ("'%s'.format([null]) == 'null'", "true"),
    ("'%s'.format([true]) == 'true'", "true"),
    ("'%s'.format([type(1u)]) == 'uint'", "true"),
    ("'%s'.format([b'\\xc3\\xa9']) == 'é'", "true"),
    ("'%s'.format([duration('90m')]) == '5400s'", "true"),
    ("'%s'.format([timestamp('2023-01-01T00:00:00+01:00')]) == '2023-01-01T00:00:00+01:00'", "true"),
    ("'%s'.format([[1.0, 2.5]]) == '[1.000000, 2.500000]'", "true"),
    ("'%s'.format([['a\"', 'é']]) == '[\"a\\\\\"\", \"é\"]'", "true"),
    ("'%s'.format([[b'x', b'y']]) == '[b\"x\", b\"y\"]'", "true"),
    ("'%s'.format([[duration('1s')]]) == '[duration(\"1s\")]'", "true"),
    ("'%s'.format([[1.0 / 0.0]]) == '[\"+Inf\"]'", "true"),
    ("'%s'.format([{'b': 1, 'a': 2}]) == '{\"a\":2, \"b\":1}'", "true"),
    ("'%s'.format([{2: 'x', 10: 'y'}]) == '{10:\"y\", 2:\"x\"}'", "true"),
    ("'%f'.format([1234567.891]) == '1,234,567.891000'", "true"),
    ("'%.2f'.format([-1234567.891]) == '-1,234,567.89'", "true"),
    ("'%.0f'.format([2.5]) == '2'", "true"),
    ("'%.1f'.format([-0.04]) == '-0.0'", "true"),
    ("'%.300f'.format([0.5]).size() == 46", "true"),
    ("'%f'.format([1.0 / 0.0]) == '∞'", "true"),
    ("'%f'.format(['-Infinity']) == '-∞'", "true"),
    ("'%f'.format(['NaN']) == 'NaN'", "true"),
    ("'%e'.format([1234.5]) == '1.234500\u00d710⁰³'", "true"),
    ("'%.2e'.format([-0.001]) == '-1.000000\u00d710⁻⁰³'", "true"),
    ("'%.16e'.format([1.5]) == '   1.500000\u00d710⁰⁰'", "true"),
    ("'%e'.format([1.0 / 0.0]) == '     ∞'", "true"),
    ("'%.99999999f'.format([1.0]) == '%!(NOVERB)'", "true"),
    ("'%b %b %b'.format([5, -5, true]) == '101 -101 1'", "true"),
    ("'%o'.format([-8]) == '-10'", "true"),
    ("'%x %X'.format([255, 255u]) == 'ff FF'", "true"),
    ("'%x %X'.format(['é', b'\\xff']) == 'c3a9 FF'", "true"),
)

LITERAL_CALLS = (
    ("'%d'.format(['a']) == ''", "does not compile"),
    ("'%s %s'.format(['a']) == ''", "does not compile"),
    ("'%s'.format(['a', 1]) == ''", "does not compile"),
    ("'%'.format([1]) == ''", "does not compile"),
    ("'%z'.format([1]) == ''", "does not compile"),
    ("'%.s'.format([1]) == ''", "does not compile"),
    ("'%.99999999999999999999f'.format([1.0]) == ''", "does not compile"),
    ("'%s'.format([quantity('1')]) == ''", "does not compile"),
    ("'%s'.format([[optional.of(1)]]) == ''", "does not compile"),
    ("'%s'.format([device]) == ''", "does not compile"),
    ("'%d'.format([device.driver]) == ''", "does not compile"),
    (
        "'%f'.format(['x']) == ''",
        "error: error during formatting: fixed-point clause can only be used on doubles, was given string",
    ),
)

FOUND_WHEN_IT_RUNS = (
    (
        "dyn('%d').format(['a']) == ''",
        "error: error during formatting: decimal clause can only be used on integers, was given string",
    ),
    ("dyn('%s %s').format(['a']) == ''", "error: index 1 out of range"),
    ("dyn('%s').format(['a', 1]) == 'a'", "true"),
    ("dyn('%').format([1]) == ''", "error: unexpected end of string"),
    ("dyn('%z').format([1]) == ''", 'error: could not parse formatting clause: unrecognized formatting clause "z"'),
    ("dyn('%é').format([1]) == ''", 'error: could not parse formatting clause: unrecognized formatting clause "Ã"'),
    (
        "dyn('%.').format([1]) == ''",
        (
            "error: could not parse formatting clause: error while parsing precision: could not find end of "
            "precision specifier"
        ),
    ),
    (
        "dyn('%s').format([quantity('1')]) == ''",
        (
            "error: error during formatting: string clause can only be used on strings, bools, bytes, ints, "
            "doubles, maps, lists, types, durations, and timestamps, was given kubernetes.Quantity"
        ),
    ),
    (
        "dyn('%s').format([[optional.of(1)]]) == ''",
        "error: error during formatting: no formatting function for optional_type",
    ),
    (
        "dyn('%f').format(['x']) == ''",
        "error: error during formatting: fixed-point clause can only be used on doubles, was given string",
    ),
    (
        "dyn('%s').format([b'\\xff']) == ''",
        (
            'error: error during formatting: could not convert argument "invalid UTF-8 in bytes, cannot '
            'convert to string" to string'
        ),
    ),
)


@pytest.mark.parametrize(("text", "answer"), PRINTED)
def test_printed(text: str, answer: str) -> None:
    assert told(text) == answer


@pytest.mark.parametrize(("text", "answer"), LITERAL_CALLS)
def test_literal_calls(text: str, answer: str) -> None:
    assert told(text) == answer


@pytest.mark.parametrize(("text", "answer"), FOUND_WHEN_IT_RUNS)
def test_found_when_it_runs(text: str, answer: str) -> None:
    assert told(text) == answer
