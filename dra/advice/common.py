"""The constraint steps: devices that cannot be part of any set which satisfies a constraint of their resource claim.

A device falls where it lacks the attribute, or where too few devices share its value (match) or differ from it
(distinct). That much is necessary; whether a whole set exists is for allocation to say (the count step).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dra.advice.asks import Ask
from dra.advice.explanation import Code, Facts, Miss
from dra.allocation import DeviceView
from dra.constraints import Value, attribute_value, lookup_attribute
from dra.objects.resourceclaim import DeviceConstraint

type Cohort = Sequence[DeviceView]
type Key = tuple[str, object]
"""The type of an attribute and one value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """A device request that a constraint covers, the devices left for it, and how many it needs."""

    ask: Ask
    cohort: Cohort
    needed: int


def constraint_misses(
    constraint: DeviceConstraint, party: Party, others: Sequence[Party], *, lists: bool
) -> Mapping[int, Miss]:
    """Reasons by position in the cohort of `party`. `others` are the other device requests of the resource claim,
    `lists` is the gate DRAListTypeAttributes.
    """
    name = constraint.match_attribute or constraint.distinct_attribute or ""
    values = [_value(device, name, lists=lists) for device in party.cohort]
    absent = {
        position: Miss(code=Code.CONSTRAINT_ABSENT, facts={"attribute": name})
        for position, value in enumerate(values)
        if value is None
    }
    present = {position: value for position, value in enumerate(values) if value is not None}
    if constraint.match_attribute is None:
        return {**absent, **dict(_repeated(name, party, present))}
    rivals = [(each, _tally(each.cohort, name, lists=lists)) for each in others]
    return {**absent, **dict(_unmatched(name, party, rivals, present))}


def _value(device: DeviceView, name: str, *, lists: bool) -> Value | None:
    """None where the attribute is absent; a value of a type that nothing equals is ("", {})."""
    shape = device.shape
    attribute = lookup_attribute(shape.attributes_of(device.identity), shape.driver, name)
    if attribute is None:
        return None
    return attribute_value(attribute, lists=lists) or ("", frozenset())


def _keys(value: Value) -> Iterator[Key]:
    return ((value[0], each) for each in value[1])


def _tally(cohort: Cohort, name: str, *, lists: bool) -> Counter[Key]:
    values = (_value(device, name, lists=lists) for device in cohort)
    return Counter(key for value in values if value is not None for key in _keys(value))


def _unmatched(
    name: str, party: Party, rivals: Sequence[tuple[Party, Counter[Key]]], present: Mapping[int, Value]
) -> Iterator[tuple[int, Miss]]:
    tally = Counter(key for value in present.values() for key in _keys(value))
    reasons = {key: _lacking(name, key, party, tally, rivals) for key in tally}
    for position, value in present.items():
        mine = [reasons[key] for key in _keys(value)]
        if mine and None in mine:
            continue
        if not mine and party.needed == 1 and not rivals:
            continue  # the first device of a constraint may have a value of any type (oracle surprise 38)
        facts: Facts = {"attribute": name, "value": "", "needed": party.needed, "found": 1}
        yield position, next((miss for miss in mine if miss), Miss(code=Code.CONSTRAINT_MATCH, facts=facts))


def _lacking(
    name: str, key: Key, party: Party, tally: Counter[Key], rivals: Sequence[tuple[Party, Counter[Key]]]
) -> Miss | None:
    """Why no set can have this value in common: too few devices for the request itself, or for another one."""
    facts: Facts = {"attribute": name, "value": _text(key[1])}
    if tally[key] < party.needed:
        return Miss(code=Code.CONSTRAINT_MATCH, facts={**facts, "needed": party.needed, "found": tally[key]})
    bases = dict.fromkeys(rival.ask.base for rival, _ in rivals)
    for base in bases:
        found = [(rival.needed, counted[key]) for rival, counted in rivals if rival.ask.base == base]
        if all(count < needed for needed, count in found):
            needed, count = found[0]
            return Miss(
                code=Code.CONSTRAINT_MATCH, facts={**facts, "needed": needed, "found": count, "device_request": base}
            )
    return None


def _repeated(name: str, party: Party, present: Mapping[int, Value]) -> Iterator[tuple[int, Miss]]:
    """Where there are fewer values than devices needed: every device but the first of its value."""
    first: dict[Value, int] = {}
    for position, value in present.items():
        first.setdefault(value, position)
    if len(first) >= party.needed:
        return
    for position, value in present.items():
        if first[value] != position:
            facts: Facts = {
                "attribute": name,
                "value": ", ".join(sorted(map(_text, value[1]))),
                "device": party.cohort[first[value]].name,
            }
            yield position, Miss(code=Code.CONSTRAINT_DISTINCT, facts=facts)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
