"""Versions read, order and print as blang/semver v4 and semverlib.go do; the answers were taken from those."""

from __future__ import annotations

import contextlib
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dra.errors import InvalidSemverError
from dra.semver import Semver, lenient_semver, parse_semver


@pytest.mark.parametrize(
    "text",
    [
        "0.0.0", "1.2.3", "10.20.30", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-0.3.7", "1.0.0-x-y-z.--", "1.0.0-0a",
        "1.0.0+001", "1.0.0-rc.1+build.5", "18446744073709551615.0.0", "1.2.3----RC-SNAPSHOT.12.9.1--.12+788",
    ],
)  # fmt: skip
def test_a_version_prints_as_it_was_written(text: str) -> None:
    assert str(parse_semver(text)) == text


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "not all there"), ("1", "not all there"), ("1.2", "not all there"), ("1.2.3.4", "patch '3.4' is no numb"),
        ("v1.2.3", "major 'v1' is no number"), ("a.2.3", "major 'a' is no number"), ("1..3", "minor '' is no number"),
        ("01.2.3", "major '01' has a leading zero"), ("1.02.3", "minor '02' has a leading zero"),
        ("1.2.03", "patch '03' has a leading zero"), ("1.2.3-01", "numeric pre-release '01' has a leading zero"),
        ("1.2.3-", "pre-release is empty"), ("1.2.3-a..b", "pre-release is empty"), ("1.2.3-é", "pre-release"),
        ("1.2.3+", "build metadata is empty"), ("1.2.3+a+b", "build metadata"), ("1.2.3+a..b", "build metadata"),
        ("18446744073709551616.0.0", "major is over 2^64-1"), ("1.2.3-18446744073709551616", "over 2^64-1"),
        (f"1.2.{'9' * 5000}", "patch is over 2^64-1"), (" 1.2.3", "major ' 1' is no number"), ("1.2.3\n", "patch"),
        ("-1.2.3", "major '-1' is no number"), ("1.\u0662.3", "minor '\u0662' is no number"),
    ],
)  # fmt: skip
def test_what_is_no_version_is_refused_with_its_rule(text: str, rule: str) -> None:
    with pytest.raises(InvalidSemverError) as error:
        parse_semver(text)

    assert rule in str(error.value)
    assert "is not a semantic version" in str(error.value)


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("1.2.3", "1.2.3"), ("v1.2.3", "1.2.3"), ("1", "1.0.0"), ("v1.2", "1.2.0"), ("01.02.03", "1.2.3"),
        ("000", "0.0.0"), ("1.2.03-rc", "1.2.3-rc"), ("1.2.00-rc", "1.2.0-rc"), ("1.2.3-01", None), ("1.2-rc", None),
        ("1+b", None), ("vv1", None), ("V1", None), (" 1", None), ("", None), ("1.2.x", None),
        ("570.86.15", "570.86.15"), ("1..3", None),
    ],
)  # fmt: skip
def test_normalizing_fills_up_and_strips(text: str, normalized: str | None) -> None:
    if normalized is None:
        with pytest.raises(InvalidSemverError):
            parse_semver(text, normalize=True)
    else:
        assert str(parse_semver(text, normalize=True)) == normalized


def test_the_order_is_that_of_semver_2() -> None:
    # https://semver.org, section 11
    texts = [
        "1.0.0-1", "1.0.0-2", "1.0.0-11", "1.0.0-A", "1.0.0-a", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta",
        "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.1", "1.1.0", "2.0.0-0", "2.0.0",
        "10.0.0",
    ]  # fmt: skip

    assert [str(version) for version in sorted(map(parse_semver, reversed(texts)))] == texts
    assert all(parse_semver(low) < parse_semver(high) for low, high in pairwise(texts))


def test_build_metadata_does_not_count_in_comparisons() -> None:
    one, other = parse_semver("1.0.0+a"), parse_semver("1.0.0+b")

    assert one == other
    assert hash(one) == hash(other)
    assert not one < other
    assert one <= other


@settings(deadline=None)
@given(st.text(max_size=60) | st.from_regex(r"\A[v0-9a-z.+-]{0,60}\Z"), st.booleans())
@example("." * 60, True)  # noqa: FBT003  # a value of the table
def test_any_text_is_a_version_or_a_named_error(text: str, normalize: bool) -> None:  # noqa: FBT001  # generated
    with contextlib.suppress(InvalidSemverError):
        assert isinstance(parse_semver(text, normalize=normalize), Semver)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("580.65.06", "580.65.6"),
        ("6.8.0-45-generic", "6.8.0"),
        ("535", "535.0.0"),
        ("6.12", "6.12.0"),
        ("1.2.3.4", "1.2.3"),
        ("v1.2", None),
        ("", None),
    ],
)
def test_drivers_have_numbers_that_are_no_semver(text: str, version: str | None) -> None:
    assert lenient_semver(text) == version
