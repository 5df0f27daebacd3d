"""What else would do: the alternatives of a wish, in their order, each with what it has free by itself.

A row is added by filling in the last, empty one. Moving and removing are links to the form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from claims.messages import say
from claims.selectors import ClassOption
from claims.services.fit import Fit
from claims.services.preview import Preview
from claims.views.desk.fields import Field, Fields, field, numbers_of
from claims.views.fitwords import nodes_words
from claims.wish import LISTS, WHOLE, Mode, Reading, closed, numbers_given
from claims.wish.facts import PRIORITIZED_LIST
from gpuinventory.gpuclasses import GPUClassView, Numbers
from gpuinventory.selectors.gpuclasses import class_numbers
from gpuinventory.selectors.held import Held

ALT: Final = "alt"
_MODES: Final = {Mode.WHOLE: "Whole", Mode.SLICE: "Slice", Mode.SHARE: "Share", Mode.TIMESLICED: "Time-sliced"}
_PARTS: Final = LISTS[ALT][0]
_UNKNOWN: Final = "The cluster has no GPU class of that name"
_READS: Final[Mapping[Mode, tuple[str, ...]]] = {
    Mode.WHOLE: ("count", "memory"),
    Mode.SLICE: ("count", "profile"),
    Mode.SHARE: ("share", "memory"),
    Mode.TIMESLICED: ("slots",),
}


@dataclass(frozen=True, slots=True)
class Option:
    """One of several to choose from, or one that can't be chosen, with the reason in its label."""

    value: str
    label: str
    chosen: bool
    disabled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One alternative. `inputs` are the fields that its mode reads, `room` what its class has, `alone` where it fits.

    `up` and `without` are queries of the form with the row one place earlier, or gone; "" for an empty row.
    """

    number: int
    fields: Mapping[str, Field]
    classes: tuple[Option, ...]
    modes: tuple[Option, ...]
    inputs: tuple[Field, ...]
    memory_bound: str
    profiles: tuple[Option, ...]
    room: str
    alone: str
    up: str
    without: str


def otherwise(seen: Preview, fields: Fields, fleet: Held, answer: Fit | None) -> dict[str, Any]:
    """The context of templates/claims/desk/otherwise.html. `answer` is the fit of the wish, if it is one."""
    given = numbers_given(ALT, seen.reading.values)
    alone = dict(zip(given, answer.alone[1:], strict=False)) if answer else {}
    around = _Around(seen.reading, fields, fleet, {option.view.name: option for option in seen.options})
    rows = [_row(number, around, alone.get(number)) for number in numbers_of(ALT, fields)]
    faulty = ALT in fields and fields[ALT].error is not None
    return {
        "alternatives": rows,
        "alternatives_given": len(given),
        "alternatives_open": bool(given) or faulty or any(each.error for row in rows for each in row.fields.values()),
        "alternatives_fault": fields.get(ALT),
        "alternatives_closed": seen.bounds.lacking.get(PRIORITIZED_LIST, ""),
        "first_alone": _alone(answer.alone[0]) if answer and answer.alone else "",
    }


@dataclass(frozen=True, slots=True)
class _Around:
    """What every row is made from."""

    reading: Reading
    fields: Fields
    fleet: Held
    known: Mapping[str, ClassOption]


def _row(number: int, around: _Around, alone: int | None) -> Row:
    reading, fleet, known, prefix = around.reading, around.fleet, around.known, f"{ALT}.{number}."
    own = {part: around.fields.get(prefix + part) or field(prefix + part, reading.values) for part in _PARTS}
    option, mode = known.get(own["class"].value), _mode(reading.values, prefix)
    view, named = option.view if option else None, bool(own["class"].value)
    return Row(
        number=number,
        fields=own,
        classes=tuple(_classes(own["class"].value, around)),
        modes=tuple(_modes(view, mode)) if named else (),
        inputs=tuple(_inputs(own, mode)) if named else (),
        memory_bound="at most" if mode is Mode.SHARE else "at least",
        profiles=tuple(_profiles(view, own["profile"].value)),
        room=room_words(class_numbers(fleet, view)) if view else _UNKNOWN if named else "",
        alone="" if alone is None else _alone(alone),
        up=_up(reading, number) if named else "",
        without=_without(reading, number) if named else "",
    )


def _mode(values: Mapping[str, str], prefix: str) -> Mode:
    """As a wish is read: the mode that is named, else the one that the other fields amount to."""
    mode, share = values.get(f"{prefix}mode", ""), values.get(f"{prefix}share", "")
    if mode in set(Mode):
        return Mode(mode)
    if values.get(f"{prefix}profile"):
        return Mode.SLICE
    if values.get(f"{prefix}slots"):
        return Mode.TIMESLICED
    return Mode.WHOLE if share in {"", str(WHOLE)} else Mode.SHARE


def _inputs(own: Mapping[str, Field], mode: Mode) -> Iterator[Field]:
    """The fields of the mode, and any other with a fault."""
    yield from (own[part] for part in _READS[mode])
    yield from (own[part] for part in _PARTS[2:] if part not in _READS[mode] and own[part].error)


def _classes(chosen: str, around: _Around) -> Iterator[Option]:
    namespace = around.reading.values.get("ns", "")
    yield Option("", "None", chosen=not chosen)
    for name, option in around.known.items():
        title, numbers = option.view.spec.title, class_numbers(around.fleet, option.view)
        refusal = closed(option.facts, namespace)
        reason = say(refusal).what if refusal else "Kubernetes gives up on it." if numbers.fault else ""
        label = f"{title}: {reason}" if reason else f"{title} ({_free(numbers)} free)"
        yield Option(name, label, chosen=name == chosen, disabled=bool(reason) and name != chosen)
    if chosen and chosen not in around.known:
        yield Option(chosen, chosen, chosen=True)


def _modes(view: GPUClassView | None, chosen: Mode) -> Iterator[Option]:
    """What the published devices of the class make possible, and what was chosen."""
    kinds = view.traits if view else ()
    possible = {Mode.WHOLE, chosen}
    possible |= {Mode(each.mode) for each in kinds if each.mode in set(Mode)}
    possible |= {Mode.SHARE for each in kinds if each.shares}
    yield from (Option(mode, label, chosen=mode is chosen) for mode, label in _MODES.items() if mode in possible)


def _profiles(view: GPUClassView | None, chosen: str) -> Iterator[Option]:
    known = view.profiles if view else ()
    names = dict.fromkeys((*known, chosen) if chosen else known)
    yield Option("", "Choose", chosen=not chosen)
    yield from (Option(name, name, chosen=name == chosen) for name in names)


def room_words(numbers: Numbers) -> str:
    """What a class has free, such as "3 free, at most 2 on one node, 1 waiting"."""
    if numbers.fault:
        return "Kubernetes gives up on pods that ask for it"
    words = [f"{_free(numbers)} free"]
    if 0 < numbers.largest <= numbers.free:
        words.append(f"at most {numbers.largest} on one node")
    if numbers.waiting:
        words.append(f"{numbers.waiting} waiting")
    return ", ".join(words)


def _free(numbers: Numbers) -> str:
    return f"{'' if numbers.bounded else 'at least '}{numbers.free}"


def _alone(nodes: int) -> str:
    return f"By itself it fits on {nodes_words(nodes)} now." if nodes else "By itself it does not fit now."


def _up(reading: Reading, number: int) -> str:
    """The form with this alternative and the one before it, or the first choice, exchanged."""
    before = [each for each in numbers_given(ALT, reading.values) if each < number]
    one, other = f"{ALT}.{number}.", f"{ALT}.{before[-1]}." if before else ""
    names = {f"{one}{part}": f"{other}{part}" for part in _PARTS}
    names |= {new: old for old, new in names.items()}
    return urlencode([(names.get(key, key), value) for key, value in reading.pairs])


def _without(reading: Reading, number: int) -> str:
    """The form without this alternative; those after it move up."""
    left = [each for each in numbers_given(ALT, reading.values) if each != number]
    names = {f"{ALT}.{old}.{part}": f"{ALT}.{new}.{part}" for new, old in enumerate(left, 1) for part in _PARTS}
    ours = tuple(f"{ALT}.{each}." for each in range(1, 100))
    pairs = [(names.get(key, key), value) for key, value in reading.pairs if key in names or not key.startswith(ours)]
    return urlencode(pairs)
