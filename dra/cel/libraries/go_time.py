"""Times as Go reads and prints them, and the calendar. Knows no CEL functions, only the values.

The one thing read from outside is the machine's time zone database, as the scheduler reads its own.
Follows Go's time package: `ParseDuration`, `Parse(RFC3339)`, `Format(RFC3339Nano)`, `LoadLocation`.
"""

from __future__ import annotations

import re
import zoneinfo
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from dra.cel.errors import CelRuntimeError
from dra.cel.libraries import go_text
from dra.cel.values import INT_MAX, Duration, Timestamp

SECOND: Final = 10**9
_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # micro sign
    "μs": 10**3,  # Greek mu
    "ms": 10**6,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_DURATION_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]+)")
_RFC3339: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))",
)
_DAYS_IN_MONTH: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
FIRST_SECOND: Final = -62135596800  # 0001-01-01T00:00:00Z
_LAST_SECOND: Final = 253402300799  # 9999-12-31T23:59:59Z
_FEBRUARY: Final = 2


class Civil(NamedTuple):
    """A date and a time of day. `month` and `day` count from 1, `weekday` from 0 for Sunday, `year_day` from 1."""

    year: int
    month: int
    day: int
    year_day: int
    weekday: int
    second: int  # of the day
    nanosecond: int


def in_range(seconds: int) -> bool:
    """Whether a Unix time lies in the years 1 to 9999, which CEL's timestamps have."""
    return FIRST_SECOND <= seconds <= _LAST_SECOND


def parse_duration(text: str) -> Duration | None:
    """The duration, or None where Go's ParseDuration refuses the text."""
    body = text[1:] if text[:1] in ("-", "+") else text
    negative = text.startswith("-")
    if body == "0":
        return Duration(0)
    total, position = 0, 0
    while position < len(body):
        match = _DURATION_PART.match(body, position)
        part = _duration_part(*match.groups()) if match else None
        if match is None or part is None or total + part > INT_MAX + 1:
            return None
        total += part
        position = match.end()
    if not body or (total > INT_MAX and not negative):
        return None
    return Duration(-total if negative else total)


def _duration_part(whole: str, fraction: str | None, unit: str) -> int | None:
    if unit not in _UNITS or not (whole or fraction) or len(whole.lstrip("0")) > len(str(INT_MAX)):
        return None
    nanoseconds = int(whole or "0") * _UNITS[unit]
    if nanoseconds > INT_MAX + 1:
        return None
    digits, scale = _leading_fraction(fraction or "")
    nanoseconds += int(digits * (_UNITS[unit] / scale))
    return nanoseconds if nanoseconds <= INT_MAX + 1 else None


def _leading_fraction(digits: str) -> tuple[int, float]:
    """The digits of a fraction as far as 63 bits hold them, and the power of ten they are divided by."""
    number, scale = 0, 1.0
    for digit in digits:
        if number > INT_MAX // 10 or number * 10 + int(digit) > INT_MAX + 1:
            break
        number, scale = number * 10 + int(digit), scale * 10
    return number, scale


def parse_timestamp(text: str) -> Timestamp | None:
    """The timestamp, or None where Go's Parse(RFC3339) refuses the text; CelRuntimeError outside the years 1 to 9999.

    As there: one digit is enough for the hour, a comma may stand for the point, offsets go up to 24:60.
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = map(int, match.groups()[:6])
    fraction, sign, zone_hours, zone_minutes = match.groups()[6:]
    if not (1 <= month <= 12 and 1 <= day <= _days_in(month, year) and hour < 24 and minute < 60 and second < 60):
        return None
    offset = 0
    if sign:
        if int(zone_hours) > 24 or int(zone_minutes) > 60:
            return None
        offset = (int(zone_hours) * 60 + int(zone_minutes)) * (-60 if sign == "-" else 60)
    seconds = ((_days_before(year, month, day) * 24 + hour) * 60 + minute) * 60 + second - offset
    if not in_range(seconds):
        raise CelRuntimeError("timestamp overflow")
    return Timestamp(seconds * SECOND + int((fraction or "0")[:9].ljust(9, "0")), offset)


def is_date(text: str) -> bool:
    """Whether Go's Parse("2006-01-02") accepts the text."""
    match = re.fullmatch(r"([0-9]{4})-([0-9]{2})-([0-9]{2})", text)
    if match is None:
        return False
    year, month, day = map(int, match.groups())
    return 1 <= month <= 12 and 1 <= day <= _days_in(month, year)


