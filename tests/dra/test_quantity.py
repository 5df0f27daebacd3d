"""Quantities read, round and print as apimachinery's `resource.Quantity` does.

The rows are those of apimachinery v0.37.2 `quantity_test.go`: text, then value as mantissa and power of ten.
"""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dra.errors import InvalidQuantityError
from dra.quantity import Format, Quantity, parse_quantity

DECIMAL, BINARY, EXPONENT = Format.DECIMAL_SI, Format.BINARY_SI, Format.DECIMAL_EXPONENT
MAX = 2**63 - 1


@pytest.mark.parametrize(
    ("text", "mantissa", "power", "fmt"),
    [
        ("0", 0, 0, DECIMAL), ("0n", 0, 0, DECIMAL), ("0Ki", 0, 0, BINARY), ("0T", 0, 0, DECIMAL),
        ("1", 1, 0, DECIMAL), ("1Ki", 1024, 0, BINARY), ("7Mi", 7 * 1024**2, 0, BINARY),
        ("3Ei", 3 * 1024**6, 0, BINARY),
        ("5n", 5, -9, DECIMAL), ("4u", 4, -6, DECIMAL), ("3m", 3, -3, DECIMAL), ("8k", 8, 3, DECIMAL),
        ("50k", 5, 4, DECIMAL), ("300T", 3, 14, DECIMAL), ("1E", 1, 18, DECIMAL), ("12E", 12, 18, DECIMAL),
        ("1E-3", 1, -3, EXPONENT), ("1e3", 1, 3, EXPONENT), ("1.3E+6", 13, 5, EXPONENT), ("1e14", 1, 14, EXPONENT),
        ("100.035k", 100035, 0, DECIMAL), ("0.0005k", 5, -1, DECIMAL), ("0.5e-2", 5, -3, EXPONENT),
        ("1.01E", 101, 16, DECIMAL), ("1.G", 1, 9, DECIMAL), (".0001k", 1, -1, DECIMAL), (".", 0, 0, DECIMAL),
        ("3.001n", 4, -9, DECIMAL), ("1.1E-9", 2, -9, EXPONENT), ("0.0000000001", 1, -9, DECIMAL),
        ("0.00000012345", 124, -9, DECIMAL), ("0.00000012354", 124, -9, DECIMAL),
        ("9Ei", MAX, 0, BINARY), ("9223372036854775807Ki", MAX, 0, BINARY),
        ("100.035Ki", 10243584, -2, BINARY), ("0.5Mi", 524288, 0, BINARY), ("0.05Gi", 536870912, -1, BINARY),
        ("0.000000000001Ki", 2, -9, DECIMAL),
    ],
)  # fmt: skip
def test_text_to_value_and_format(text: str, mantissa: int, power: int, fmt: Format) -> None:
    nano = mantissa * 10 ** (9 + power)

    for sign, factor in (("", 1), ("+", 1), ("-", -1)):
        assert (parse_quantity(sign + text).nano, parse_quantity(sign + text).format) == (factor * nano, fmt)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1.1.M",
        "1+1.0M",
        "0.1mi",
        "0.1am",
        "aoeu",
        ".5i",
        "1i",
        "-3.01i",
        "-3.01e-",
        " 1",
        "1 ",
        "200K",
        "1e" + "9" * 300,
    ],
)
def test_what_is_no_quantity_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(InvalidQuantityError, match="is not a quantity"):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1024Mi", "1Gi"), ("1536Mi", "1536Mi"), ("0.5Gi", "512Mi"), ("1023Ki", "1023Ki"), ("1Ki", "1Ki"),
        ("0.5Ki", "512"), ("1.5Ki", "1536"), ("100.035Ki", "102435840m"), ("81559Mi", "81559Mi"),
        ("1000", "1k"), ("1000000", "1M"), ("1500m", "1500m"), ("2000m", "2"), ("100k", "100k"), ("0.1", "100m"),
        ("1e3", "1e3"), ("1e4", "10e3"), ("0.5e0", "500e-3"), ("0Gi", "0"), ("-1.5Gi", "-1536Mi"),
        ("610.3515625Ki", "625000"), ("625000", "625k"),
    ],
)  # fmt: skip
def test_canonical_print(text: str, canonical: str) -> None:
    assert str(parse_quantity(text)) == canonical


@pytest.mark.parametrize(
    ("text", "units"), [("9.01", 10), ("-9.01", -10), ("1n", 1), ("100m", 1), ("2000m", 2), ("1Gi", 1073741824)]
)
def test_value_rounds_away_from_zero(text: str, units: int) -> None:
    assert parse_quantity(text).value == units


def test_the_format_of_a_sum_is_that_of_its_first_term_that_is_not_zero() -> None:
    one, zero = parse_quantity("1Gi"), parse_quantity("0")

    assert [str(one + zero), str(zero + one), str(zero - one)] == ["1Gi", "1Gi", "-1Gi"]


