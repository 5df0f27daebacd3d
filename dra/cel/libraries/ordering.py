"""The order of two values, which sorting, `min` and `max` share; `<` has overloads of its own.

Follows the `Compare` methods of cel-go common/types: numbers compare over their types, others within one.
"""

from __future__ import annotations

from typing import Final

from dra.cel.values import Duration, Timestamp, UInt

_NUMBERS: Final = (int, UInt, float)
_COMPARABLE: Final = frozenset({*_NUMBERS, bool, str, bytes, Duration, Timestamp})


def is_comparable(value: object) -> bool:
    """Whether values of its type have an order (cel-go `traits.Comparer`)."""
    return type(value) in _COMPARABLE


def compare(left: object, right: object) -> int | None:
    """-1, 0 or 1, or None where cel-go has an error: values of different types, or no number (NaN)."""
    if type(left) is not type(right) and not (type(left) in _NUMBERS and type(right) in _NUMBERS):
        return None
    if left != left or right != right:  # noqa: PLR0124  # NaN
        return None
    if left == right:
        return 0
    return -1 if left < right else 1  # type: ignore[operator]
