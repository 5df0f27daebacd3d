"""Whether two answers agree: the oracle's and ours. What counts is written here and nowhere else.

Allocation: the results of all claims with devices in their order, consumed capacity, configuration, node selector; or
the class of the error. Selectors: the value, or that there is an error; where costs are asked for, those too.
Texts of errors may differ: they are counted apart.
"""

from __future__ import annotations

import re

from tests.oracle.asking import Json

MACRO = re.compile(r"\.(all|exists|exists_one|existsOne|filter|map|transform\w+)\(")
MAP = re.compile(r"\{|attributes|capacity")


def disagreement(question: Json, theirs: Json, ours: Json) -> str | None:
    """What differs, in one line; None where they agree. A time-out of the oracle is no answer."""
    if question["kind"] == "cel":
        return _of_selectors(question, theirs["results"], ours["results"])
    if theirs.get("errorKind") == "timeout":
        return None
    if outcome(theirs) != outcome(ours):
        return f"{outcome(theirs)} in the oracle, {outcome(ours)} here: {said(theirs)} and {said(ours)}"
    if canonical(theirs.get("allocations")) != canonical(ours.get("allocations")):
        return f"{theirs['allocations']} in the oracle, {ours['allocations']} here"
    return None


def outcome(answer: Json) -> str:
    """allocated, refused, or the class of the error."""
    if kind := answer.get("errorKind"):
        return str(kind)
    return "refused" if answer["allocations"] is None else "allocated"


def said(answer: Json) -> str:
    """The answer in short, for people."""
    return str(answer.get("error", answer.get("allocations")))


def canonical(value: object) -> object:
    """The JSON value without fields that say nothing, and with the operator that a toleration has by default."""
    if isinstance(value, list):
        return [canonical(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    kept = {
        key: canonical(entry) for key, entry in value.items() if entry not in (None, False, [], {}) or key == "shareID"
    }
    if isinstance(value.get("tolerations"), list):
        kept["tolerations"] = [{"operator": "Equal"} | entry for entry in value["tolerations"]]
    return kept


def different_texts(question: Json, theirs: Json, ours: Json) -> int:
    """How many error texts are not the same."""
    if question["kind"] == "allocate":
        return int(theirs.get("error") != ours.get("error") and theirs.get("errorKind") != "timeout")
    pairs = [(a, b) for a, b in zip(theirs["results"], ours["results"], strict=True) if "values" in a and "values" in b]
    return sum(one != other for a, b in pairs for one, other in zip(a["values"], b["values"], strict=True))


def _of_selectors(question: Json, theirs: list[Json], ours: list[Json]) -> str | None:
    for text, one, other in zip(question["expressions"], theirs, ours, strict=True):
        if ("compileError" in one) != ("compileError" in other) or "crash" in other:
            return f"{text!r}: {one.get('compileError', 'compiles')} in the oracle, {_compiled(other)} here"
        if "values" in one and (differs := _of_values(text, one, other)):
            return differs
    return None


def _compiled(result: Json) -> str:
    return str(result.get("compileError") or result.get("crash") or "compiles")


def _of_values(text: str, theirs: Json, ours: Json) -> str | None:
    for number, (one, other) in enumerate(zip(theirs["values"], ours["values"], strict=True)):
        if _class(one) != _class(other):
            return f"{text!r} on device {number}: {one} in the oracle, {other} here"
    # How soon a macro over a map ends, and so its cost, depends on the random order of a Go map.
    if "costs" in theirs and not (MACRO.search(text) and MAP.search(text)):
        for key in ("maxCost", "costs"):
            if theirs[key] != ours[key]:
                return f"{text!r}: {key} {theirs[key]} in the oracle, {ours[key]} here"
    return None


def _class(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return "crash" if "crash" in value else "error"
