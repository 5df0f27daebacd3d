"""Constraints over all devices of a claim, and tolerations of taints, with what the fleet has to pick from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from claims.services.picks import attributes, taints
from claims.services.preview import Preview
from claims.views.desk.fields import Field, Fields, field, numbers_of
from claims.wish import LISTS, ConstraintKind, Toleration, numbers_given
from claims.wish.facts import TAINTS
from dra.objects import DeviceToleration
from dra.taints import tolerates
from gpuinventory.gpuclasses import AttributeSeen, GPUClassView, TaintSeen
from gpuinventory.selectors.held import Held

CONSTRAINT: Final = "constraint"
TOLERATION: Final = "toleration"
KINDS: Final = {ConstraintKind.MATCH: "the same for all", ConstraintKind.DISTINCT: "different for each"}
OPERATORS: Final = ("Exists", "Equal")
EFFECTS: Final = ("NoSchedule", "NoExecute")
MOST_PICKS: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintRow:
    """One constraint. `note` says what the devices of the class have, or why it can't be fulfilled."""

    number: int
    kind: Field
    attribute: Field
    note: str
    without: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TolerationRow:
    """One toleration. `accepts` says which taints of the fleet it accepts, `warning` what that means for pods."""

    number: int
    fields: Mapping[str, Field]
    accepts: str
    warning: str
    without: str


@dataclass(frozen=True, slots=True)
class Pick:
    """A taint of the fleet and the query of the form with a toleration of it, "" where there is one already."""

    taint: str
    where: str
    query: str


def constraints(seen: Preview, fields: Fields, fleet: Held, view: GPUClassView | None) -> dict[str, Any]:
    """The context of the constraints in templates/claims/desk/advanced.html."""
    known = attributes(view, fleet.snapshot)
    rows = [_constraint(number, seen, fields, known) for number in numbers_of(CONSTRAINT, fields)]
    return {
        "constraints": rows,
        "constraint_kinds": KINDS.items(),
        "attributes": known,
        "constraints_alone": _several(seen),
        **_folded(CONSTRAINT, seen, fields),
    }


def tolerations(seen: Preview, fields: Fields, fleet: Held) -> dict[str, Any]:
    """The context of the tolerations in templates/claims/desk/advanced.html."""
    known = taints(fleet.snapshot)
    rows = [_toleration(number, seen, fields, known) for number in numbers_of(TOLERATION, fields)]
    given = seen.reading.wish.tolerations if seen.reading.wish else ()
    return {
        "tolerations": rows,
        "operators": OPERATORS,
        "effects": EFFECTS,
        "taints": [_pick(each, seen, given) for each in known[:MOST_PICKS]],
        "tolerations_closed": seen.bounds.lacking.get(TAINTS, ""),
        "more_taints": max(len(known) - MOST_PICKS, 0),
        **_folded(TOLERATION, seen, fields),
    }


def _folded(name: str, seen: Preview, fields: Fields) -> dict[str, Any]:
    """Whether the part comes unfolded, how many entries it has, and what is wrong with it as a whole."""
    given = len(numbers_given(name, seen.reading.values))
    faulty = any(each.error for key, each in fields.items() if key == name or key.startswith(f"{name}."))
    return {f"{name}s_given": given, f"{name}s_open": bool(given) or faulty, f"{name}s_fault": fields.get(name)}


def _several(seen: Preview) -> bool:
    """Whether constraints are asked of a single device, which they say little about."""
    wish = seen.reading.wish
    return wish is not None and bool(wish.constraints) and all(choice.count == 1 for choice in wish.choices)


def _constraint(number: int, seen: Preview, fields: Fields, known: Sequence[AttributeSeen]) -> ConstraintRow:
    kind, attribute = (_own(f"{CONSTRAINT}.{number}.{part}", seen, fields) for part in ("kind", "attribute"))
    return ConstraintRow(
        number=number,
        kind=kind,
        attribute=attribute,
        note=_attribute_words(attribute.value, known) if attribute.value and not attribute.error else "",
        without=_without(seen, CONSTRAINT, number) if attribute.value else "",
    )


