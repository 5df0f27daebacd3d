"""The doctor's findings for people, one paragraph a finding, and for programs, as JSON. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from nodedriver.doctor.findings import Finding, Verdict

_MARKS = {Verdict.OK: "ok", Verdict.NOTE: "note", Verdict.PROBLEM: "PROBLEM", Verdict.UNKNOWN: "not known"}
_WORST_FIRST = (Verdict.PROBLEM, Verdict.UNKNOWN, Verdict.NOTE, Verdict.OK)


def text(findings: Iterable[Finding]) -> str:
    """What has to be done first, what is as it should be last."""
    ordered = sorted(findings, key=lambda finding: _WORST_FIRST.index(finding.verdict))
    return "".join(f"{_paragraph(finding)}\n" for finding in ordered)


def as_json(findings: Iterable[Finding]) -> str:
    """A list of objects: check, verdict, reason, what, why, nextStep, gpu."""
    return msgspec.json.format(msgspec.json.encode([_plain(finding) for finding in findings]), indent=1).decode()


def _paragraph(finding: Finding) -> str:
    lines = [f"[{_MARKS[finding.verdict]}] {finding.check}: {finding.what}"]
    lines += [f"    why:  {finding.why}"] if finding.why else []
    lines += [f"    next: {finding.next_step}"] if finding.next_step else []
    return "\n".join(lines)


def _plain(finding: Finding) -> dict[str, str | None]:
    return {
        "check": finding.check,
        "verdict": finding.verdict.value,
        "reason": finding.reason,
        "what": finding.what,
        "why": finding.why,
        "nextStep": finding.next_step,
        "gpu": finding.gpu,
    }
