"""Answers about a fleet, kept while it stays the same: pages ask the same question with every key typed.

Only answers that nothing changes afterwards may be kept. All threads share them; what was last asked about counts.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable


class Kept[T]:
    """The `most` answers last asked for about one thing: a snapshot, or a part that snapshots pass on unchanged."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._about: object = None
        self._answers: OrderedDict[Hashable, T] = OrderedDict()

    def answer(self, about: object, key: Hashable, ask: Callable[[], T]) -> T:
        """The answer about this very object to the question named `key`; asked where it is not known. Two threads may
        ask at once.
        """
        with self._lock:
            known = self._of(about)
            if key in known:
                known.move_to_end(key)
                return known[key]
        found = ask()
        with self._lock:
            known = self._of(about)
            known[key] = found
            while len(known) > self._most:
                known.popitem(last=False)
        return found

    def _of(self, about: object) -> OrderedDict[Hashable, T]:
        if self._about is not about:
            self._about = about
            self._answers = OrderedDict()
        return self._answers
