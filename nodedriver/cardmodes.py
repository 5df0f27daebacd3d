"""The modes of a card and what leads from one to another: one table, from which the drawing in the docs is made too.

Pure. A card is in one mode at a time; how it is shared (MPS, time slices) lies over the mode and never changes it. What
is held decides the mode that is wanted, the hardware says which one there is, and `path` what has to be done between.
What is published of a card, and whether its MIG mode is switched at once or by a reset, follow from it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import StrEnum

from nodedriver.facts import MigModeChange


class CardMode(StrEnum):
    """What a card is used as. Maintenance: taken out of use until it was reset and looked at."""

    WHOLE = "whole"
    MIG = "mig"
    VFIO = "vfio"
    MAINTENANCE = "maintenance"


class Change(StrEnum):
    """What is done to the hardware on the way from one mode to the next."""

    ENTER_MIG = "enter MIG mode"
    LEAVE_MIG = "leave MIG mode"
    BIND_VFIO = "bind to vfio-pci"
    UNBIND_VFIO = "bind to the vendor's driver"
    TAKE_OUT = "take out of use"
    RESET = "reset and verify"


@dataclass(frozen=True, slots=True)
class Transition:
    """One row: from where to where, by what, what must hold before, and on which cards it can be had."""

    source: CardMode
    target: CardMode
    change: Change
    needs: str
    on: frozenset[MigModeChange]


_ANY = frozenset(MigModeChange)
_IDLE = frozenset({MigModeChange.WHEN_IDLE})
_RESET = frozenset({MigModeChange.NEEDS_RESET})
# MIG User Guide, "Enable MIG Mode": from Hopper on the mode changes when the card is idle, before with a reset.
TRANSITIONS = (
    Transition(CardMode.WHOLE, CardMode.MIG, Change.ENTER_MIG, "no process on the card", _IDLE),
    Transition(CardMode.MIG, CardMode.WHOLE, Change.LEAVE_MIG, "no GPU instance on the card", _IDLE),
    Transition(CardMode.WHOLE, CardMode.VFIO, Change.BIND_VFIO, "no process on the card", _ANY),
    Transition(CardMode.VFIO, CardMode.WHOLE, Change.UNBIND_VFIO, "no virtual machine on the card", _ANY),
    Transition(CardMode.WHOLE, CardMode.MAINTENANCE, Change.TAKE_OUT, "no claim on the card", _ANY),
    Transition(CardMode.MIG, CardMode.MAINTENANCE, Change.TAKE_OUT, "no claim on the card", _ANY),
    Transition(CardMode.MAINTENANCE, CardMode.WHOLE, Change.RESET, "no process on the card", _ANY),
    Transition(CardMode.MAINTENANCE, CardMode.MIG, Change.RESET, "no process on the card", _RESET),
)


def path(source: CardMode, target: CardMode, mig: MigModeChange) -> tuple[Transition, ...] | None:
    """The fewest transitions between two modes of a card whose MIG mode changes like that; None where there is no way.

    Of equally short ways the one whose rows stand first in the table.
    """
    ways: deque[tuple[CardMode, tuple[Transition, ...]]] = deque([(source, ())])
    seen = {source}
    while ways:
        mode, done = ways.popleft()
        if mode is target:
            return done
        onward = [row for row in TRANSITIONS if row.source is mode and mig in row.on and row.target not in seen]
        seen.update(row.target for row in onward)
        ways.extend((row.target, (*done, row)) for row in onward)
    return None


def without_reset(source: CardMode, target: CardMode, mig: MigModeChange) -> bool:
    """Whether prepare can bring a card from one mode to the other: there is a way, and no reset on it."""
    way = path(source, target, mig)
    return way is not None and all(row.change is not Change.RESET for row in way)


def drawing() -> str:
    """The table as a Mermaid state diagram."""
    lines = [f"    {row.source} --> {row.target}: {row.change}{_where(row)}, with {row.needs}" for row in TRANSITIONS]
    return "\n".join(("stateDiagram-v2", f"    [*] --> {CardMode.WHOLE}", *lines))


def _where(row: Transition) -> str:
    if row.on == _IDLE:
        return " (Hopper and newer)"
    return " (Ampere)" if row.on == _RESET else ""
