"""The search: which devices kube-scheduler's allocator would take on a node, found without its effort. Pure.

Depth first over claims, requests, alternatives and devices in the scheduler's order; the first solution is the answer
(`allocateOne`). What is left out are only attempts that must fail because an attempt like them has failed: see
`dra.allocation.outlook`. That changes neither the first solution, nor a refusal, nor which error is met.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from enum import Enum
from typing import Final

from dra.allocation.effort import Effort
from dra.allocation.outlook import Outlook
from dra.allocation.request import MAX_RESULTS, AllocationError, ClaimPlan, PlanKey, RequestPlan
from dra.allocation.result import Failed
from dra.allocation.state import State, Taken
from dra.allocation.verdict import Judge, Verdict
from dra.allocation.view import DeviceView, NodeView, Segment

WORK_BUDGET: Final = 1_500_000
"""Steps of our own search times devices that the node sees, a second or so in all.

Past it the answer is an honest `Failed(kind="budget")`.
"""
_PLAIN_BUDGET: Final = 200_000  # steps where attempts cannot be compared, which makes them cheap
_SMALL: Final = 16  # devices; a step costs something on the smallest node, too
_PATIENCE: Final = 48  # steps before it pays to compute what attempts have in common
_MAX_LEVELS: Final = 250  # devices and requests of one question; each costs up to three frames of Python's stack


class Outcome(Enum):
    """How an attempt ended."""

    DONE = "done"
    FAILED = "failed"
    EXCEEDED = "exceeded"
    """Past 32 devices of a claim: goes up to the next list of alternatives (`errAllocationResultMaxSizeExceeded`)."""


class Search:
    """One allocation on one node."""

    def __init__(
        self,
        view: NodeView,
        claims: Sequence[ClaimPlan],
        judges: Mapping[PlanKey, Judge],
        work: int = WORK_BUDGET,
    ) -> None:
        self._view = view
        self._claims = claims
        self._judges = judges
        self._outlook: Outlook | None = None
        self.steps = 0
        self._budget = work // max(view.segments[-1].end if view.segments else 0, _SMALL)
        self._first: dict[tuple[int, int], int] = {}
        self._experimental = view.features.allocator == "experimental"
        self.state = State(view, claims)
        self.effort = Effort(positions=view.segments[-1].end if view.segments else 0)
        self.chosen: dict[tuple[int, int], RequestPlan] = {}

    def run(self) -> bool:
        """Whether all claims fit; `state.results` and `chosen` then say how. AllocationError for the first error."""
        levels = sum(
            1 + max(plan.count for plan in plans) for claim in self._claims for plans in claim.requests if plans
        )
        if levels + len(self._claims) > _MAX_LEVELS:
            raise _over_budget(f"{levels} devices and requests are more than {_MAX_LEVELS}, the most for one question")
        try:
            return self._request(0, 0) is Outcome.DONE
        except _LostError:
            return False

    def _request(self, claim: int, request: int) -> Outcome:
        self._count_step()
        if claim >= len(self._claims):
            return Outcome.DONE
        requests = self._claims[claim].requests
        if request >= len(requests):
            outcome = self._request(claim + 1, 0)
            # A claim after this one may need fewer devices under other circumstances: no reason to give up here.
            return Outcome.FAILED if outcome is Outcome.EXCEEDED else outcome
        plans = requests[request]
        if not plans:
            return self._request(claim, request + 1)
        if not plans[0].parent:
            return self._devices(plans[0], 0, self._start(claim, request))
        return self._alternatives(plans)

    def _alternatives(self, plans: Sequence[RequestPlan]) -> Outcome:
        all_exceeded = True
        for plan in plans:
            self._count_step()
            outcome = self._devices(plan, 0, 0)
            if outcome is Outcome.DONE:
                self.chosen[plan.key[:2]] = plan
                return outcome
            all_exceeded = all_exceeded and outcome is Outcome.EXCEEDED
        return Outcome.EXCEEDED if all_exceeded else Outcome.FAILED

    def _start(self, claim: int, request: int) -> int:
        """Where a request starts to look.

        Like requests swap devices freely, so the later one need not look before the first device of the earlier one:
        that was tried the other way round.
        """
        requests = self._claims[claim].requests
        if not request or not alike(requests[request - 1], requests[request]):
            return 0
        first = self._first[claim, request - 1]
        return first if self._view.device_at(first).shape.allow_multiple else first + 1

    def _devices(self, plan: RequestPlan, number: int, start: int) -> Outcome:
        if plan.all_devices and not plan.positions:
            return Outcome.FAILED
        if number >= plan.count:
            return self._request(plan.claim, plan.request_number + 1)
        if plan.count - number > MAX_RESULTS - len(self.state.results[plan.claim]):
            return Outcome.EXCEEDED
        return self._this_device(plan, number) if plan.all_devices else self._compared(plan, number, start)

    def _compared(self, plan: RequestPlan, number: int, start: int) -> Outcome:
        """As `_any_device`, unless what was tried before tells that it fails."""
        outlook = self._outlook
        if outlook is None:
            return self._any_device(plan, number, start)
        key = outlook.key(plan, number, start)
        known = outlook.failed.get(key)
        if known is None and not outlook.enough(plan, number, start):
            known = outlook.combinations(plan, number, start)
        if known is not None:
            self.effort.skip(known)
            return Outcome.FAILED
        before = self.effort.steps
        outcome = self._any_device(plan, number, start)
        if outcome is Outcome.FAILED:
            outlook.failed[key] = self.effort.steps - before
        return outcome

    def _this_device(self, plan: RequestPlan, number: int) -> Outcome:
        """The next of all devices: there is no choice."""
        position = plan.positions[number]
        device = self._view.device_at(position)
        verdict = self._judges[plan.key].of(device.pool, device.slice_, device.index)
        if self.state.in_use(plan, device.pool, device.name, position) or not verdict.allowed:
            return Outcome.FAILED
        if self._blocked(self._view.segment_at(position)):
            return Outcome.FAILED
        taken = self.state.take(plan, position, verdict, device)
        return Outcome.FAILED if taken is None else self._deeper(taken, number, 0)

    def _any_device(self, plan: RequestPlan, number: int, start: int) -> Outcome:
        tried: dict[object, tuple[int, int]] = {}
        for segment in self._view.segments:
            if segment.end <= start:
                continue
            blocked = self._blocked(segment)
            for position, device, verdict in self._free(plan, segment, start):
                if blocked:
                    continue
                twin = None if self._outlook is None else self._outlook.twin(position)
                if twin is not None and twin in tried:
                    self._skip(tried[twin], plan, number + 1, position + 1)
                    continue
                before = self.effort.steps
                taken = self.state.take(plan, position, verdict, device)
                outcome = Outcome.FAILED if taken is None else self._deeper(taken, number, position + 1)
                if outcome is not Outcome.FAILED:
                    return outcome
                if twin is not None and self._outlook is not None:
                    likewise = self._outlook.combinations(plan, number + 1, position + 1)
                    tried[twin] = self.effort.steps - before, likewise
        return Outcome.FAILED

    def _free(self, plan: RequestPlan, segment: Segment, start: int) -> Iterator[tuple[int, DeviceView, Verdict]]:
        """Usable devices of a slice that are not in use, with verdicts; AllocationError at the first with a fault."""
        judge, state = self._judges[plan.key], self.state
        names = segment.slice_.layout.names
        for index in range(max(start - segment.start, 0), len(names)):
            position = segment.start + index
            if state.in_use(plan, segment.pool, names[index], position):
                continue
            verdict = judge.of(segment.pool, segment.slice_, index)
            if verdict.fault is not None:
                raise judge.abort(verdict, segment.device(position).id, of_all=False)
            if verdict.usable:
                yield position, segment.device(position), verdict

    def _skip(self, tried: tuple[int, int], plan: RequestPlan, number: int, start: int) -> None:
        """Count what the scheduler does with a device whose twin was tried: less, as fewer devices come after it."""
        if self._outlook is not None:
            steps, likewise = tried
            self.effort.skip(steps * self._outlook.combinations(plan, number, start) // likewise)

    def _deeper(self, taken: Taken, number: int, start: int) -> Outcome:
        plan = taken.picked.plan
        if number == 0:
            self._first[plan.key[:2]] = taken.picked.position
        self._count_step()
        outcome = self._devices(plan, number + 1, start)
        if outcome is not Outcome.DONE:
            self.state.give_back(taken)
        return outcome

    def _blocked(self, segment: Segment) -> bool:
        """Whether devices of the slice need operations to be skipped that the node cannot skip."""
        if not self._experimental or not segment.slice_.layout.skip_node_operations:
            return False
        return not self._view.skips_operations

    def _count_step(self) -> None:
        self.effort.steps += 1
        self.steps += 1
        if self.steps == _PATIENCE:
            self._look_around()
        if self.steps > (_PLAIN_BUDGET if self._outlook is None else self._budget):
            raise _over_budget(f"not decided after {self.steps} steps of search")

    def _look_around(self) -> None:
        """Compute what attempts have in common; end where some claim, or request, does not even fit alone."""
        self._outlook = Outlook.of(self._view, self._claims, self._judges, self.state)
        if self._outlook is None or not self._outlook.calm:
            return
        for alone in each_alone(self._claims):
            part = Search(self._view, alone, self._judges)
            try:
                fits = part.run()
            except AllocationError:
                continue  # too much work even alone
            if not fits:
                # The scheduler tries this part with all that can be had before it.
                self.effort.skip(part.effort.steps * self._outlook.solutions(self._claims, alone))
                raise _LostError


class _LostError(Exception):
    """What is looked for cannot be: a part of it does not fit alone."""


def each_alone(claims: Sequence[ClaimPlan]) -> Iterator[tuple[ClaimPlan, ...]]:
    """The claims with all but one emptied; of a single claim, with all but one of its requests emptied."""
    requests = (
        (number, place, plans) for number, each in enumerate(claims) for place, plans in enumerate(each.requests)
    )
    wanted = [(number, place) for number, place, plans in requests if plans]
    numbers = sorted({number for number, _ in wanted})
    if len(numbers) > 1:
        for number in numbers:
            yield _only(claims, {place for place in wanted if place[0] == number})
    elif len(wanted) > 1:
        for place in wanted:
            yield _only(claims, {place})


def _only(claims: Sequence[ClaimPlan], places: AbstractSet[tuple[int, int]]) -> tuple[ClaimPlan, ...]:
    """The claims with all requests but these emptied, so that numbers stay as they are."""
    return tuple(
        replace(
            claim,
            requests=tuple(plans if (number, place) in places else () for place, plans in enumerate(claim.requests)),
        )
        for number, claim in enumerate(claims)
    )


def alike(one: Sequence[RequestPlan], other: Sequence[RequestPlan]) -> bool:
    """Whether two device requests of a claim ask for the same, so that swapping their devices changes nothing."""
    if not one or not other or one[0].parent or other[0].parent or one[0].all_devices:
        return False
    return one[0].wanted == other[0].wanted


def _over_budget(text: str) -> AllocationError:
    message = f"{text}; kube-scheduler, which tries out more, is likely to time out: ask for fewer devices at once"
    return AllocationError(Failed(kind="budget", code="budget", message=message))
