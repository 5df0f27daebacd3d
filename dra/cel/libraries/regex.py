r"""Regular expressions: find, findAll, and the compiled patterns that `matches` uses too.

RE2 is the engine on both sides (Go's regexp follows its syntax), so no pattern takes more than linear time. What is
left of the difference, `\C` and the texts of errors, is evened out here.
Follows k8s.io/apiserver/pkg/cel/library/regex.go.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Protocol

import re2

from dra.cel.errors import CelRuntimeError
from dra.cel.functions import Library, Overload
from dra.cel.types import INT, STRING, list_of

_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False
_ESCAPES: Final = re.compile(r"\\Q.*?(?:\\E|$)|\\(.)", re.DOTALL)
_GO_TEXTS: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "pattern too large - compile failed": "expression too large",
}


class Match(Protocol):
    """Where a pattern matched, in code points."""

    def group(self) -> str: ...
    def start(self) -> int: ...
    def end(self) -> int: ...


class Pattern(Protocol):
    """A compiled pattern."""

    def search(self, text: str | bytes) -> Match | None: ...
    def finditer(self, text: str) -> list[Match]: ...


@lru_cache(maxsize=256)
def compile_pattern(text: str) -> Pattern:
    """The compiled pattern; CelRuntimeError with Go's text, such as "error parsing regexp: missing closing ): `(`"."""
    if any(escape[1] == "C" for escape in _ESCAPES.finditer(text)):
        raise CelRuntimeError("error parsing regexp: invalid escape sequence: `\\C`")
    try:
        return re2.compile(text, _OPTIONS)  # type: ignore[no-any-return]
    except re2.error as fault:
        raise CelRuntimeError(f"error parsing regexp: {_go_text(fault.args[0].decode(errors='replace'))}") from fault


def _go_text(message: str) -> str:
    code, _, argument = message.partition(": ")
    return f"{_GO_TEXTS.get(code, code)}: `{argument}`"


def _compiled(pattern: str) -> Pattern:
    try:
        return compile_pattern(pattern)
    except CelRuntimeError as fault:
        raise CelRuntimeError(f"Illegal regex: {fault}") from fault


def _find(text: str, pattern: str) -> str:
    match = _compiled(pattern).search(text)
    return match.group() if match else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> tuple[str, ...]:
    """All matches, or so many; an empty one right after another match does not count (Go `FindAllString`)."""
    compiled, found, previous_end = _compiled(pattern), [], -1
    for match in compiled.finditer(text) if limit else ():
        if match.end() > match.start() or match.start() != previous_end:
            found.append(match.group())
        previous_end = match.end()
        if len(found) == limit:
            break
    return tuple(found)


FUNCTIONS: Final[Library] = {
    "find": (Overload("string_find_string", (STRING, STRING), STRING, _find, member=True),),
    "findAll": (
        Overload("string_find_all_string", (STRING, STRING), list_of(STRING), _find_all, member=True),
        Overload("string_find_all_string_int", (STRING, STRING, INT), list_of(STRING), _find_all, member=True),
    ),
}
