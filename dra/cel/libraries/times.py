"""Timestamps and durations: conversions, arithmetic, order, and the parts of a date.

Without a time zone the parts are those in UTC. Follows cel-go common/stdlib, types/timestamp.go, types/duration.go and
types/overflow.go.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Final

from dra.cel import types
from dra.cel.errors import CelRuntimeError
from dra.cel.functions import Library, Overload
from dra.cel.libraries.go_time import (
    SECOND,
    Civil,
    civil_of,
    duration_text,
    in_range,
    parse_duration,
    parse_timestamp,
    timestamp_text,
    zone_offset,
)
from dra.cel.types import DURATION, INT, STRING, TIMESTAMP
from dra.cel.values import INT_MAX, INT_MIN, Duration, Timestamp


def text_of(value: Timestamp | Duration) -> str:
    """What `string()` makes of it: RFC 3339, or seconds such as 1.5s."""
    return timestamp_text(value) if isinstance(value, Timestamp) else duration_text(value)


def timestamp_from_text(text: str) -> Timestamp:
    """`timestamp(text)`; CelRuntimeError if the text is no RFC 3339 time of the years 1 to 9999."""
    parsed = parse_timestamp(text)
    if parsed is None:
        raise CelRuntimeError("type conversion error from 'string' to 'google.protobuf.Timestamp'")
    return parsed


def duration_from_text(text: str) -> Duration:
    """`duration(text)`; CelRuntimeError if the text is no Go duration such as 1h30m."""
    parsed = parse_duration(text)
    if parsed is None:
        raise CelRuntimeError("type conversion error from 'string' to 'google.protobuf.Duration'")
    return parsed


def _timestamp_from_seconds(seconds: int) -> Timestamp:
    if not in_range(seconds):
        raise CelRuntimeError("timestamp overflow")
    return Timestamp(seconds * SECOND)


def _seconds(timestamp: Timestamp) -> int:
    return timestamp.nanoseconds // SECOND


def _checked(number: int) -> int:
    if not INT_MIN <= number <= INT_MAX:
        raise CelRuntimeError("integer overflow")
    return number


def _later(timestamp: Timestamp, duration: Duration) -> Timestamp:
    moved = timestamp.nanoseconds + duration.nanoseconds
    if not in_range(moved // SECOND):
        raise CelRuntimeError("timestamp overflow")
    return Timestamp(moved, timestamp.offset)


def _later_swapped(duration: Duration, timestamp: Timestamp) -> Timestamp:
    return _later(timestamp, duration)


def _earlier(timestamp: Timestamp, duration: Duration) -> Timestamp:
    return _later(timestamp, Duration(_checked(-duration.nanoseconds)))


def _between(left: Timestamp, right: Timestamp) -> Duration:
    seconds = left.nanoseconds // SECOND - right.nanoseconds // SECOND
    rest = left.nanoseconds % SECOND - right.nanoseconds % SECOND
    return Duration(_checked(_checked(seconds * SECOND) + rest))


def add_durations(left: Duration, right: Duration) -> Duration:
    """The sum, or CelRuntimeError past 64 bits."""
    return Duration(_checked(left.nanoseconds + right.nanoseconds))


def _subtract_durations(left: Duration, right: Duration) -> Duration:
    return Duration(_checked(left.nanoseconds - right.nanoseconds))


def _whole(unit: int) -> Callable[[Duration], int]:
    """Whole units of a duration, by way of a double as Go counts them."""

    def count(duration: Duration) -> int:
        sign = -1 if duration.nanoseconds < 0 else 1
        units, rest = divmod(abs(duration.nanoseconds), unit)
        return sign * int(float(units) + float(rest) / float(unit))

    return count


def _milliseconds(duration: Duration) -> int:
    milliseconds = abs(duration.nanoseconds) // 10**6
    return -milliseconds if duration.nanoseconds < 0 else milliseconds


def _same(value: object) -> object:
    return value


def _nanoseconds(duration: Duration) -> int:
    return duration.nanoseconds


def _getter(function: str, unit: str, part: Callable[[Civil], int], zone_suffix: str = "with_tz") -> Library:
    """The overloads of a date part: of UTC, and of a time zone given as text."""

    def in_utc(timestamp: Timestamp) -> int:
        return part(civil_of(timestamp.nanoseconds, 0))

    def in_zone(timestamp: Timestamp, zone: str) -> int:
        return part(civil_of(timestamp.nanoseconds, zone_offset(zone, timestamp.nanoseconds)))

    return {
        function: (
            Overload(f"timestamp_to_{unit}", (TIMESTAMP,), INT, in_utc, member=True),
            Overload(f"timestamp_to_{unit}_{zone_suffix}", (TIMESTAMP, STRING), INT, in_zone, member=True),
        )
    }


def _duration_getter(unit: str, count: Callable[[Duration], int]) -> Overload:
    return Overload(f"duration_to_{unit}", (DURATION,), INT, count, member=True)


def _comparison(name: str, compare: Callable[..., object]) -> tuple[Overload, ...]:
    return tuple(
        Overload(f"{name}_{word}", (given, given), types.BOOL, compare)
        for word, given in (("timestamp", TIMESTAMP), ("duration", DURATION))
    )


_HOURS: Final = _getter("getHours", "hours", lambda civil: civil.second // 3600)
_MINUTES: Final = _getter("getMinutes", "minutes", lambda civil: civil.second // 60 % 60)
_SECONDS: Final = _getter("getSeconds", "seconds", lambda civil: civil.second % 60, "tz")
_MILLISECONDS: Final = _getter("getMilliseconds", "milliseconds", lambda civil: civil.nanosecond // 10**6)

FUNCTIONS: Final[Library] = {
    "timestamp": (
        Overload("timestamp_to_timestamp", (TIMESTAMP,), TIMESTAMP, _same),
        Overload("int64_to_timestamp", (INT,), TIMESTAMP, _timestamp_from_seconds),
        Overload("string_to_timestamp", (STRING,), TIMESTAMP, timestamp_from_text),
    ),
    "duration": (
        Overload("duration_to_duration", (DURATION,), DURATION, _same),
        Overload("string_to_duration", (STRING,), DURATION, duration_from_text),
    ),
    "int": (
        Overload("duration_to_int64", (DURATION,), INT, _nanoseconds),
        Overload("timestamp_to_int64", (TIMESTAMP,), INT, _seconds),
    ),
    "string": (
        Overload("duration_to_string", (DURATION,), STRING, duration_text),
        Overload("timestamp_to_string", (TIMESTAMP,), STRING, timestamp_text),
    ),
    "_+_": (
        Overload("add_duration_duration", (DURATION, DURATION), DURATION, add_durations),
        Overload("add_duration_timestamp", (DURATION, TIMESTAMP), TIMESTAMP, _later_swapped),
        Overload("add_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP, _later),
    ),
    "_-_": (
        Overload("subtract_duration_duration", (DURATION, DURATION), DURATION, _subtract_durations),
        Overload("subtract_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP, _earlier),
        Overload("subtract_timestamp_timestamp", (TIMESTAMP, TIMESTAMP), DURATION, _between),
    ),
    "_<_": _comparison("less", operator.lt),
    "_<=_": _comparison("less_equals", operator.le),
    "_>_": _comparison("greater", operator.gt),
    "_>=_": _comparison("greater_equals", operator.ge),
    **_getter("getFullYear", "year", lambda civil: civil.year),
    **_getter("getMonth", "month", lambda civil: civil.month - 1),
    **_getter("getDayOfYear", "day_of_year", lambda civil: civil.year_day - 1),
    **_getter("getDayOfMonth", "day_of_month", lambda civil: civil.day - 1),
    **_getter("getDate", "day_of_month_1_based", lambda civil: civil.day),
    **_getter("getDayOfWeek", "day_of_week", lambda civil: civil.weekday),
    "getHours": (*_HOURS["getHours"], _duration_getter("hours", _whole(3600 * SECOND))),
    "getMinutes": (*_MINUTES["getMinutes"], _duration_getter("minutes", _whole(60 * SECOND))),
    "getSeconds": (*_SECONDS["getSeconds"], _duration_getter("seconds", _whole(SECOND))),
    "getMilliseconds": (*_MILLISECONDS["getMilliseconds"], _duration_getter("milliseconds", _milliseconds)),
}
