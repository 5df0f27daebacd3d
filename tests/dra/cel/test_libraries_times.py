"""Timestamps and durations. Rows of an expression and what cel-go says of it."""

from __future__ import annotations

import pytest

from tests.dra.cel.asking import told

TIMESTAMPS = (
    ("timestamp('2023-07-14T10:30:45.123Z').getFullYear() == 2023", "true"),
    ("timestamp('2023-07-14T10:30:45.123Z').getMonth() == 6", "true"),
    ("timestamp('2023-07-14T10:30:45.123Z').getDayOfYear() == 194", "true"),
    ("timestamp('2023-07-14T10:30:45.123Z').getDayOfMonth() == 13", "true"),
    ("timestamp('2023-07-14T10:30:45.123Z').getDate() == 14", "true"),
    ("timestamp('2023-07-14T10:30:45.123Z').getDayOfWeek() == 5", "true"),
    ("timestamp('2023-07-14T10:30:45.123Z').getHours() == 10", "true"),
    ("timestamp('2023-07-14T10:30:45.123Z').getMinutes() == 30", "true"),
    ("timestamp('2023-07-14T10:30:45.123Z').getSeconds() == 45", "true"),
    ("timestamp('2023-07-14T10:30:45.123Z').getMilliseconds() == 123", "true"),
    ("timestamp('2023-01-01T05:30:00Z').getFullYear('-08:00') == 2022", "true"),
    ("timestamp('2023-07-14T10:00:00Z').getHours('America/New_York') == 6", "true"),
    ("timestamp('2023-07-14T10:00:00Z').getHours('') == 10", "true"),
    ("timestamp('2023-07-14T10:00:00Z').getHours('05:45') == 15", "true"),
    ("timestamp('0001-01-01T00:00:00Z').getFullYear('-12:00') == 0", "true"),
    ("timestamp('9999-12-31T23:00:00Z').getFullYear('+02:00') == 10000", "true"),
    ("timestamp('2023-07-14T10:00:00Z').getHours('nowhere') == 1", "error: unknown time zone nowhere"),
    ("timestamp('2023-07-14T10:00:00Z').getHours('../etc') == 1", "error: time: invalid location name"),
    ("timestamp('2023-07-14T10:00:00Z').getHours('a:b') == 1", 'error: strconv.Atoi: parsing "a": invalid syntax'),
    ("string(timestamp('2023-07-14T10:30:45.120+05:45')) == '2023-07-14T10:30:45.12+05:45'", "true"),
    ("string(timestamp(0)) == '1970-01-01T00:00:00Z'", "true"),
    ("int(timestamp('1969-12-31T23:59:59.5Z')) == -1", "true"),
    ("timestamp('2023-01-01T1:00:00,5Z') == timestamp('2023-01-01T01:00:00.5Z')", "true"),
    ("timestamp('2023-01-01T00:00:00+24:60') == timestamp('2022-12-30T23:00:00Z')", "true"),
    ("timestamp('2023-01-01T01:00:00+01:00') == timestamp('2023-01-01T00:00:00Z')", "true"),
    ("timestamp('2023-02-29T00:00:00Z') == timestamp(0)", "does not compile"),
    ("timestamp('0000-12-31T00:00:00Z') == timestamp(0)", "does not compile"),
    ("timestamp('2023-01-01T00:00:00z') == timestamp(0)", "does not compile"),
    ("timestamp(253402300800) == timestamp(0)", "does not compile"),
    (
        "timestamp(size('x') == 1 ? 'x' : '') == timestamp(0)",
        "error: type conversion error from 'string' to 'google.protobuf.Timestamp'",
    ),
    ("timestamp(size('x') == 1 ? 253402300800 : 0) == timestamp(0)", "error: timestamp overflow"),
)

DURATIONS = (
    ("duration('1h2m3s4ms5us6ns') == duration('3723004005006ns')", "true"),
    ("duration('1µs') == duration('1μs')", "true"),
    ("duration('-1.5h') == duration('-5400s')", "true"),
    ("duration('.5s') == duration('500ms')", "true"),
    ("duration('0') == duration('0s')", "true"),
    ("duration('-9223372036854775808ns') < duration('0s')", "true"),
    ("duration('9223372036854775808ns') == duration('0s')", "does not compile"),
    ("duration('1') == duration('1s')", "does not compile"),
    ("duration('1d') == duration('24h')", "does not compile"),
    ("duration('1m-1s') == duration('59s')", "does not compile"),
    (
        "duration(size('x') == 1 ? 'x' : '') == duration('0s')",
        "error: type conversion error from 'string' to 'google.protobuf.Duration'",
    ),
    ("string(duration('90m')) == '5400s'", "true"),
    ("string(duration('1ns')) == '0.000000001s'", "true"),
    ("string(duration('-1500ms')) == '-1.5s'", "true"),
    ("int(duration('1us')) == 1000", "true"),
    ("duration('3h59m').getHours() == 3", "true"),
    ("duration('-90s').getMinutes() == -1", "true"),
    ("duration('1500ms').getSeconds() == 1", "true"),
    ("duration('1999us').getMilliseconds() == 1", "true"),
)

ARITHMETIC = (
    ("timestamp('2023-01-01T00:00:00+01:00') + duration('1s') == timestamp('2022-12-31T23:00:01Z')", "true"),
    ("string(timestamp('2023-01-01T00:00:00+01:00') + duration('1s')) == '2023-01-01T00:00:01+01:00'", "true"),
    ("duration('1s') + timestamp(0) == timestamp(1)", "true"),
    ("timestamp(5) - timestamp(2) == duration('3s')", "true"),
    ("timestamp(5) - duration('2s') == timestamp(3)", "true"),
    ("timestamp(253402300799) + duration('1s') == timestamp(0)", "error: timestamp overflow"),
    ("timestamp(-62135596800) - duration('1ns') == timestamp(0)", "error: timestamp overflow"),
    ("timestamp(253402300799) - timestamp(-62135596800) == duration('0s')", "error: integer overflow"),
    ("timestamp(0) - duration('-9223372036854775808ns') == timestamp(0)", "error: integer overflow"),
    ("duration('9223372036854775807ns') + duration('1ns') == duration('0s')", "error: integer overflow"),
    ("duration('-9223372036854775808ns') - duration('1ns') == duration('0s')", "error: integer overflow"),
    ("timestamp(1) < timestamp('1970-01-01T00:00:02Z')", "true"),
    ("duration('1s') >= duration('1000ms')", "true"),
    ("duration('1s') > dyn(timestamp(1))", "error: no such overload"),
)


@pytest.mark.parametrize(("text", "answer"), TIMESTAMPS)
def test_timestamps(text: str, answer: str) -> None:
    assert told(text) == answer


@pytest.mark.parametrize(("text", "answer"), DURATIONS)
def test_durations(text: str, answer: str) -> None:
    assert told(text) == answer


@pytest.mark.parametrize(("text", "answer"), ARITHMETIC)
def test_arithmetic(text: str, answer: str) -> None:
    assert told(text) == answer
