"""Which fault of the state's table a call of NVML meets, and what is left of the table then. Pure.

A row names a function, one card or any, what happens, and how often. Whoever holds the state file puts rows in and
takes them out while other processes call (`State.inject`, `State.heal`).
"""

from __future__ import annotations

from dataclasses import replace

from simulator.silicon.hardware import Injection, Silicon


def meets(row: Injection, function: str, card: str) -> bool:
    """Whether a call of that function about that card ("" for none) meets this row."""
    return row.function == function and row.pci_address in ("", card)


def taken(silicon: Silicon, function: str, card: str) -> tuple[Silicon, Injection | None]:
    """The first row that the call meets (None: it meets none, or passes), and the hardware with that row used once."""
    for place, row in enumerate(silicon.injections):
        if meets(row, function, card):
            rows = (*silicon.injections[:place], *_left_of(row), *silicon.injections[place + 1 :])
            return replace(silicon, injections=rows), None if row.skip else row
    return silicon, None


def _left_of(row: Injection) -> tuple[Injection, ...]:
    """A row that counts goes with its last time; one that stays counts who met it."""
    if row.skip:
        return (replace(row, skip=row.skip - 1),)
    if row.times == 1 and not row.hang:
        return ()
    return (replace(row, times=max(row.times - 1, 0), met=row.met + 1),)
