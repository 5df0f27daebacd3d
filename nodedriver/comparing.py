"""What to do about a resource claim when checkpoint, API server, CDI folder and hardware do not say the same of it.

Pure: one table, each combination in exactly one row, each row with its name. Nothing that an administrator made by hand
is in it, since it belongs to no claim.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import product


class Entry(StrEnum):
    """What the checkpoint says."""

    ABSENT = "absent"
    STARTED = "started"
    COMPLETED = "completed"


class Allocation(StrEnum):
    """What the API server says: it is allocated to us, it is not (any more), or there was no answer."""

    OURS = "ours"
    GONE = "gone"
    UNKNOWN = "unknown"


class Verdict(StrEnum):
    """What is done."""

    LEAVE = "leave"
    REPAIR = "repair"  # do the steps of prepare again
    RESTORE = "restore"  # write the entry anew, from the CDI file
    TAKE_BACK = "take back"  # undo the steps of prepare and forget the claim


@dataclass(frozen=True, slots=True)
class Found:
    """One claim on all four sides. `silicon`: its MIG instances are there as they were given out, and MPS daemons."""

    entry: Entry
    allocation: Allocation
    file: bool
    silicon: bool


@dataclass(frozen=True, slots=True)
class Row:
    """A row holds for what is in all its sets."""

    name: str
    entries: frozenset[Entry]
    allocations: frozenset[Allocation]
    files: frozenset[bool]
    silicon: frozenset[bool]
    verdict: Verdict


_ANY = frozenset({True, False})
_STILL = frozenset({Allocation.OURS, Allocation.UNKNOWN})  # without an answer nothing is taken from anybody
_GONE = frozenset({Allocation.GONE})
_TRUE, _FALSE = frozenset({True}), frozenset({False})
_COMPLETED, _STARTED, _ABSENT = frozenset({Entry.COMPLETED}), frozenset({Entry.STARTED}), frozenset({Entry.ABSENT})

ROWS = (
    Row("prepared, and all of it is there", _COMPLETED, _STILL, _TRUE, _TRUE, Verdict.LEAVE),
    Row("the CDI file is lost", _COMPLETED, _STILL, _FALSE, _TRUE, Verdict.REPAIR),
    Row("an instance or an MPS daemon is lost", _COMPLETED, _STILL, _ANY, _FALSE, Verdict.REPAIR),
    Row("the claim went without unprepare", _COMPLETED, _GONE, _ANY, _ANY, Verdict.TAKE_BACK),
    Row("half prepared; the kubelet calls again", _STARTED, _STILL, _ANY, _ANY, Verdict.LEAVE),
    Row("half prepared for a claim that is gone", _STARTED, _GONE, _ANY, _ANY, Verdict.TAKE_BACK),
    Row("the entry is lost", _ABSENT, frozenset(Allocation), _TRUE, _ANY, Verdict.RESTORE),
    Row("nothing of ours", _ABSENT, frozenset(Allocation), _FALSE, _ANY, Verdict.LEAVE),
)


def row_of(found: Found) -> Row:
    """The row that holds."""
    (row,) = (row for row in ROWS if _holds(row, found))
    return row


def combinations() -> tuple[Found, ...]:
    """Everything that can be found."""
    return tuple(Found(*each) for each in product(Entry, Allocation, (True, False), (True, False)))


def _holds(row: Row, found: Found) -> bool:
    return (
        found.entry in row.entries
        and found.allocation in row.allocations
        and found.file in row.files
        and found.silicon in row.silicon
    )
