"""What Go prints and sorts: known texts, and properties that hold for any value."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra.cel.libraries.go_sort import sorted_indices
from dra.cel.libraries.go_text import english_fixed, general, parse_int, quote, shortest_decimal
from dra.cel.libraries.go_time import civil_of, parse_timestamp, timestamp_text
from dra.cel.values import Timestamp

FIRST, LAST = -62135596800 * 10**9, 253402300800 * 10**9 - 1


@pytest.mark.parametrize(
    ("number", "text"),
    [(1e5, "100000"), (1e6, "1e+06"), (1e-4, "0.0001"), (1e-5, "1e-05"), (-0.0, "-0"), (-math.inf, "-Inf")],
)
def test_general_writes_an_exponent_outside_of_five_digits(number: float, text: str) -> None:
    assert general(number) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_shortest_texts_read_back(number: float) -> None:
    assert float(general(number)) == float(shortest_decimal(number)) == number


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 250))
def test_fixed_is_python_s_but_for_the_sign_of_zero(number: float, precision: int) -> None:
    assert english_fixed(number or 0.0, precision) == f"{number or 0.0:,.{precision}f}"


@given(st.text(st.characters(max_codepoint=0x7E, min_codepoint=0x20)))
def test_plain_text_is_quoted_as_json_quotes_it(text: str) -> None:
    assert quote(text) == json.dumps(text)


@given(st.integers(-(2**63), 2**63 - 1))
def test_whole_numbers_read_back(number: int) -> None:
    assert parse_int(f"{number:+}") == number


@pytest.mark.parametrize("text", ["", "+", " 1", "1_0", "１", "9223372036854775808"])  # noqa: RUF001  # a wide digit
def test_what_is_no_whole_number_of_64_bits(text: str) -> None:
    with pytest.raises(ValueError, match=r"strconv\.Atoi: parsing"):
        parse_int(text)


@given(st.integers(FIRST, LAST), st.integers(-23 * 60, 23 * 60))
def test_timestamps_read_back_with_their_offset(nanoseconds: int, minutes: int) -> None:
    timestamp = Timestamp(nanoseconds, minutes * 60)
    text = timestamp_text(timestamp)
    if not 1 <= civil_of(nanoseconds, timestamp.offset).year <= 9999:
        return
    read = parse_timestamp(text)
    assert read is not None
    assert (read.nanoseconds, read.offset) == (nanoseconds, timestamp.offset)


@given(st.lists(st.integers(0, 40), max_size=200))
def test_sorted_indices_are_in_order_and_complete(keys: list[int]) -> None:
    order = sorted_indices(len(keys), lambda left, right: keys[left] < keys[right])
    assert sorted(order) == list(range(len(keys)))
    assert [keys[index] for index in order] == sorted(keys)


def test_up_to_twelve_equal_keys_keep_their_order() -> None:
    assert sorted_indices(12, lambda left, right: left % 2 < right % 2) == [0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11]
