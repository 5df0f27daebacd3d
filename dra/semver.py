"""Semantic versions by Kubernetes' rules: parse, order, print.

Follows github.com/blang/semver/v4 `Parse` and `Version.Compare`, and k8s.io/apiserver/pkg/cel/library/semverlib.go
`normalizeAndParse`. Pre-release counts in the order, build metadata does not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache, total_ordering
from typing import Final

from dra.errors import InvalidSemverError

type _Identifier = tuple[int, int, str]
type Precedence = tuple[int, int, int, bool, tuple[_Identifier, ...]]

_DIGITS: Final = re.compile(r"[0-9]*")
_ALPHANUMERIC: Final = re.compile(r"[0-9A-Za-z-]+")
_NUMBERS: Final = re.compile(r"[0-9]+(\.[0-9]+){0,2}")
_MAX_NUMBER: Final = 2**64 - 1  # uint64
_MAX_NUMBER_DIGITS: Final = 20
_PARTS: Final = 3


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Semver:
    """One version. Equal and ordered by `precedence`, so 1.0.0+a equals 1.0.0+b.

    Numbers go up to 2^64-1, as upstream's; a CEL `int` made of one wraps at 2^63.
    """

    major: int
    minor: int
    patch: int
    pre_release: tuple[int | str, ...]
    build: tuple[str, ...]
    precedence: Precedence

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self.precedence == other.precedence

    def __lt__(self, other: Semver) -> bool:
        return self.precedence < other.precedence

    def __hash__(self) -> int:
        return hash(self.precedence)

    def __str__(self) -> str:
        pre_release = "-" + ".".join(map(str, self.pre_release)) if self.pre_release else ""
        build = "+" + ".".join(self.build) if self.build else ""
        return f"{self.major}.{self.minor}.{self.patch}{pre_release}{build}"


@lru_cache(maxsize=4096)
def parse_semver(text: str, *, normalize: bool = False) -> Semver:
    """The version that `semver(text, normalize)` of CEL reads; InvalidSemverError names the text and the rule.

    `normalize` takes a leading "v" away, drops leading zeros, and fills a missing minor and patch with 0.
    """
    parts = (_normalized(text) if normalize else text).split(".", 2)
    if len(parts) != _PARTS:
        raise _invalid(text, "major.minor.patch are not all there")
    rest, plus, build = parts[2].partition("+")
    patch, minus, pre_release = rest.partition("-")
    numbers = [
        _number(part, text, name) for part, name in zip((*parts[:2], patch), ("major", "minor", "patch"), strict=True)
    ]
    identifiers = tuple(_identifier(part, text) for part in pre_release.split(".")) if minus else ()
    metadata = tuple(build.split(".")) if plus else ()
    if not all(map(_ALPHANUMERIC.fullmatch, metadata)):
        raise _invalid(text, "build metadata is empty or holds other characters than 0-9 A-Z a-z -")
    return _version((numbers[0], numbers[1], numbers[2]), identifiers, metadata)


def lenient_semver(version: str) -> str | None:
    """The version numbers that a text begins with, such as 580.65.06, as major.minor.patch (580.65.6); None without."""
    numbers = _NUMBERS.match(version)
    if numbers is None:
        return None
    parts = [str(int(part)) for part in numbers[0].split(".")]
    return ".".join((*parts, "0", "0")[:_PARTS])


def _version(numbers: tuple[int, int, int], pre_release: tuple[int | str, ...], build: tuple[str, ...]) -> Semver:
    """A version without pre-release stands above every pre-release of it; numbers stand below words."""
    words = tuple((0, part, "") if isinstance(part, int) else (1, 0, part) for part in pre_release)
    return Semver(*numbers, pre_release, build, (*numbers, not pre_release, words))


def _number(part: str, text: str, name: str) -> int:
    if not part or not _DIGITS.fullmatch(part):
        raise _invalid(text, f"{name} {part!r} is no number")
    if len(part) > 1 and part[0] == "0":
        raise _invalid(text, f"{name} {part!r} has a leading zero")
    if len(part) > _MAX_NUMBER_DIGITS or int(part) > _MAX_NUMBER:
        raise _invalid(text, f"{name} is over 2^64-1")
    return int(part)


def _identifier(part: str, text: str) -> int | str:
    if not _ALPHANUMERIC.fullmatch(part):
        raise _invalid(text, "pre-release is empty or holds other characters than 0-9 A-Z a-z -")
    return _number(part, text, "numeric pre-release") if _DIGITS.fullmatch(part) else part


def _normalized(text: str) -> str:
    parts = [_without_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < _PARTS and set("+-") & set(parts[-1]):
        raise _invalid(text, "a short version can't have pre-release or build metadata")
    return ".".join(parts + ["0"] * (_PARTS - len(parts)))


def _without_zeros(part: str) -> str:
    if len(part) <= 1:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped[:1] in set("0123456789") else "0" + stripped


def _invalid(text: str, rule: str) -> InvalidSemverError:
    shown = text if len(text) <= 80 else text[:77] + "..."  # hostile input can be long
    return InvalidSemverError(f"{shown!r} is not a semantic version: {rule}; write one such as 1.2.3 or 1.2.3-rc.1")