def test_order_is_by_value_whatever_the_format() -> None:
    texts = ["-1Gi", "50m", "100m", "1", "1Ki", "1025", "100Gi", "10P"]

    assert [str(quantity) for quantity in sorted(map(parse_quantity, reversed(texts)))] == texts
    assert parse_quantity("1024") == parse_quantity("1Ki")
    assert parse_quantity("1024") <= parse_quantity("1Ki")


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("1.100", "1.100"), ("0005", "0005"), ("+5", "+5"), ("1E3", "1E3"), ("1.000001", "1.000001"),
        ("2000m", "2"), ("1.5", "1500m"), ("0.100", "100m"), ("1025Ki", "1025Ki"), ("0012Ki", "0012Ki"),
        ("1.5Ki", "1536"), ("99999999999999999999", "99999999999999999999"), ("9Ei", "9223372036854775807"),
    ],
)  # fmt: skip
def test_a_spelling_that_upstream_takes_for_canonical_is_kept_until_computed_with(text: str, printed: str) -> None:
    quantity = parse_quantity(text)
    computed = {"1.100": "1100m", "0005": "5", "+5": "5", "1E3": "1e3", "1.000001": "1000001u", "0012Ki": "12Ki"}

    assert str(quantity) == printed
    assert str(quantity + parse_quantity("0")) == computed.get(text, printed)


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("3", 3), ("-3", -3), ("3k", 3000), ("1e18", 10**18), ("9E", 9 * 10**18), ("10E", None), ("1Gi", 1024**3),
        ("99999Gi", 99999 * 1024**3), ("100000Gi", None), ("1Pi", None), ("1.0", None), ("2000m", None), ("1.5k", 1500),
        ("0.5Gi", None), ("123456789012345678", 123456789012345678), ("1234567890123456789", None),
    ],
)  # fmt: skip
def test_what_upstream_holds_as_an_int64(text: str, units: int | None) -> None:
    assert parse_quantity(text).as_int64() == units


@pytest.mark.parametrize(
    ("left", "right", "units"),
    [
        ("1", "2", 3), ("1k", "0", 1000), ("0", "1k", 1000), ("1k", "1", 1001), ("1", "1m", None), ("1Pi", "1", None),
        ("9E", "1E", None), ("0", "1Pi", None),
    ],
)  # fmt: skip
def test_a_sum_is_an_int64_where_both_terms_are_and_it_fits(left: str, right: str, units: int | None) -> None:
    assert (parse_quantity(left) + parse_quantity(right)).as_int64() == units


@pytest.mark.parametrize(
    ("text", "milli", "thousands"),
    [("1", 1000, 1), ("1u", 1, 1), ("-1u", -1, -1), ("2k", 2000000, 2), ("2001", 2001000, 3), ("0", 0, 0)],
)
def test_scaled_values_round_away_from_zero(text: str, milli: int, thousands: int) -> None:
    quantity = parse_quantity(text)

    assert (quantity.milli_value, quantity.scaled_value(3)) == (milli, thousands)


@pytest.mark.parametrize(
    ("text", "number"),
    [("1.5", 1.5), ("100m", 0.1), ("3n", 3.0000000000000004e-09), ("1Gi", 1073741824.0), ("0.5Gi", 536870912.0),
     ("10E", 1e19), ("-2.5e3", -2500.0), ("1e400", float("inf")), ("-1e400", float("-inf"))],
)  # fmt: skip
def test_the_approximate_float(text: str, number: float) -> None:
    assert parse_quantity(text).approximate_float() == number


@pytest.mark.parametrize("text", [".Pi", "+Pi", "e-10", ".n1", "-.Ei"])
def test_without_digits_only_what_needs_no_decimal_is_zero(text: str) -> None:
    with pytest.raises(InvalidQuantityError):
        parse_quantity(text)


@given(st.integers(-(2**63) * 10**9, 2**63 * 10**9), st.sampled_from(Format))
def test_what_is_printed_reads_back_as_the_same_value(nano: int, fmt: Format) -> None:
    quantity = Quantity(nano, fmt)
    if fmt is Format.BINARY_SI and abs(nano) > MAX * 10**9:
        return  # printed whole, but read back capped, as the API server does

    assert parse_quantity(str(quantity)).nano == nano
    # A binary value without a binary suffix is printed in bare digits, which read as decimal from then on (625k).
    if fmt is not Format.BINARY_SI or str(quantity).endswith("i"):
        assert str(parse_quantity(str(quantity))) == str(quantity)


def test_the_largest_and_smallest_that_are_read_can_be_added_and_printed() -> None:
    total = parse_quantity("1e1000") + parse_quantity("1n")

    assert str(total) == "1" + "0" * 1008 + "1e-9"
    assert len(str(parse_quantity("9" * 256))) == 256
    assert len(str(parse_quantity("9" * 200 + "e1000") - parse_quantity("1n"))) == 1212


@settings(deadline=None)
@given(st.text(max_size=40) | st.from_regex(r"\A[+-]?[0-9.]{0,300}[eEinumkKMGTP0-9+-]{0,20}\Z"))
def test_any_text_is_a_quantity_or_a_named_error(text: str) -> None:
    with contextlib.suppress(InvalidQuantityError):
        assert isinstance(parse_quantity(text), Quantity)
