"""Counts what an evaluation costs while it goes on, and ends it at the limit.

Follows `CostTracker.Observe` of cel-go interpreter/runtimecost.go, its stack of values by node id included: a call is
charged only if all its operands are found there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dra.cel.errors import CelAbortError

LIMIT: Final = 1_000_000
"""The most that a selector may cost (`CELSelectorExpressionMaxCost` of k8s.io/api/resource/v1)."""


class CancelledError(CelAbortError):
    """Ends an evaluation as a whole; nothing in the expression absorbs it. `str()` is the runtime error's text."""


class Meter:
    """The cost of one evaluation so far, the values that wait for their calls, and each node's last outcome.

    An outcome is a value or a CelRuntimeError. `optional` are the ids of fields and keys below an optional.
    """

    __slots__ = ("_ids", "_limit", "_places", "_values", "cost", "optional", "outcomes")

    def __init__(self, limit: int = LIMIT) -> None:
        self.cost = 0
        self.outcomes: dict[int, object] = {}
        self.optional: set[int] = set()
        self._limit = limit
        self._ids: list[int] = []
        self._values: list[object] = []
        self._places: dict[int, list[int]] = {}

    def push(self, node_id: int, value: object, *, cost: int = 0) -> None:
        """Charge the cost and keep the value; CancelledError over the limit."""
        self.cost += cost
        self._places.setdefault(node_id, []).append(len(self._ids))
        self._ids.append(node_id)
        self._values.append(value)
        if self.cost > self._limit:
            raise CancelledError("operation cancelled: actual cost limit exceeded")

    def drop(self, *node_ids: int) -> None:
        """Forget the last value of each id and all that came after it."""
        for node_id in node_ids:
            places = self._places.get(node_id)
            if places:
                self._cut(places[-1])

    def take(self, node_ids: Sequence[int]) -> tuple[object, ...] | None:
        """The values of the ids, forgotten like `drop` does; None as soon as one is missing, seen from the last."""
        found = []
        for node_id in reversed(node_ids):
            places = self._places.get(node_id)
            if not places:
                return None
            found.append(self._values[places[-1]])
            self._cut(places[-1])
        return tuple(reversed(found))

    def _cut(self, length: int) -> None:
        while len(self._ids) > length:
            self._places[self._ids.pop()].pop()
            self._values.pop()
