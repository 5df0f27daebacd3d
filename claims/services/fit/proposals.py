"""Changes that make a wish fit, as wishes: each is written as an address, read back, rendered and asked again.

What a person follows is therefore exactly what was found to fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Final
from urllib.parse import urlencode

from claims.manifests import render
from claims.services.fit.answer import Change, Outcome, Proposal
from claims.services.fit.claim import choice_of, claim_of
from claims.services.fit.explained import suggestions
from claims.services.preview import Preview
from claims.wish import LISTS, SHARE_STEP, ClassFacts, Style, judge, numbers_given, read
from dra.advice.explanation import ChangeCode, Suggestion
from dra.fleet import FleetAnswer, Wish
from dra.objects import ResourceClaim
from dra.quantity import Quantity, parse_quantity
from gpuinventory.selectors.held import Held

MOST: Final = 3
_MOST_CLASSES: Final = 8  # other classes that are tried
_SHARE, _MEMORY = "sharePercent", "memory"
_PROFILES: Final = frozenset({"migProfile", "profile", "partitionProfile"})


@dataclass(frozen=True, slots=True)
class _Changed:
    """One change of an address: `values` replace those of its keys, "" takes a key away."""

    change: Change
    before: str
    after: str
    values: Mapping[str, str]
    alternative: int = 0


def proposals(seen: Preview, held: Held, asked: Wish, outcome: Outcome, answer: FleetAnswer) -> tuple[Proposal, ...]:
    """At most three for the same pod, the smallest change first; what accepts a taint comes last."""
    (claim,) = asked.resource_claims
    suggested = suggestions(held.snapshot, claim, answer)
    found = [changed for each in suggested if (changed := _changed(seen, claim, each))]
    taints = [each for each in found if each.change is Change.TOLERATION]
    others = [each for each in found if each.change is not Change.TOLERATION]
    tried = chain(others, _of_classes(seen, outcome), taints)
    return tuple(islice(_checked(seen, held, tried, asked), MOST))


def _of_classes(seen: Preview, outcome: Outcome) -> Iterator[_Changed]:
    """Other classes of the same driver: who asks for one maker's GPU has no use for another's. What only waits keeps
    its place before the other one.
    """
    values, chosen = seen.reading.values, seen.chosen
    if chosen is None or chosen.facts.driver is None:
        return
    free = _next_number("alt", values) if outcome is Outcome.WAIT and values.get("style") != Style.EXTENDED else 0
    memory = seen.wish.memory if seen.wish else None
    kindred = (
        option.view.name
        for option in seen.options
        if _kin(option.facts, chosen.facts) and option.expressions and _has(option.facts, memory)
    )
    for name in islice(kindred, _MOST_CLASSES):
        if free:
            yield _Changed(Change.ALTERNATIVE, "", name, _as_alternative(values, name, free))
        else:
            yield _Changed(Change.DEVICE_CLASS, values.get("class", ""), name, {"class": name})


def _kin(facts: ClassFacts, chosen: ClassFacts) -> bool:
    """Whether that class may do as well. A part of a DeviceClass is no news beside the whole of it."""
    sibling = chosen.selectors and facts.device_class == chosen.device_class
    return facts.driver == chosen.driver and facts is not chosen and bool(sibling or not facts.selectors)


def _has(facts: ClassFacts, memory: Quantity | None) -> bool:
    """Whether some device of the class may have that much memory: asking for the others is in vain."""
    return memory is None or facts.largest_memory is None or memory <= facts.largest_memory


def _as_alternative(values: Mapping[str, str], name: str, number: int) -> Mapping[str, str]:
    """The first choice once more, of another class."""
    same = {field: values.get(field, "") for field in LISTS["alt"][0]}
    return {f"alt.{number}.{field}": value for field, value in {**same, "class": name}.items()}


def _next_number(name: str, values: Mapping[str, str]) -> int:
    """The number of a list's next entry, 0 where no more fits in."""
    number = max(numbers_given(name, values), default=0) + 1
    return number if number <= LISTS[name][1] else 0


