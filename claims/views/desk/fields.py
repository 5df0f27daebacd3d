"""The fields of the form as pages show them: what was given under each key, and what is wrong with it.

Lists have fields as well, under their keys such as `alt.2.class`. Nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from claims.messages import Sentences, say
from claims.refusals import Refusal
from claims.services.preview import Preview
from claims.wish import EXAMPLES, KEYS, LABELS, LISTS, entry_of, numbers_given

_DEFAULTS: Mapping[str, str] = {"count": "1", "share": "50", "slots": "1"}
_IN_LISTS: Mapping[str, str] = {"count": "1", "share": "50"}  # as a wish is read


@dataclass(frozen=True, slots=True)
class Field:
    """One field as the page shows it: what was given, and what is wrong with it."""

    key: str
    label: str
    value: str
    example: str
    error: Sentences | None

    @property
    def id(self) -> str:
        """The id of its element."""
        return f"field-{self.key}"

    @property
    def part(self) -> str:
        """The last part of its key, such as "memory" of `alt.1.memory`."""
        return self.key.rpartition(".")[2]

    @property
    def name(self) -> str:
        """What the part is called, without its list."""
        return LABELS.get(self.part, self.label)


type Fields = Mapping[str, Field]


def fields_of(seen: Preview, refusals: Sequence[Refusal]) -> Fields:
    """Every field that the form has, those of lists as far as they have a value or a fault; faulty ones have theirs."""
    errors = {_key(refusal.field, seen): say(refusal) for refusal in reversed(refusals) if refusal.field}
    keys = dict.fromkeys((*KEYS, *seen.reading.values, *errors))
    return {key: field(key, seen.reading.values, errors.get(key)) for key in keys}


def _key(field: str, seen: Preview) -> str:
    """What is judged counts alternatives; the address may have gaps in their numbers."""
    entry = entry_of(field) if seen.reading.wish else None
    given = numbers_given("alt", seen.reading.values)
    if entry is None or entry[0] != "alt" or entry[1] > len(given):
        return field
    return f"alt.{given[entry[1] - 1]}.{entry[2]}"


def field(key: str, values: Mapping[str, str], error: Sentences | None = None) -> Field:
    """One field; a list's key reads as its label with the entry's number."""
    default = _IN_LISTS.get(key.rpartition(".")[2], "") if entry_of(key) else _DEFAULTS.get(key, "")
    value = values.get(key, default)
    return Field(key, label_of(key), value, EXAMPLES.get(key, ("", ""))[1], error)


def label_of(key: str) -> str:
    """What a key is called, such as "Alternatives 2: GPU class"."""
    entry = entry_of(key)
    if entry is None:
        return LABELS.get(key, key)
    name, number, part = entry
    return f"{LABELS[name]} {number}: {LABELS[part]}" if part else f"{LABELS[name]} {number}"


def numbers_of(name: str, fields: Fields) -> tuple[int, ...]:
    """The numbers of the rows that a list shows: those up to the last that is filled in or faulty, and an empty one
    after it. Rows past the list's bound show where they are filled in.
    """
    most = LISTS[name][1]
    given = {*numbers_given(name, {key: each.value for key, each in fields.items()}), *_faulty(name, fields)}
    last = max((number for number in given if number <= most), default=0)
    return (*range(1, min(last + 1, most) + 1), *sorted(number for number in given if number > most))


def _faulty(name: str, fields: Fields) -> Iterator[int]:
    for key, each in fields.items():
        entry = entry_of(key) if each.error else None
        if entry and entry[0] == name:
            yield entry[1]
