"""The fit panel: a sentence, the steps by which devices fall, the closest miss, warnings, and what else would fit.

It decides nothing: what fits is said by `claims.services.fit`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from claims.services.fit import Fit, Outcome, Stop, choice_of
from claims.views.fitstops import message_of, stop_words
from claims.views.fitwords import (
    Asked,
    asked_of,
    miss_words,
    nodes_words,
    obstacle_words,
    proposal_words,
    step_words,
    warning_words,
)
from claims.wish import Wish, numbers_given
from dra.advice.explanation import DeviceRequestExplanation, Miss, Step, StepKind, WarningCode
from portal.badge import Badge

MOST_OBSTACLES = 2
MOST_WARNINGS = 3
_MADE_READY = " A device is made ready there first, such as by a reset of its card; the pod waits until it is."
_BADGES = {
    Outcome.NOW: Badge("good", "✔", "Fits now"),
    Outcome.POD_LIMITS: Badge("wait", "◔", "No room for the pod"),
    Outcome.WAIT: Badge("wait", "◔", "Will wait"),
    Outcome.NEVER: Badge("bad", "✕", "Cannot fit"),
    Outcome.UNKNOWN: Badge("unknown", "?", "Not sure"),
    Outcome.ABORTED: Badge("bad", "⊘", "Kubernetes gives up"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One step. `percent` is what is left of the devices seen, for the bar."""

    rule: str
    reached: bool
    left: int
    fell: int
    percent: int
    example: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The steps of one device request; `name` is "" where there is but one."""

    name: str
    rows: tuple[Row, ...]
    closest: str


@dataclass(frozen=True, slots=True)
class Link:
    """A proposal: words and the address of its form."""

    words: str
    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Everything that the panel shows. `brief` is the bar in one line: devices seen, then left after each rule."""

    badge: Badge
    sentence: str
    brief: tuple[Row, ...]
    tables: tuple[Table, ...]
    proposals: tuple[Link, ...]
    warnings: tuple[str, ...]
    revision: int
    as_of: datetime | None


def panel(fit: Fit | None, wish: Wish | None, values: Mapping[str, str]) -> Panel | None:
    """The panel of an answer to this wish, which the form's `values` make."""
    if fit is None or wish is None:
        return None
    tables = tuple(_table(each, wish, values) for each in fit.explanation.device_requests)
    return Panel(
        badge=_BADGES[fit.outcome],
        sentence=_sentence(fit, wish, values),
        brief=tuple(row for row in tables[0].rows if row.reached) if tables else (),
        tables=tables,
        proposals=tuple(Link(proposal_words(each), each.query) for each in fit.proposals),
        warnings=tuple(dict.fromkeys(_warnings(fit)))[:MOST_WARNINGS],
        revision=fit.revision,
        as_of=fit.as_of,
    )


def _sentence(fit: Fit, wish: Wish, values: Mapping[str, str]) -> str:
    match fit.outcome:
        case Outcome.NOW:
            where = f"Fits now on {nodes_words(fit.answer.fitting)}, {_times(fit)}. Best: {fit.answer.best}"
            choice = f", with {choice_words(wish, fit.serving, values)}" if wish.alternatives else ""
            return f"{where}{choice}.{_MADE_READY if fit.made_ready else ''}"
        case Outcome.POD_LIMITS:
            return f"Devices are free, but {_obstacles(fit)}."
        case Outcome.WAIT:
            return _wait(fit, wish)
        case Outcome.NEVER:
            why = _stopped(fit.stop, wish, values) if fit.stop else _never(fit, wish, values)
            return f"Cannot fit, even with nothing in use: {why}"
        case Outcome.UNKNOWN:
            unread = miss_words(fit.unread) if fit.unread else "a pool is not read in full"
            return f"Not sure: {unread}. Nothing else would fit, even with nothing in use."
        case Outcome.ABORTED:
            why = _stopped(fit.stop, wish, values) if fit.stop else ""
            return f"Kubernetes would place such a pod nowhere: {why}"


def choice_words(wish: Wish, number: int, values: Mapping[str, str]) -> str:
    """A choice among alternatives, by its number on the form."""
    name = wish.choices[number].device_class if number < len(wish.choices) else ""
    given = [0, *numbers_given("alt", values)]
    return f"alternative {given[number]} ({name})" if 0 < number < len(given) else f"the first choice ({name})"


def _wait(fit: Fit, wish: Wish) -> str:
    free = f"{fit.free} of {fit.matching} matching devices are free"
    if wish.alternatives:
        return f"Will wait: of the first choice {free}, no alternative is, {_ahead(fit)}."
    return f"Will wait: {free}, {_ahead(fit)}.{_together(fit)}"


