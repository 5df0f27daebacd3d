"""The same fleet with nothing in use: what it can't give even then, it never can."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

from dra.allocation import Snapshot
from dra.fleet import FleetAnswer, Wish
from gpuinventory.selectors.held import SharedFleet

_KEPT = SimpleNamespace()  # for all threads


def idle_answer(snapshot: Snapshot, wish: Wish) -> FleetAnswer:
    """Where the wish would fit if no claim held a device. Quick from the second question about a snapshot on."""
    known: tuple[Snapshot, Snapshot, SharedFleet] | None = getattr(_KEPT, "known", None)
    if known is None or known[0] is not snapshot:
        idle = replace(snapshot, uses={}, held={}, views={})
        known = _KEPT.known = (snapshot, idle, known[2] if known else SharedFleet())
    return known[2].answer(known[1], wish)
