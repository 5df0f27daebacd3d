"""Ranges of unsigned 64-bit numbers that stop at the largest instead of overflowing: costs and sizes.

Follows `CostEstimate` and `SizeEstimate` of cel-go checker/cost.go, which share their arithmetic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

LARGEST: Final = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Range:
    """From `least` to `most`, both included."""

    least: int
    most: int

    @classmethod
    def exactly(cls, value: int) -> Range:
        """The one value."""
        return cls(value, value)

    def __add__(self, other: Range) -> Range:
        return Range(_capped(self.least + other.least), _capped(self.most + other.most))

    def __mul__(self, other: Range) -> Range:
        return Range(_capped(self.least * other.least), _capped(self.most * other.most))

    def __or__(self, other: Range) -> Range:
        """The range that holds both."""
        return Range(min(self.least, other.least), max(self.most, other.most))

    def scaled(self, factor: float) -> Range:
        """Both ends times the factor, rounded up."""
        return Range(scaled(self.least, factor), scaled(self.most, factor))


UNKNOWN: Final = Range(0, LARGEST)
ZERO: Final = Range(0, 0)
ONE: Final = Range(1, 1)


def scaled(value: int, factor: float) -> int:
    """The value times the factor in double precision, rounded up (cel-go `multiplyByCostFactor`)."""
    product = float(value) * factor
    return LARGEST if product >= 2.0**64 else math.ceil(product)


def _capped(value: int) -> int:
    return min(value, LARGEST)
