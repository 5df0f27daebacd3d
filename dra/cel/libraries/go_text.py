"""Texts as Go prints and reads them: quoted strings, numbers with and without a locale. Knows no CEL.

Follows strconv (`Quote`, `FormatFloat`, `Atoi`) and golang.org/x/text/message for English, which groups thousands.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Final

ESCAPES: Final = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    "\\": r"\\",
    '"': r"\"",
}
_BYTE_SURROGATES: Final = dict.fromkeys(range(0xDC80, 0xDD00), "\ufffd")
_SMALLEST_PLAIN: Final = -4  # powers of ten between which %g writes no exponent
_LARGEST_PLAIN: Final = 5
_SUPERSCRIPTS: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_LARGEST_NUMBER_IN_FORMAT: Final = 1_000_000


def quote(text: str) -> str:
    """The text as a double-quoted Go literal (strconv.Quote)."""
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(char: str) -> str:
    if char in ESCAPES:
        return ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def from_bytes(raw: bytes) -> str:
    """Bytes of a Go string as text; each byte that is no UTF-8 becomes U+FFFD, as Go shows it."""
    return raw.decode("utf-8", "surrogateescape").translate(_BYTE_SURROGATES)


def parse_int(text: str) -> int:
    """The number that strconv.Atoi reads; ValueError with its text."""
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"strconv.Atoi: parsing {quote(text)}: invalid syntax")
    digits = text.lstrip("+-0")
    number = int(text) if len(digits) <= 19 else 2**63
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"strconv.Atoi: parsing {quote(text)}: value out of range")
    return number


def general(number: float) -> str:
    """%g: the shortest text that reads back as the number, with an exponent when it is very small or large."""
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "+Inf" if number > 0 else "-Inf"
    sign, digits, point = _shortest(number)
    exponent = point - 1
    if _SMALLEST_PLAIN <= exponent <= _LARGEST_PLAIN:
        return sign + _positional(digits, point)
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{sign}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def shortest_decimal(number: float) -> str:
    """The shortest text without an exponent that reads back as the number (FormatFloat 'f', -1)."""
    sign, digits, point = _shortest(number)
    return sign + _positional(digits, point)


def _shortest(number: float) -> tuple[str, str, int]:
    """Sign, significant digits without zeros at the end, and how many of them stand before the point."""
    parts = Decimal(repr(number)).as_tuple()
    digits = "".join(map(str, parts.digits))
    point = len(digits) + int(parts.exponent)
    return "-" if parts.sign else "", digits.rstrip("0") or "0", point if number else 1


def _positional(digits: str, point: int) -> str:
    if point <= 0:
        return "0." + "0" * -point + digits
    whole, fraction = digits[:point].ljust(point, "0"), digits[point:]
    return f"{whole}.{fraction}" if fraction else whole


def english_fixed(number: float, precision: int) -> str:
    """%.<precision>f for English: thousands grouped, ∞ for infinity.

    As x/text keeps the precision in 8 bits for zeros to add and in 16 (signed) for digits to keep, so does this.
    """
    if not math.isfinite(number):
        return _not_finite(number)
    kept, padded = (precision + 0x8000) % 0x10000 - 0x8000, precision % 0x100
    text = f"{abs(number):.{kept}f}" if kept >= 0 else shortest_decimal(abs(number))
    whole, _, fraction = text.partition(".")
    fraction = fraction.rstrip("0").ljust(padded, "0")
    return ("-" if number < 0 else "") + f"{int(whole):,}" + (f".{fraction}" if fraction else "")


def english_scientific(number: float, width: int) -> str:
    """%<width>e for English, always with six digits after the point, and spaces in front up to the width."""
    if not math.isfinite(number):
        text = _not_finite(number)
    else:
        mantissa, _, exponent = f"{number or 0.0:.6e}".partition("e")
        power = f"{'-' if exponent[0] == '-' else ''}{exponent[1:]}".translate(_SUPERSCRIPTS)
        text = f"{mantissa}\u00d710{power}"
    return text.rjust(width % 0x10000)


def number_fits_format(number: int) -> bool:
    """Whether x/text takes the number as width or precision; of one it does not, it prints `%!(NOVERB)`."""
    return number < 10 or number // 10 <= _LARGEST_NUMBER_IN_FORMAT


def _not_finite(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return "∞" if number > 0 else "-∞"