def _attribute_words(name: str, known: Iterable[AttributeSeen]) -> str:
    found = next((each for each in known if each.name == name), None)
    if found is None:
        return "No device of the class has it, so that nothing would fit."
    values = "one value" if found.values == 1 else f"{found.values} different values"
    have = "1 device of the class has it" if found.devices == 1 else f"{found.devices} devices of the class have it"
    return f"{have}, with {values}."


def _toleration(number: int, seen: Preview, fields: Fields, known: Sequence[TaintSeen]) -> TolerationRow:
    own = {part: _own(f"{TOLERATION}.{number}.{part}", seen, fields) for part in LISTS[TOLERATION][0]}
    numbers = numbers_given(TOLERATION, seen.reading.values)
    wish = seen.reading.wish
    read = wish.tolerations[numbers.index(number)] if wish and number in numbers else None
    accepted = [each for each in known if read and _accepts(read, each)]
    return TolerationRow(
        number=number,
        fields=own,
        accepts=_accepted_words(accepted) if read else "",
        warning=_warning(read, accepted) if read else "",
        without=_without(seen, TOLERATION, number) if number in numbers else "",
    )


def _accepts(toleration: Toleration, seen: TaintSeen) -> bool:
    return tolerates(
        DeviceToleration(
            key=toleration.key, operator=toleration.operator, value=toleration.value, effect=toleration.effect
        ),
        seen.taint,
    )


def _accepted_words(accepted: Sequence[TaintSeen]) -> str:
    if not accepted:
        return "No taint that is there now is accepted by it."
    names = ", ".join(_taint_words(each) for each in accepted[:3])
    more = f" and {len(accepted) - 3} more" if len(accepted) > 3 else ""
    return f"Accepts {names}{more}."


def _warning(toleration: Toleration, accepted: Sequence[TaintSeen]) -> str:
    if not toleration.key:
        return "It accepts every taint, also those to come: the pod may get devices that are broken or being emptied."
    ending = toleration.effect == "NoExecute" or any(each.taint.effect == "NoExecute" for each in accepted)
    if not ending:
        return "The pod may get devices that are kept back from new pods."
    stay = f"for {toleration.seconds} s" if toleration.seconds is not None else "until they end by themselves"
    return f"NoExecute: pods stay {stay} on devices that are to be emptied, such as broken ones."


def _pick(seen_taint: TaintSeen, seen: Preview, given: Iterable[Toleration]) -> Pick:
    taint, accepted = seen_taint.taint, any(_accepts(each, seen_taint) for each in given)
    number = max(numbers_given(TOLERATION, seen.reading.values), default=0) + 1
    entry = {"key": taint.key, "operator": "Equal" if taint.value else "Exists", "value": taint.value}
    added = [(f"{TOLERATION}.{number}.{part}", value) for part, value in (*entry.items(), ("effect", taint.effect))]
    free = not accepted and number <= LISTS[TOLERATION][1]
    kept = [pair for pair in seen.reading.pairs if not pair[0].startswith(f"{TOLERATION}.{number}.")]
    query = urlencode([*kept, *(pair for pair in added if pair[1])]) if free else ""
    return Pick(_taint_words(seen_taint), "; ".join(_where(seen_taint)), query)


def _taint_words(seen_taint: TaintSeen) -> str:
    taint = seen_taint.taint
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def _where(seen_taint: TaintSeen) -> Iterator[str]:
    if seen_taint.devices:
        yield "1 device" if seen_taint.devices == 1 else f"{seen_taint.devices} devices"
    if seen_taint.rules:
        yield "set by an administrator's rule"


def _own(key: str, seen: Preview, fields: Fields) -> Field:
    return fields.get(key) or field(key, seen.reading.values)


def _without(seen: Preview, name: str, number: int) -> str:
    """The form without this entry."""
    return urlencode([pair for pair in seen.reading.pairs if not pair[0].startswith(f"{name}.{number}.")])
