"""What the doctor can find: one value a check, and how it is told. Pure.

A problem has to be put right before claims work as promised; a note says what this node can't offer; unknown is what
could not be looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from nodedriver.facts import PciAddress


class Verdict(StrEnum):
    """How a check ended."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One check: what was found, why that matters, and what to do next ("" where nothing).

    `check` names a condition of PhysicalGPU, in the sense that True is good; `reason` is its CamelCase word. `gpu` is
    the card that it concerns, None for the whole node.
    """

    check: str
    verdict: Verdict
    reason: str
    what: str
    why: str = ""
    next_step: str = ""
    gpu: PciAddress | None = None

    @property
    def sentence(self) -> str:
        """What, why and what next, in one line."""
        return " ".join(part for part in (self.what, self.why, self.next_step) if part)


def ok(check: str, what: str, *, reason: str = "AsExpected", gpu: PciAddress | None = None) -> Finding:
    """Nothing to do."""
    return Finding(check=check, verdict=Verdict.OK, reason=reason, what=what, gpu=gpu)


def unknown(check: str, what: str, next_step: str) -> Finding:
    """It could not be looked at."""
    return Finding(check=check, verdict=Verdict.UNKNOWN, reason="NotSeen", what=what, next_step=next_step)


def about(findings: Iterable[Finding], gpu: PciAddress) -> list[Finding]:
    """What concerns that card, the node's own findings among it."""
    return [finding for finding in findings if finding.gpu in (None, gpu)]


def has_problem(findings: Iterable[Finding]) -> bool:
    """Whether something has to be put right."""
    return any(finding.verdict is Verdict.PROBLEM for finding in findings)
