"""How many devices a request can have together at most, as far as counters tell. Pure.

Of devices that share counters no more can be had than the smallest draws on any one of their counters allow. The bound
may be too high, never too low: a request that wants more cannot be served, whatever is tried.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Hashable, Iterable, Sequence

from dra.allocation.parts import Part
from dra.allocation.request import PlanKey, RequestPlan
from dra.allocation.state import State
from dra.allocation.view import NodeView


class Packing:
    """Bounds for one search, each computed once for parts of one kind in one condition."""

    def __init__(self, view: NodeView, parts: Sequence[Part], state: State) -> None:
        self._view = view
        self._parts = parts
        self._state = state
        self._known: dict[tuple[PlanKey, int, int, Hashable], int] = {}

    def holds(self, plan: RequestPlan, own: Collection[int], wanted: int, reach: tuple[Iterable[int], int]) -> bool:
        """Whether `wanted` of the `own` positions may fit together; `reach` has the parts and the first position."""
        parts, start = reach
        for index in parts:
            wanted -= self._most(plan, own, self._parts[index], start)
            if wanted <= 0:
                return True
        return wanted <= 0

    def _most(self, plan: RequestPlan, own: Collection[int], part: Part, start: int) -> int:
        cut = bisect_left(part.positions, start)
        if cut == len(part.positions):
            return 0
        if part.exact:
            return len(part.positions) - cut
        key = plan.key, part.kind, cut, part.condition(self._state)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._bound(plan, own, part, cut)
        return known

    def _bound(self, plan: RequestPlan, own: Collection[int], part: Part, cut: int) -> int:
        free = [
            dict(member.draws) if self._charges(member.position) else {}
            for member in part.members[cut:]
            if member.position in own and not self._in_use(plan, member.position)
        ]
        bound = len(free)
        for number, (key, amount) in enumerate(part.counters):
            left = amount - self._state.drawn.get(key, 0)
            bound = min(bound, _smallest_within(sorted(draws.get(number, 0) for draws in free), left))
        return bound

    def _in_use(self, plan: RequestPlan, position: int) -> bool:
        device = self._view.device_at(position)
        return self._state.in_use(plan, device.pool, device.name, position)

    def _charges(self, position: int) -> bool:
        """Whether taking the device draws on its counters: a further share of one does not."""
        device = self._view.device_at(position)
        return not self._state.is_shared(device, position)


def _smallest_within(draws: Sequence[int], left: int) -> int:
    """How many of the draws, smallest first, `left` has room for; those of nothing always fit."""
    for count, draw in enumerate(draws):
        if draw > left and draw > 0:
            return count
        left -= draw
    return len(draws)
