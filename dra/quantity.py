"""Exact Kubernetes quantities: parse, compare, add, print canonically.

A value is an integer count of nano units, as apimachinery `resource.Quantity` keeps no smaller ones; format and kept
text decide only how it is printed. Follows k8s.io/apimachinery/pkg/api/resource/quantity.go and amount.go.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from math import inf
from typing import Final

from dra.errors import InvalidQuantityError

_NANO: Final = 10**9
_NANO_POWER: Final = -9
_INT64: Final = range(-(2**63), 2**63)
_INT64_DIGITS: Final = 18  # digits that surely fit
_LARGEST: Final = (2**63 - 1) * _NANO
_SMALLEST_FLOAT_POWER: Final = -323
_LARGEST_FLOAT_POWER: Final = 308
_SYNTAX: Final = re.compile(r"([+-]?)([0-9]*)\.?([0-9]*)([eEinumkKMGTP]*[+-]?[0-9]*)")
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]+)")
_BINARY: Final = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIX: Final = {power: suffix for suffix, power in _BINARY.items()} | {0: ""}
_DECIMAL_SUFFIX: Final = {power: suffix for suffix, power in _DECIMAL.items()}
_LARGEST_SUFFIX: Final = 18  # E
_MAX_LENGTH: Final = 256  # with the next line it bounds the work for hostile input, and what Python prints of an int
_MAX_EXPONENT: Final = 1_000


class Format(Enum):
    """How a quantity is printed: powers of 1024, powers of 1000, or an exponent."""

    BINARY_SI = "BinarySI"
    DECIMAL_SI = "DecimalSI"
    DECIMAL_EXPONENT = "DecimalExponent"


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number of nano units and a print format. Equal and ordered by value alone.

    `text` is the spelling that apimachinery keeps and prints back (`1.100`, `+5`), empty once computed with. `power`
    tells its two representations apart, which CEL's isInteger shows: an int64 count of 10^power units, or None for
    `inf.Dec`.
    """

    nano: int
    format: Format = Format.DECIMAL_SI
    text: str = ""
    power: int | None = -9

    @classmethod
    def of(cls, units: int, fmt: Format = Format.DECIMAL_SI) -> Quantity:
        """That many whole units (bytes for memory), as `resource.NewQuantity`."""
        return cls(units * _NANO, fmt, power=0)

    @property
    def value(self) -> int:
        """Whole units, rounded away from zero (`Quantity.Value`).

        Exact where upstream's int64 can't be: from 2^63 on that reads 0 or wraps, so who must agree with it compares
        with the bound first, as the allocator does.
        """
        return self.scaled_value(0)

    @property
    def milli_value(self) -> int:
        """Thousandths, rounded away from zero (`Quantity.MilliValue`); exact beyond int64, as `value`."""
        return self.scaled_value(-3)

    def scaled_value(self, power: int) -> int:
        """How many 10^power, rounded away from zero (`Quantity.ScaledValue`); exact beyond int64, as `value`.

        The power is -9 (nano) or more. Negative fractions in `inf.Dec` form round differently upstream: -0.1Ki is
        -101 there, -103 here.
        """
        return _up(self.nano, 10 ** (power - _NANO_POWER))

    def as_int64(self) -> int | None:
        """Whole units where the int64 form gives them without division (`Quantity.AsInt64`): not for 1.0 or 0.5Gi."""
        if self.power is None or self.power < 0:
            return None
        units = self.nano // _NANO
        return units if units in _INT64 else None

    def approximate_float(self) -> float:
        """The nearest float, give or take (`Quantity.AsApproximateFloat64`)."""
        power = _NANO_POWER if self.power is None else self.power
        return _to_float(self.nano // 10 ** (power - _NANO_POWER)) * _power_of_ten(power)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nano == other.nano

    def __hash__(self) -> int:
        return hash(self.nano)

    def __lt__(self, other: Quantity) -> bool:
        return self.nano < other.nano

    def __le__(self, other: Quantity) -> bool:
        return self.nano <= other.nano

    def __neg__(self) -> Quantity:
        return Quantity(-self.nano, self.format, power=self.power)

    def __add__(self, other: Quantity) -> Quantity:
        """The sum in the format of the first term that is not zero (`Quantity.Add`)."""
        return Quantity(self.nano + other.nano, self.format if self.nano else other.format, power=_power(self, other))

    def __sub__(self, other: Quantity) -> Quantity:
        return self + -other

    def __str__(self) -> str:
        """The kept text or the canonical form. From 1000E on upstream drops the suffix, and the value with it."""
        if self.text or self.nano == 0:
            return self.text or "0"
        if self.format is Format.BINARY_SI and abs(self.nano) >= 1024 * _NANO and self.nano % _NANO == 0:
            return _binary(self.nano // _NANO)
        return _decimal(self.nano, exponent=self.format is Format.DECIMAL_EXPONENT)


@lru_cache(maxsize=8192)
def parse_quantity(text: str) -> Quantity:
    """The quantity that `resource.ParseQuantity` reads from the text; InvalidQuantityError names the text and the rule.

    As there: no digits are zero, more than nano precision is rounded away from zero, binary values are capped at
    2^63-1 units, and a binary value below one unit becomes decimal. Unlike there, texts over 256 characters and
    exponents beyond 1,000 are refused.
    """
    match = _SYNTAX.fullmatch(text) if 0 < len(text) <= _MAX_LENGTH else None
    if match is None:
        raise _invalid(text)
    sign, whole, fraction, suffix = match.groups()
    base, power, fmt = _scale(suffix, text)
    significant = whole.lstrip("0") or "0"
    int64 = _int64_power(significant, fraction, power, fmt)
    if int64 is None and not whole + fraction:
        raise _invalid(text)  # without digits only the int64 form reads zero
    nano = _nano(whole + fraction, len(fraction), base, power)
    if fmt is Format.BINARY_SI:
        nano = min(nano, _LARGEST)
        fmt = Format.DECIMAL_SI if 0 < nano < _NANO else fmt
    kept = text if int64 is not None and _keeps_text(significant + fraction, int64, fmt) else ""
    return Quantity(-nano if sign == "-" else nano, fmt, kept, int64)


def _to_float(number: int) -> float:
    try:
        return float(number)
    except OverflowError:
        return inf if number > 0 else -inf


def _power_of_ten(power: int) -> float:
    """Ten to the power as Go's math.Pow10 multiplies or divides it from two tables, with the error that brings."""
    if not _SMALLEST_FLOAT_POWER <= power <= _LARGEST_FLOAT_POWER:
        return inf if power > 0 else 0.0
    large, small = divmod(abs(power), 32)
    if power < 0:
        return float(f"1e-{32 * large}") / float(f"1e{small}")
    return float(f"1e{32 * large}") * float(f"1e{small}")


def _nano(digits: str, places: int, base: int, power: int) -> int:
    numerator, denominator = int(digits or "0") * _NANO, 10**places
    if power >= 0:
        return _up(numerator * base**power, denominator)
    return _up(numerator, denominator * base**-power)


def _int64_power(whole: str, fraction: str, power: int, fmt: Format) -> int | None:
    """The scale of the int64 form that `ParseQuantity` chooses by counting digits, or None where it takes `inf.Dec`."""
    if fmt is Format.BINARY_SI:
        return 0 if not fraction and len(whole) <= 14 - 3 * power else None
    if len(whole) + len(fraction) > _INT64_DIGITS or power - len(fraction) < _NANO_POWER:
        return None
    return power - len(fraction)


def _keeps_text(digits: str, power: int, fmt: Format) -> bool:
    """Whether `ParseQuantity` takes the spelling for canonical and prints it back as it came."""
    if fmt is Format.BINARY_SI:
        return int(digits) % 8 != 0
    return power % 3 == 0 and digits[0] != "0" and not digits.endswith("000")


def _power(one: Quantity, other: Quantity) -> int | None:
    """The scale of a sum in int64 form, or None where it overflows or a term is no int64 (`int64Amount.Add`)."""
    if one.power is None or other.power is None:
        return None
    if not other.nano or not one.nano:
        return one.power if not other.nano else other.power
    power = min(one.power, other.power)
    unit = 10 ** (power - _NANO_POWER)
    fits = all(term // unit in _INT64 for term in (one.nano, other.nano, one.nano + other.nano))
    return power if fits else None


def _scale(suffix: str, text: str) -> tuple[int, int, Format]:
    if suffix in _BINARY:
        return 1024, _BINARY[suffix], Format.BINARY_SI
    if suffix in _DECIMAL:
        return 10, _DECIMAL[suffix], Format.DECIMAL_SI
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None or abs(int(exponent[1])) > _MAX_EXPONENT:
        raise _invalid(text)
    return 10, int(exponent[1]), Format.DECIMAL_EXPONENT


def _invalid(text: str) -> InvalidQuantityError:
    return InvalidQuantityError(
        f"{text!r} is not a quantity: write a number with at most one suffix out of "
        "Ki Mi Gi Ti Pi Ei, n u m k M G T P E, or an exponent such as e3"
    )


def _up(numerator: int, denominator: int) -> int:
    """The quotient rounded away from zero."""
    return -(-numerator // denominator) if numerator >= 0 else numerator // denominator


def _binary(units: int) -> str:
    power = 0
    while units % 1024 == 0:
        units, power = units // 1024, power + 1
    return f"{units}{_BINARY_SUFFIX[power]}"


def _decimal(nano: int, *, exponent: bool) -> str:
    mantissa, power = nano, -9
    while mantissa % 10 == 0:
        mantissa, power = mantissa // 10, power + 1
    while power % 3 or (power > _LARGEST_SUFFIX and not exponent):
        mantissa, power = mantissa * 10, power - 1
    if exponent:
        return f"{mantissa}e{power}" if power else str(mantissa)
    return f"{mantissa}{_DECIMAL_SUFFIX[power]}"
