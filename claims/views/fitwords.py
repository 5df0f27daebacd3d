"""The catalogue of sentences about what fits: every reason, step, warning and change in words.

Pure. A fact that a code carries is said; foreign texts are cut to a length that a line holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from claims.refusals import quoted
from claims.services.fit import Change, Proposal
from claims.views.fitconditions import amount, condition_words
from claims.wish import Choice, Wish, numbers_given
from dra.advice.explanation import AdviceWarning, Code, Facts, Miss, Step, StepKind, WarningCode
from dra.fleet import PodObstacle, PodRule

MISSES: Final[Mapping[Code, str]] = {
    Code.POOL_INCOMPLETE: "pool {pool} is not read in full: {reason}",
    Code.POOL_INVALID: "pool {pool} can't be used: {reason}",
    Code.FEATURE_OFF: "needs the feature gate {gate}, which is off",
    Code.CLASS_MISSING: "the class {device_class} does not exist",
    Code.SELECTOR_FALSE: "“{conjunct}” is false",
    Code.SELECTOR_ERROR: "“{conjunct}” can't be evaluated: {error}",
    Code.TAINT_NOT_TOLERATED: "is tainted with {taint}",
    Code.DEVICE_IN_USE: "is in use",
    Code.COUNTER_SHORT: "needs {needed} of {counter_set}/{counter}, {left} left",
    Code.CAPACITY_ABSENT: "has no {capacity}, asked for {requested}",
    Code.CAPACITY_POLICY: "{needed} of {capacity} can't be had: {rule}",
    Code.CAPACITY_SHORT: "needs {needed} of {capacity}, {left} left of {value}",
    Code.CAPACITY_FAULT: "has a capacity that can't be read: {error}",
    Code.CONSTRAINT_ABSENT: "has no {attribute}",
    Code.CONSTRAINT_MATCH: "{found} with the {attribute} {value}, {needed} are needed",
    Code.CONSTRAINT_DISTINCT: "has the same {attribute} as {device}: {value}",
    Code.COUNT_SHORT: "one node must have {needed}, and this one has {found} left",
    Code.COUNT_TOGETHER: "one node must have {needed} beside {beside}, and this one has {found} left",
    Code.COUNT_OVER_LIMIT: "{needed} are more than the {limit} that one resource claim takes",
}
STEPS: Final[Mapping[StepKind, str]] = {
    StepKind.DEVICES: "All devices seen",
    StepKind.CLASS: "The class {device_class} takes it",
    StepKind.SELECTOR: "It is of the GPU class",
    StepKind.TAINT: "No taint keeps it away",
    StepKind.IN_USE: "Nobody holds it",
    StepKind.COUNTERS: "Its card has room for it",
    StepKind.CAPACITY: "Enough of it is left",
    StepKind.CONSTRAINT: "{attribute} as you ask",
    StepKind.COUNT: "{needed} together on one node",
}
WARNINGS: Final[Mapping[WarningCode, str]] = {
    WarningCode.SCHEDULER_ABORTS: "Kubernetes would give the pod up on all nodes when it looks at {node}: {message}",
    WarningCode.NODE_FAILS: "Node {node} is left out: {message}",
    WarningCode.SEARCH_GAVE_UP: "The search for {node} took too long, so its answer is not known.",
    WarningCode.SCHEDULER_TIMES_OUT: (
        "On {node} Kubernetes would likely search for about {seconds} s ({steps} steps) and give up at 10 s."
    ),
    WarningCode.SELECTOR_MAY_ABORT: (
        "Once the free devices before them are taken, {devices} devices such as {device} end the search for all nodes: "
        "{conjunct} fails with {error}. Guard the key with has()."
    ),
}
CHANGES: Final[Mapping[Change, str]] = {
    Change.COUNT: "{after} instead of {before}",
    Change.SHARE: "{after} % instead of {before} %",
    Change.MEMORY: "At least {after} instead of {before}",
    Change.PROFILE: "Slice {after} instead of {before}",
    Change.CONDITION: "{after} instead of {before} in your condition",
    Change.DEVICE_CLASS: "{after} instead of {before}",
    Change.ALTERNATIVE: "{after} as an alternative",
    Change.CONSTRAINT: "Without the constraint on {before}",
    Change.TOLERATION: "Tolerate {after}",
}
FULL: Final = "{nodes} {have} no place for one more pod"
OBSTACLES: Final[Mapping[PodRule, str]] = {
    PodRule.UNSCHEDULABLE: "{nodes} {are} cordoned",
    PodRule.TAINT: "{nodes} {have} the taint {subject}, which the pod does not tolerate",
    PodRule.NODE_SELECTOR: "{nodes} {have} no label {subject}, by which the pod selects",
    PodRule.NODE_AFFINITY: "{nodes} {are} left out by the pod's node affinity",
    PodRule.RESOURCES: "the pod asks for {asked} of {subject}, and {nodes} {have} at most {left} left",
}
_AMOUNTS: Final = ("needed", "left", "value", "requested")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a device request was made from, which gives its selectors their words. `cel` are the person's own conditions
    by their number on the form.
    """

    memory: str = ""
    profile: str = ""
    cel: Mapping[str, int] = field(default_factory=dict)


