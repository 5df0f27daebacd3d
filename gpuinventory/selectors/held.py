"""The fleet in memory: what allocation reads, kept up to date by what changed since the revision last read.

One fleet a process, shared by its threads. An object that can't be read is left out and named in `problems`, so that
one bad slice never hides the others. Nothing is written.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from dra.allocation import Snapshot
from dra.fleet import NO_USAGE, Fleet, FleetAnswer, Usage, Wish
from gpuinventory.capabilities import Capabilities
from gpuinventory.models import Revision
from gpuinventory.selectors.fleetstate import FleetState, read_all, read_changes
from gpuinventory.selectors.freshness import freshness


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A fleet at a revision. `waiting` is how many claims with a pod wait for devices, by device class; `usage` what
    pods take of each node, `capabilities` what the cluster can do, by which the snapshot judges.

    `fleet` remembers answers, for all threads.
    """

    capabilities: Capabilities
    snapshot: Snapshot
    fleet: Fleet
    waiting: Mapping[str, int]
    usage: Usage
    revision: int
    as_of: datetime | None
    problems: tuple[str, ...]


class SharedFleet(Fleet):
    """A fleet that several threads ask, one at a time, since every question changes what it remembers.

    The web process runs each request in a thread of its own: what one thread remembers is gone with the request.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()

    def answer(self, snapshot: Snapshot, wish: Wish, usage: Usage = NO_USAGE) -> FleetAnswer:
        """As a `Fleet` does."""
        with self._lock:
            return super().answer(snapshot, wish, usage)

    def nodes(self, snapshot: Snapshot, wish: Wish, usage: Usage = NO_USAGE) -> int:
        """As a `Fleet` does."""
        with self._lock:
            return super().nodes(snapshot, wish, usage)


class _Keeper:
    """The state, which is replaced and never changed, and the fleet that answers about it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fleet = SharedFleet()
        self._at = -1
        self._state: FleetState | None = None

    def current(self) -> Held:
        as_of = freshness().synced_at
        with self._lock:
            state, at = self._follow()
        return Held(
            capabilities=state.capabilities,
            snapshot=state.snapshot,
            fleet=self._fleet,
            waiting=state.waiting,
            usage=state.pods.taken,
            revision=at,
            as_of=as_of,
            problems=tuple(state.problems.values()),
        )

    def forget(self) -> None:
        with self._lock:
            self._state = None

    def _follow(self) -> tuple[FleetState, int]:
        """The revision is read before the rows: what a writer adds in between is read now and once more."""
        at, forgotten = Revision.objects.values_list("value", "forgotten").first() or (0, 0)
        if self._state is None or not forgotten <= self._at <= at:
            self._state = read_all()
        elif at != self._at:
            self._state = read_changes(self._state, self._at)
        self._at = at
        return self._state, at


_KEEPER = _Keeper()


def current() -> Held:
    """The fleet as the read model has it now. Two queries; two more after a change; all objects the first time."""
    return _KEEPER.current()


def forget() -> None:
    """Read everything anew next time: for when rows were replaced and the revision came to the same number again."""
    _KEEPER.forget()
