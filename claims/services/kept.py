"""Answers about a fleet, kept while the fleet stays the same: pages ask the same question with every key typed.

Only answers that nothing changes afterwards may be kept. All threads share them; the one fleet last asked about counts.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from dra.allocation import Snapshot


class Kept[T]:
    """The `most` answers last asked for."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._snapshot: Snapshot | None = None
        self._answers: OrderedDict[Hashable, T] = OrderedDict()

    def answer(self, snapshot: Snapshot, key: Hashable, ask: Callable[[], T]) -> T:
        """The answer to the question named `key`; asked where it is not known. Two threads may ask at once."""
        with self._lock:
            known = self._of(snapshot)
            if key in known:
                known.move_to_end(key)
                return known[key]
        found = ask()
        with self._lock:
            known = self._of(snapshot)
            known[key] = found
            while len(known) > self._most:
                known.popitem(last=False)
        return found

    def _of(self, snapshot: Snapshot) -> OrderedDict[Hashable, T]:
        if self._snapshot is not snapshot:
            self._snapshot = snapshot
            self._answers = OrderedDict()
        return self._answers
