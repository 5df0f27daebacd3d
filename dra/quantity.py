"""Exact Kubernetes quantities: parse, compare, add, print canonically.

A value is an integer count of nano units, as apimachinery `resource.Quantity` keeps no smaller ones; its format decides
only how it is printed. Follows k8s.io/apimachinery/pkg/api/resource/quantity.go.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from dra.errors import InvalidQuantityError

_NANO: Final = 10**9
_LARGEST: Final = (2**63 - 1) * _NANO
_SYNTAX: Final = re.compile(r"([+-]?)([0-9]*)\.?([0-9]*)([eEinumkKMGTP]*[+-]?[0-9]*)")
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]+)")
_BINARY: Final = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIX: Final = {power: suffix for suffix, power in _BINARY.items()} | {0: ""}
_DECIMAL_SUFFIX: Final = {power: suffix for suffix, power in _DECIMAL.items()}
_LARGEST_SUFFIX: Final = 18  # E
_MAX_LENGTH: Final = (
    256  # far past any value that survives the cap; with the next line it bounds the work for hostile input
)
_MAX_EXPONENT: Final = 10_000


class Format(Enum):
    """How a quantity is printed: powers of 1024, powers of 1000, or an exponent."""

    BINARY_SI = "BinarySI"
    DECIMAL_SI = "DecimalSI"
    DECIMAL_EXPONENT = "DecimalExponent"


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number of nano units and a print format. Equal and ordered by value alone."""

    nano: int
    format: Format = Format.DECIMAL_SI

    @classmethod
    def of(cls, units: int, fmt: Format = Format.DECIMAL_SI) -> Quantity:
        """That many whole units (bytes for memory)."""
        return cls(units * _NANO, fmt)

    @property
    def value(self) -> int:
        """Whole units, rounded away from zero (`Quantity.Value`)."""
        return _up(self.nano, _NANO)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nano == other.nano

    def __hash__(self) -> int:
        return hash(self.nano)

    def __lt__(self, other: Quantity) -> bool:
        return self.nano < other.nano

    def __le__(self, other: Quantity) -> bool:
        return self.nano <= other.nano

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano + other.nano, self.format if self.nano else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano - other.nano, self.format if self.nano else other.format)

    def __str__(self) -> str:
        if self.nano == 0:
            return "0"
        if self.format is Format.BINARY_SI and abs(self.nano) >= 1024 * _NANO and self.nano % _NANO == 0:
            return _binary(self.nano // _NANO)
        return _decimal(self.nano, exponent=self.format is Format.DECIMAL_EXPONENT)


def parse_quantity(text: str) -> Quantity:
    """The quantity that `resource.ParseQuantity` reads from the text; InvalidQuantityError names the text and the rule.

    As there: no digits are zero, more than nano precision is rounded away from zero, binary values are capped at
    2^63-1 units, and a binary value below one unit becomes decimal.
    """
    match = _SYNTAX.fullmatch(text) if 0 < len(text) <= _MAX_LENGTH else None
    if match is None:
        raise _invalid(text)
    sign, whole, fraction, suffix = match.groups()
    base, power, fmt = _scale(suffix, text)
    numerator, denominator = int((whole + fraction) or "0") * _NANO, 10 ** len(fraction)
    if power >= 0:
        numerator *= base**power
    else:
        denominator *= base**-power
    nano = _up(numerator, denominator)
    if fmt is Format.BINARY_SI:
        nano = min(nano, _LARGEST)
        fmt = Format.DECIMAL_SI if 0 < nano < _NANO else fmt
    return Quantity(-nano if sign == "-" else nano, fmt)


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