def duration_text(duration: Duration) -> str:
    """Seconds as the shortest decimal number, e.g. 1.5s."""
    sign = -1 if duration.nanoseconds < 0 else 1
    seconds, nanoseconds = divmod(abs(duration.nanoseconds), SECOND)
    return go_text.shortest_decimal(sign * (float(seconds) + nanoseconds / 1e9)) + "s"


def timestamp_text(timestamp: Timestamp) -> str:
    """RFC 3339 with as many digits after the point as are needed, in the offset it was written with."""
    civil = civil_of(timestamp.nanoseconds, timestamp.offset)
    minutes, second = divmod(civil.second, 60)
    fraction = f".{civil.nanosecond:09d}".rstrip("0") if civil.nanosecond else ""
    date = f"{civil.year:04d}-{civil.month:02d}-{civil.day:02d}"
    return f"{date}T{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}{fraction}{_offset_text(timestamp.offset)}"


def _offset_text(offset: int) -> str:
    if offset == 0:
        return "Z"
    hours, minutes = divmod(abs(offset) // 60, 60)
    return f"{'-' if offset < 0 else '+'}{hours:02d}:{minutes:02d}"


def civil_of(nanoseconds: int, offset: int) -> Civil:
    """Date and time of day of a Unix time, so many seconds east of UTC (proleptic Gregorian calendar)."""
    seconds, nanosecond = divmod(nanoseconds, SECOND)
    days, second = divmod(seconds + offset, 86400)
    era, day_of_era = divmod(days + 719468, 146097)  # eras of 400 years that begin on 1 March
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    year = year_of_era + era * 400 + (month <= _FEBRUARY)
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    return Civil(year, month, day, days - _days_before(year, 1, 1) + 1, (days + 4) % 7, second, nanosecond)


def _days_before(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 to a date."""
    shifted_year = year - (month <= _FEBRUARY)
    era, year_of_era = divmod(shifted_year, 400)
    day_of_year = (153 * (month + (-3 if month > _FEBRUARY else 9)) + 2) // 5 + day - 1
    return era * 146097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719468


def _days_in(month: int, year: int) -> int:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return _DAYS_IN_MONTH[month - 1] + (leap and month == _FEBRUARY)


def zone_offset(zone: str, nanoseconds: int) -> int:
    """Seconds east of UTC in a zone at a Unix time; the zone is a name or hours:minutes (cel-go `inTimeZone`)."""
    hours, colon, minutes = zone.partition(":")
    if not colon:
        return _named_offset(zone, nanoseconds)
    try:
        hour, minute = go_text.parse_int(hours), go_text.parse_int(minutes)
    except ValueError as fault:
        raise CelRuntimeError(str(fault)) from fault
    offset = _wrapped(hour * 60 - minute if zone.startswith("-") else hour * 60 + minute)
    return int(_wrapped(offset * 60 * SECOND) / SECOND)


def _wrapped(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


def _named_offset(name: str, nanoseconds: int) -> int:
    if name in ("", "UTC", "Local"):  # the scheduler's container runs on UTC
        return 0
    if ".." in name or name[0] in "/\\":
        raise CelRuntimeError("time: invalid location name")
    try:
        zone = zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as fault:
        raise CelRuntimeError(f"unknown time zone {name}") from fault
    seconds = min(max(nanoseconds // SECOND, FIRST_SECOND + 86400), _LAST_SECOND - 86400)  # what datetime can hold
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    offset = moment.astimezone(zone).utcoffset()
    return int(offset.total_seconds()) if offset is not None else 0
