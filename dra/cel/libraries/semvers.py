"""Functions of semantic versions. Parsing and order are those of `dra.semver`.

Follows k8s.io/apiserver/pkg/cel/library/semverlib.go at version 1.
"""

from __future__ import annotations

from typing import Final

from dra.cel.errors import CelRuntimeError
from dra.cel.functions import Library, Overload
from dra.cel.types import BOOL, INT, SEMVER, STRING
from dra.errors import InvalidSemverError
from dra.semver import Semver, parse_semver


def _semver(text: str, normalize: bool = False) -> Semver:  # noqa: FBT001, FBT002  # positional in CEL
    try:
        return parse_semver(text, normalize=normalize)
    except InvalidSemverError as fault:
        raise CelRuntimeError(str(fault)) from fault


def _is_semver(text: str, normalize: bool = False) -> bool:  # noqa: FBT001, FBT002  # positional in CEL
    try:
        parse_semver(text, normalize=normalize)
    except InvalidSemverError:
        return False
    return True


def _major(version: Semver) -> int:
    return _wrapped(version.major)


def _minor(version: Semver) -> int:
    return _wrapped(version.minor)


def _patch(version: Semver) -> int:
    return _wrapped(version.patch)


def _wrapped(number: int) -> int:
    """An unsigned 64-bit number as Go converts it to a signed one."""
    return number if number < 2**63 else number - 2**64


def _is_greater_than(left: Semver, right: Semver) -> bool:
    return left.precedence > right.precedence


def _is_less_than(left: Semver, right: Semver) -> bool:
    return left.precedence < right.precedence


def _compare_to(left: Semver, right: Semver) -> int:
    return (left.precedence > right.precedence) - (left.precedence < right.precedence)


FUNCTIONS: Final[Library] = {
    "semver": (
        Overload("string_to_semver", (STRING,), SEMVER, _semver),
        Overload("string_bool_to_semver", (STRING, BOOL), SEMVER, _semver),
    ),
    "isSemver": (
        Overload("is_semver_string", (STRING,), BOOL, _is_semver),
        Overload("is_semver_string_bool", (STRING, BOOL), BOOL, _is_semver),
    ),
    "isGreaterThan": (Overload("semver_is_greater_than", (SEMVER, SEMVER), BOOL, _is_greater_than, member=True),),
    "isLessThan": (Overload("semver_is_less_than", (SEMVER, SEMVER), BOOL, _is_less_than, member=True),),
    "compareTo": (Overload("semver_compare_to", (SEMVER, SEMVER), INT, _compare_to, member=True),),
    "major": (Overload("semver_major", (SEMVER,), INT, _major, member=True),),
    "minor": (Overload("semver_minor", (SEMVER,), INT, _minor, member=True),),
    "patch": (Overload("semver_patch", (SEMVER,), INT, _patch, member=True),),
}
