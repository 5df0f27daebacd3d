"""The same fleet with nothing in use: what it can't give even then, it never can."""

from __future__ import annotations

import threading
from dataclasses import replace

from dra.allocation import Snapshot
from dra.fleet import Fleet, FleetAnswer, Wish

_OWN = threading.local()  # a `Fleet` is changed by every question


def idle_answer(snapshot: Snapshot, wish: Wish) -> FleetAnswer:
    """Where the wish would fit if no claim held a device. Quick from the second question about a snapshot on."""
    known: tuple[Snapshot, Snapshot, Fleet] | None = getattr(_OWN, "known", None)
    if known is None or known[0] is not snapshot:
        idle = replace(snapshot, uses={}, held={}, views={})
        known = _OWN.known = (snapshot, idle, known[2] if known else Fleet())
    return known[2].answer(known[1], wish)
