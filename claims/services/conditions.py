"""What a person's own conditions say of the devices of a class, now: how many match, and on which one fails.

A condition is asked once for each kind of device. Reads the fleet in memory only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from claims.services.kept import Kept
from dra.allocation import Snapshot
from dra.cel import CelCompileError, compile_expression
from gpuinventory.gpuclasses import Check, Finding, FindingCode, GPUClassView, check, expressions_of

_MOST: Final = 256  # answers
_CHECKS: Final = Kept[Check](_MOST)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a text stops to be a condition: `line` counts from 1, `text` is that line, `column` from 1 in it."""

    line: int
    column: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What one condition says of the `of` devices of the class. `wrong` is where and why it is none.

    `fails` are errors that it ends in on some devices; kube-scheduler gives the pod up when it meets one (KEP-4381).
    """

    text: str
    of: int
    check: Check
    fails: tuple[Finding, ...]
    wrong: Place | None


def condition(text: str, view: GPUClassView | None, snapshot: Snapshot) -> Condition:
    """What the condition says of that class, or of every device where none is chosen."""
    device_class = snapshot.classes.get(view.device_class) if view else None
    of_class = (*expressions_of(device_class), *(view.selectors if view else ())) if device_class else ()
    found = _CHECKS.answer(snapshot.pools, (of_class, text), lambda: check((*of_class, text), snapshot))
    return Condition(
        text=text,
        of=view.devices if view else found.total,
        check=found,
        fails=tuple(each for each in found.findings if _is_own(each, len(of_class))),
        wrong=_wrong(text),
    )


def _is_own(finding: Finding, before: int) -> bool:
    """Whether the condition itself fails, and not the class, which is asked before it."""
    return finding.code is FindingCode.ABORTS and finding.selector > before


def _wrong(text: str) -> Place | None:
    try:
        compile_expression(text, environment="new")
    except CelCompileError as error:
        lines = text.split("\n")
        line = min(error.line, len(lines))
        return Place(line, error.column, lines[line - 1])
    return None
