"""A person's own CEL conditions on the form, each with what it says of the devices of the class now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from claims.refusals import quoted
from claims.services.conditions import Condition, condition
from claims.services.preview import Preview
from claims.views.desk.fields import Field, Fields, field, numbers_of
from claims.views.fitconditions import kind_words
from claims.wish import numbers_given
from gpuinventory.gpuclasses import Finding, GPUClassView
from gpuinventory.gpuclasses.lint import Taken
from gpuinventory.selectors.held import Held

CEL: Final = "cel"
MOST_SAMPLES: Final = 5
_WIDEST: Final = 160  # characters of the line that a pointer stands under


@dataclass(frozen=True, slots=True)
class Sample:
    """Devices of one kind that match."""

    devices: int
    kind: str
    example: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fails:
    """An error that the condition ends in. `guarded` is the query of the form with a guard, "" where none is known."""

    devices: int
    example: str
    error: str
    key: str
    condition: str
    guarded: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One condition. `pointer` shows where it stops to be one, "" where it is one."""

    number: int
    field: Field
    answer: Condition | None
    samples: tuple[Sample, ...]
    more: int
    fails: tuple[Fails, ...]
    pointer: str


def conditions(seen: Preview, fields: Fields, fleet: Held, view: GPUClassView | None) -> dict[str, Any]:
    """The context of the conditions in templates/claims/desk/advanced.html."""

    def condition_of(text: str) -> Condition | None:
        return condition(text, view, fleet.snapshot) if text else None

    rows = [_row(number, seen, fields, condition_of) for number in numbers_of(CEL, fields)]
    given = len(numbers_given(CEL, seen.reading.values))
    fault = fields.get(CEL)
    faulty = any(row.field.error for row in rows) or (fault is not None and fault.error is not None)
    return {
        "conditions": rows,
        "conditions_given": given,
        "conditions_open": bool(given) or faulty,
        "conditions_fault": fault,
    }


def _row(number: int, seen: Preview, fields: Fields, condition_of: Callable[[str], Condition | None]) -> Row:
    key = f"{CEL}.{number}"
    own = fields.get(key) or field(key, seen.reading.values)
    text = own.value.replace("\r\n", "\n")
    answer = condition_of(text)
    kinds = tuple(_samples(answer.check.taken)) if answer else ()
    return Row(
        number=number,
        field=own,
        answer=None if own.error else answer,
        samples=kinds[:MOST_SAMPLES],
        more=max(len(kinds) - MOST_SAMPLES, 0),
        fails=tuple(_fails(seen, key, answer.fails)) if answer and not own.error else (),
        pointer=_pointer(answer) if answer else "",
    )


def _samples(taken: Iterable[Taken]) -> Iterator[Sample]:
    """Devices of one kind together, however they differ in what is not shown."""
    kinds: dict[str, Sample] = {}
    for each in taken:
        kind = kind_words(each.traits)
        known = kinds.get(kind)
        kinds[kind] = Sample(
            each.devices + (known.devices if known else 0), kind, known.example if known else each.example
        )
    yield from kinds.values()


def _fails(seen: Preview, key: str, found: tuple[Finding, ...]) -> Iterator[Fails]:
    for each in found:
        pairs = [(name, each.guarded if name == key else value) for name, value in seen.reading.pairs]
        yield Fails(
            devices=each.devices,
            example=each.device,
            error=quoted(each.error),
            key=each.key,
            condition=each.guarded,
            guarded=urlencode(pairs) if each.guarded else "",
        )


def _pointer(answer: Condition) -> str:
    """The line at fault with a mark under the place."""
    wrong = answer.wrong
    if wrong is None:
        return ""
    start = max(0, wrong.column - _WIDEST)
    return f"{wrong.text[start : start + _WIDEST]}\n{' ' * (wrong.column - 1 - start)}^"
