"""Ask the oracle and our engine the same questions, many of them, and gather what differs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from tests.oracle import compare, ours
from tests.oracle.asking import Json, Oracle, OracleError
from tests.oracle.cases import allocation, grammar, selection
from tests.oracle.coverage import MEASURED, Coverage
from tests.oracle.judge import wrong_at_timeout, wrong_in_itself
from tests.oracle.shrink import shrunk

FUNCTION = re.compile(r"([A-Za-z][A-Za-z_0-9.]*)\(")
LEAST_CALLS = 1
"""How often each function is called at least in expressions that compile, of coverage.MEASURED cases. The rarest are
called ten times by the mean, so five, which were wanted once, failed one run in a few."""


@dataclass
class Tally:
    """What came of a run."""

    allocations: int = 0
    selections: int = 0
    timeouts: int = 0
    panics: int = 0
    texts: int = 0
    disagreements: list[Json] = field(default_factory=list)
    coverage: Coverage = field(default_factory=Coverage)
    values: Counter[str] = field(default_factory=Counter)
    functions: Counter[str] = field(default_factory=Counter)

    def report(self) -> Json:
        """The line that a run ends with."""
        return {
            "cases": {"allocate": self.allocations, "cel": self.selections},
            "disagreements": len(self.disagreements),
            "timeouts": self.timeouts,
            "panics": self.panics,
            "different_error_texts": self.texts,
            "coverage": self.coverage.report(),
            "values": dict(self.values),
            "functions": {name: self.functions[name] for name in functions()},
        }


def functions() -> list[str]:
    """All functions and macros that the grammar knows."""
    texts = [text for texts in grammar.TEMPLATES.values() for text in texts]
    return sorted({name.rpartition(".")[2] for text in texts for name in FUNCTION.findall(text)})


def lacking(tally: Tally) -> list[str]:
    """What the cases of this run touched too seldom, in words."""
    least = LEAST_CALLS * tally.selections // MEASURED
    return tally.coverage.lacking(tally.allocations) + [
        f"{name} was called in {tally.functions[name]} expressions, wanted are {least}"
        for name in functions()
        if tally.functions[name] < least
    ]


def allocate(oracle: Oracle, tally: Tally, seed: int, cases: int) -> None:
    """So many allocation cases from that seed."""
    for number in range(cases):
        question = allocation.question(f"{seed}-{number}")
        theirs = in_time(oracle, question)
        tally.allocations += 1
        tally.coverage.add(question, theirs)
        tally.timeouts += theirs.get("errorKind") == "timeout"
        _judge(oracle, tally, question, theirs)


def select(oracle: Oracle, tally: Tally, seed: int, cases: int) -> None:
    """At least so many expression x device cases from that seed."""
    for number in range(-(-cases // (selection.EXPRESSIONS * selection.DEVICES))):
        question = selection.question(f"{seed}-{number}")
        theirs = oracle.ask(question)
        tally.selections += len(question["expressions"]) * len(question["devices"])
        if theirs.get("errorKind") == "panic":
            tally.panics += 1
            continue
        _count(tally, question, theirs)
        _judge(oracle, tally, question, theirs)


def in_time(oracle: Oracle, question: Json) -> Json:
    """The oracle's answer; where the short limit of random cases was not enough, with the limit of the scheduler."""
    theirs = oracle.ask(question)
    if theirs.get("errorKind") != "timeout":
        return theirs
    return oracle.ask({name: value for name, value in question.items() if name != "timeoutSeconds"})


def _count(tally: Tally, question: Json, theirs: Json) -> None:
    for text, result in zip(question["expressions"], theirs["results"], strict=True):
        tally.values["compileError"] += "compileError" in result
        for value in result.get("values", ()):
            tally.values[str(value).lower() if isinstance(value, bool) else "error"] += 1
        if "values" in result:
            tally.functions.update({name.rpartition(".")[2] for name in FUNCTION.findall(text)})


def _judge(oracle: Oracle, tally: Tally, question: Json, theirs: Json) -> None:
    here = ours.answer(question)
    tally.texts += compare.different_texts(question, theirs, here)
    what = difference(question, theirs, here)
    if what is not None:
        tally.disagreements.append({"what": what, "question": question})


def difference(question: Json, theirs: Json, here: Json) -> str | None:
    """What differs, or what is wrong where the oracle ran out of time."""
    if theirs.get("errorKind") == "timeout":
        differs = wrong_at_timeout(here)
    else:
        differs = compare.disagreement(question, theirs, here)
    return differs or wrong_in_itself(question, here)


def smallest(oracle: Oracle, question: Json) -> tuple[Json, str]:
    """The question made small, and what differs then."""
    asked = difference_of(oracle)
    found = shrunk(question, lambda candidate: asked(candidate) is not None)
    return found, asked(found) or ""


def difference_of(oracle: Oracle) -> Callable[[Json], str | None]:
    """A function that asks both; what cannot be asked differs in nothing."""

    def asked(question: Json) -> str | None:
        try:
            return difference(question, in_time(oracle, question), ours.answer(question))
        except (OracleError, msgspec.ValidationError, KeyError, TypeError):  # a piece is gone that must be there
            return None

    return asked