def _changed(seen: Preview, claim: ResourceClaim, suggestion: Suggestion) -> _Changed | None:
    """The one entry of the form that has to change, None where none says it."""
    values, facts = seen.reading.values, suggestion.facts
    number = choice_of(str(facts["device_request"]))
    alternative = numbers_given("alt", values)[number - 1] if number else 0
    prefix = f"alt.{alternative}." if alternative else ""
    after = str(facts["to"])
    match suggestion.code:
        case ChangeCode.COUNT:
            change, key = Change.COUNT, "count"
        case ChangeCode.CAPACITY if facts["capacity"] == _SHARE and after.isdecimal():
            change, key, after = Change.SHARE, "share", str(int(after) // SHARE_STEP * SHARE_STEP)
        case ChangeCode.CAPACITY if facts["capacity"] == _MEMORY:
            change, key = Change.MEMORY, "memory"
        case ChangeCode.LITERAL:
            return _literal(seen, claim, suggestion, alternative)
        case ChangeCode.CONSTRAINT:
            return _without_constraint(values, facts["constraint"])
        case ChangeCode.TOLERATION:
            return _tolerating(values, suggestion)
        case _:
            return None
    return _Changed(change, values.get(f"{prefix}{key}", ""), after, {f"{prefix}{key}": after}, alternative)


def _literal(seen: Preview, claim: ResourceClaim, suggestion: Suggestion, alternative: int) -> _Changed | None:
    """Another floor of memory, another profile, or another value in one of the person's own conditions."""
    facts, values, prefix = suggestion.facts, seen.reading.values, f"alt.{alternative}." if alternative else ""
    own = numbers_given("cel", values)
    place = int(str(facts["selector"])) - (_selectors(claim, str(facts["device_request"])) - len(own))
    before, after = str(facts["from"]), str(facts["to"])
    if place >= 0:
        return _Changed(Change.CONDITION, before, after, {f"cel.{own[place]}": str(facts["expression"])})
    if facts["identifier"] == _MEMORY and facts["relation"] == ">=":
        floor = _round(after)
        return _Changed(
            Change.MEMORY, values.get(f"{prefix}memory", ""), floor, {f"{prefix}memory": floor}, alternative
        )
    if facts["identifier"] in _PROFILES and values.get(f"{prefix}profile"):
        return _Changed(Change.PROFILE, before, after, {f"{prefix}profile": after}, alternative)
    return None


def _selectors(claim: ResourceClaim, device_request: str) -> int:
    """How many selectors a device request or alternative has; the person's own ones are the last of them."""
    (request,) = claim.spec.devices.requests
    exact = request.exactly or request.first_available[choice_of(device_request)]
    return len(exact.selectors)


def _without_constraint(values: Mapping[str, str], index: object) -> _Changed | None:
    given = numbers_given("constraint", values)
    if not isinstance(index, int) or index >= len(given):
        return None
    key = f"constraint.{given[index]}"
    return _Changed(Change.CONSTRAINT, values[f"{key}.attribute"], "", {f"{key}.kind": "", f"{key}.attribute": ""})


def _tolerating(values: Mapping[str, str], suggestion: Suggestion) -> _Changed | None:
    number = _next_number("toleration", values)
    if not number:
        return None
    key, value, effect = (str(suggestion.facts[name]) for name in ("key", "value", "effect"))
    fields = {"key": key, "operator": "Equal" if value else "Exists", "value": value, "effect": effect}
    after = f"{key}={value}:{effect}" if value else f"{key}:{effect}"
    added = {f"toleration.{number}.{name}": text for name, text in fields.items()}
    return _Changed(Change.TOLERATION, "", after, added)


def _checked(seen: Preview, held: Held, tried: Iterable[_Changed], asked: Wish) -> Iterator[Proposal]:
    for each in tried:
        query = urlencode(_replaced(seen.reading.pairs, each.values))
        if nodes := _nodes(seen, held, query, asked):
            yield Proposal(
                change=each.change,
                before=each.before,
                after=each.after,
                alternative=each.alternative,
                nodes=nodes,
                query=query,
            )


def _replaced(pairs: Iterable[tuple[str, str]], values: Mapping[str, str]) -> list[tuple[str, str]]:
    kept = [pair for pair in pairs if pair[0] not in values]
    return kept + [pair for pair in values.items() if pair[1]]


def _round(memory: str) -> str:
    """A floor that is easier to read, a whole number of Gi below it; less of a floor takes every device of a higher."""
    whole = parse_quantity(memory).value // 2**30
    return f"{whole}Gi" if whole else memory


def _nodes(seen: Preview, held: Held, query: str, asked: Wish) -> int:
    """On how many nodes the wish of that address fits, 0 where it is none that could be created."""
    wish = read(query).wish
    if wish is None or judge(wish, seen.bounds):
        return 0
    claim = claim_of(render(wish, seen.bounds.classes[wish.device_class], seen.key, others=seen.bounds.classes))
    return held.fleet.nodes(held.snapshot, replace(asked, resource_claims=(claim,)), held.usage)