def _stopped(stop: Stop, wish: Wish, values: Mapping[str, str]) -> str:
    """Which selector fails on what, and the error as the scheduler itself says it."""
    choice = choice_words(wish, stop.choice, values) if wish.alternatives else ""
    words = stop_words(stop, asked_of(wish, stop.choice, values), choice)
    message = message_of(stop)
    return f"{words} The scheduler says: {message}" if words else f"the scheduler stops at: {message}"


def _times(fit: Fit) -> str:
    total = fit.answer.total
    count = f"{total.count}" if total.bounded else f"at least {total.count}"
    return "once" if total.count == 1 and total.bounded else f"{count} times in all"


def _obstacles(fit: Fit) -> str:
    met = [obstacle_words(each) for each in fit.answer.pod_obstacles[:MOST_OBSTACLES]]
    return "; and ".join(met) if met else "no node that has them takes a pod"


def _ahead(fit: Fit) -> str:
    if not fit.ahead:
        return "and no claim is ahead"
    return "and 1 claim is ahead" if fit.ahead == 1 else f"and {fit.ahead} claims are ahead"


def _together(fit: Fit) -> str:
    largest = fit.answer.largest
    if largest is None or not largest.count or not fit.free:
        return ""
    bound = "the most that one node has free now is" if largest.exact else "one node has free now at least"
    return f" They must be on one node; {bound} {largest.count}."


def _never(fit: Fit, wish: Wish, values: Mapping[str, str]) -> str:
    explained = max(fit.explanation.device_requests, key=_nearness, default=None)
    if explained is None:
        return "the cluster has no node with devices."
    number = choice_of(explained.device_request)
    asked = asked_of(wish, number, values)
    of = f"for {choice_words(wish, number, values)} " if wish.alternatives else ""
    last = next((step for step in explained.steps if step.evaluated and not step.left), None)
    if last is None:
        return "the devices are there, but not in one place."
    if last.kind is StepKind.COUNT:
        return f"{of}no node has {explained.needed} of these.{_largest(fit)}"
    near = explained.nearest_miss
    closest = f" Closest: {near.device.device} of {near.device.pool} ({_reasons(near.misses)})." if near else ""
    return f"{of}“{step_words(last, asked)}” leaves no device.{closest}"


def _nearness(explained: DeviceRequestExplanation) -> tuple[int, int]:
    """The choice that came furthest; the first of equals."""
    return explained.nearest_miss.rank if explained.nearest_miss else (-1, 0)


def _largest(fit: Fit) -> str:
    largest = fit.idle.largest if fit.idle else None
    return f" The largest number on one node is {largest.count}." if largest and largest.count else ""


def _reasons(misses: Iterable[Miss]) -> str:
    return "; ".join(map(miss_words, misses))


def _warnings(fit: Fit) -> Iterator[str]:
    if fit.outcome is Outcome.NOW and fit.answer.timeouts:
        yield f"On {nodes_words(fit.answer.timeouts)} Kubernetes' own search may run into its limit of 10 s."
    if fit.pod_fault:
        yield f"What the pod asks of its node can't be read and is left out: {fit.pod_fault}"
    told = {WarningCode.SCHEDULER_ABORTS, WarningCode.SELECTOR_MAY_ABORT} if fit.stop else set()
    yield from (warning_words(each) for each in fit.explanation.warnings if each.code not in told)
    yield from (f"Numbers may be low: {miss_words(each)}." for each in fit.explanation.pools if each != fit.unread)


def _table(explained: DeviceRequestExplanation, wish: Wish, values: Mapping[str, str]) -> Table:
    seen = explained.steps[0].left + explained.steps[0].fell
    near, number = explained.nearest_miss, choice_of(explained.device_request)
    closest = f"{near.device.device} of {near.device.pool}: {_reasons(near.misses)}" if near else ""
    rows = tuple(_row(step, asked_of(wish, number, values), seen) for step in explained.steps)
    name = choice_words(wish, number, values) if wish.alternatives else ""
    return Table(name=f"{name[:1].upper()}{name[1:]}", rows=rows, closest=closest)


def _row(step: Step, asked: Asked, seen: int) -> Row:
    fallen = max(step.fallen, key=lambda each: each.count, default=None)
    example = f"{fallen.count} of them: {miss_words(fallen.miss)}" if fallen else ""
    return Row(
        rule=step_words(step, asked),
        reached=step.evaluated,
        left=step.left,
        fell=step.fell,
        percent=100 * step.left // seen if seen else 0,
        example=example,
    )