NOTHING_ASKED: Final = Asked()


def asked_of(wish: Wish, number: int, values: Mapping[str, str]) -> Asked:
    """What was asked by that choice, 0 for the first; `values` are those of the form."""
    choice: Choice = wish.choices[number] if number < len(wish.choices) else wish
    memory = str(choice.memory) if choice.memory else ""
    cel = dict(zip(wish.cel, numbers_given("cel", values), strict=False))
    return Asked(memory=memory, profile=choice.profile, cel=cel)


def miss_words(miss: Miss) -> str:
    """Why a device fell, such as "needs 40 GiB of memory, 20 GiB left of 80 GiB"."""
    if miss.code is Code.SELECTOR_FALSE and "conjunct" in miss.facts:
        values = miss.facts.get("values")
        return condition_words(str(miss.facts["conjunct"]), values if isinstance(values, tuple) else ())
    return MISSES[miss.code].format_map(_said(_in_units(miss.facts)))


def step_words(step: Step, asked: Asked = NOTHING_ASKED) -> str:
    """The rule of a step."""
    if step.kind is StepKind.SELECTOR:
        return _selector_words(str(step.facts.get("expression", "")), asked)
    return STEPS[step.kind].format_map(_said(step.facts))


def _selector_words(expression: str, asked: Asked) -> str:
    """A selector is the person's own, was written by the form, or is the GPU class's."""
    if expression in asked.cel:
        return f"Your condition {asked.cel[expression]} holds"
    if asked.memory and f'quantity("{asked.memory}")' in expression:
        return f"It has at least {amount('memory', asked.memory)} of memory"
    if asked.profile and expression.endswith(f'== "{asked.profile}"'):
        return f"It is a slice {asked.profile}"
    return STEPS[StepKind.SELECTOR]


def warning_words(warning: AdviceWarning) -> str:
    """What the person will meet beyond "does not fit"."""
    return WARNINGS[warning.code].format_map(_said(warning.facts))


def proposal_words(proposal: Proposal) -> str:
    """What a proposal changes and what comes of it, such as "1 instead of 2: fits on 3 nodes"."""
    facts = {"before": quoted(proposal.before), "after": quoted(proposal.after)}
    where = f"Alternative {proposal.alternative}: " if proposal.alternative else ""
    return f"{where}{CHANGES[proposal.change].format_map(facts)}: fits on {nodes_words(proposal.nodes)}"


def obstacle_words(obstacle: PodObstacle) -> str:
    """What keeps the pod off nodes whose devices would do, such as "3 nodes with free devices are cordoned"."""
    one = obstacle.nodes == 1
    words = OBSTACLES[obstacle.rule]
    if obstacle.rule is PodRule.RESOURCES and obstacle.subject == "pods":
        words = FULL
    return words.format(
        nodes="1 node with free devices" if one else f"{obstacle.nodes} nodes with free devices",
        are="is" if one else "are",
        have="has" if one else "have",
        asked=obstacle.asked,
        left=obstacle.most_left,
        subject=quoted(obstacle.subject),
    )


def nodes_words(count: int) -> str:
    """A number of nodes."""
    return "1 node" if count == 1 else f"{count} nodes"


def _in_units(facts: Facts) -> Facts:
    """The amounts of a capacity as people read them."""
    name = str(facts.get("capacity", ""))
    if not name:
        return facts
    return {key: amount(name, str(value)) if key in _AMOUNTS else value for key, value in facts.items()}


class _Said(dict[str, str]):
    """Facts as texts; one that lacks is said to be unknown, since an explanation must never fail a page."""

    def __missing__(self, key: str) -> str:
        return f"(unknown {key})"


def _said(facts: Facts) -> _Said:
    return _Said(
        {key: quoted(", ".join(value) if isinstance(value, tuple) else str(value)) for key, value in facts.items()}
    )
