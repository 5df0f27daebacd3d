"""How many devices of a node could serve a wish's only device request, each by itself. Pure.

No count beyond that fits, so a search that must fail is spared; with the engine's own rules of one device, so that it
never counts too few. Where looking at some device is an error the number says nothing and the node has to be asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dra.allocation import NodeView
from dra.allocation.request import MAX_RESULTS, AllocationError, ClaimPlan, Planner
from dra.allocation.state import State
from dra.allocation.verdict import Judge
from dra.fleet.question import Question
from dra.objects import DeviceClass


def most_devices(view: NodeView, classes: Mapping[str, DeviceClass], question: Question) -> int:
    """The number, at most the 32 devices of a claim; 32 where it can't be told."""
    try:
        claims = Planner(view.features, classes, lambda _: ()).plan(question.claims)
        return min(sum(_serving(view, claims)), MAX_RESULTS)
    except AllocationError:
        return MAX_RESULTS


def _serving(view: NodeView, claims: tuple[ClaimPlan, ...]) -> Iterator[bool]:
    (plan,) = (plan for claim in claims for plans in claim.requests for plan in plans)
    judge, state = Judge(plan, view), State(view, claims)
    for segment in view.segments:
        for position, name in enumerate(segment.slice_.layout.names, segment.start):
            if state.in_use(plan, segment.pool, name, position):
                continue
            device = segment.device(position)
            verdict = judge.of(segment.pool, segment.slice_, device.index)
            if verdict.fault is not None:
                raise judge.abort(verdict, device.id, of_all=False)
            taken = state.take(plan, position, verdict, device) if verdict.usable else None
            if taken is not None:
                state.give_back(taken)
                yield True
