"""What attempts on one node have in common, so that what failed once is not tried again. Pure.

Devices that draw on the same counters form a part (a card with its partitions; a device alone). Two parts are of one
kind where their devices have the same verdicts, draws, capacities and constrained attributes in the same order: then
any attempt on the one is an attempt on the other. So an attempt must fail where its twin failed, and a state must fail
where a state failed that has as many parts of each kind in each condition. Both hold for errors, too: an attempt that
failed has met none, so its twin meets none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import comb, perm

from dra.allocation.packing import Packing
from dra.allocation.parts import Part, may_abort, parts_of
from dra.allocation.request import MAX_RESULTS, ClaimPlan, PlanKey, RequestPlan
from dra.allocation.state import State
from dra.allocation.verdict import Judge
from dra.allocation.view import NodeView

type _Key = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Horizon:
    """What a request still looks at: its `own` usable positions, in order, and the parts that later requests look at.

    `certain`: looking at its devices meets no error, and none can be had twice, so that they can be counted. `calm`: no
    error can be met at all, now or once other devices are taken.
    `alike`: how many devices later requests want that may swap with this one's, for one device each; `before`: how many
    earlier ones. None where the request wants more than one device, or has alternatives.
    """

    own: tuple[int, ...]
    own_set: frozenset[int]
    own_parts: frozenset[int]
    later_parts: frozenset[int]
    certain: bool
    calm: bool
    alike: int
    before: int | None


class Outlook:
    """Compares attempts of one search. `failed` holds states from which there is no way on, with the effort."""

    def __init__(
        self, view: NodeView, parts: Sequence[Part], horizons: Mapping[PlanKey, Horizon], state: State
    ) -> None:
        self.failed: dict[_Key, int] = {}
        self._parts = parts
        self._horizons = horizons
        self._state = state
        self._packing = Packing(view, parts, state)
        self._part_at = {position: number for number, part in enumerate(parts) for position in part.positions}

    @classmethod
    def of(
        cls, view: NodeView, claims: Sequence[ClaimPlan], judges: Mapping[PlanKey, Judge], state: State
    ) -> Outlook | None:
        """None where attempts cannot be compared: past 32 devices of a claim, order decides what is tried."""
        plans = [plan for claim in claims for alternatives in claim.requests for plan in alternatives]
        parts = parts_of(view, claims, judges, plans)
        horizons = _horizons(view, claims, judges, parts)
        return None if any(_may_exceed(claim, horizons) for claim in claims) else cls(view, parts, horizons, state)

    def twin(self, position: int) -> Hashable:
        """Equal for devices that are alike now: the same place in parts of one kind and condition."""
        number = self._part_at[position]
        part = self._parts[number]
        return part.kind, part.ranks[position], self._condition(number)

    def _condition(self, number: int) -> Hashable:
        return self._parts[number].condition(self._state)

    def key(self, plan: RequestPlan, number: int, start: int) -> _Key:
        """Equal for states that allow the same.

        That is: what is still wanted, constraints so far, and parts by kind and condition, with how far the request
        has come in each.
        """
        horizon = self._horizons[plan.key]
        tally: Counter[Hashable] = Counter()
        for index in horizon.own_parts | horizon.later_parts:
            part = self._parts[index]
            cut = bisect_left(part.positions, start) if index in horizon.own_parts else 0
            if cut == len(part.positions) and index not in horizon.later_parts:
                continue
            tally[part.kind, cut, self._condition(index)] += 1
        seen = tuple((each.devices > 0, frozenset(each.seen)) for each in self._state.constraints[plan.claim])
        return plan.key, number, seen, frozenset(tally.items())

    def enough(self, plan: RequestPlan, number: int, start: int) -> bool:
        """Whether there may be as many usable devices from `start` on as are wanted; true where that cannot be told."""
        horizon = self._horizons[plan.key]
        if not horizon.calm:
            return True
        # A device that can be had twice may serve requests alike together; one request never has it twice.
        wanted = plan.count - number + (horizon.alike if horizon.certain else 0)
        if len(horizon.own) - bisect_left(horizon.own, start) < wanted:
            return False
        return self._packing.holds(plan, horizon.own_set, wanted, (horizon.own_parts, start))

    @property
    def calm(self) -> bool:
        """Whether no request can meet an error."""
        return all(horizon.calm for horizon in self._horizons.values())

    def solutions(self, claims: Sequence[ClaimPlan], alone: Sequence[ClaimPlan]) -> int:
        """In how many ways, at most, all that comes before the requests of `alone` can be had."""
        product = 1
        for claim, part in zip(claims, alone, strict=True):
            for plans, own in zip(claim.requests, part.requests, strict=True):
                if own:
                    return product
                ways = [comb(len(self._horizons[plan.key].own), plan.count) for plan in plans if not plan.all_devices]
                product *= max(sum(ways), 1)
        return product

    def combinations(self, plan: RequestPlan, number: int, start: int) -> int:
        """In how many ways up to all but one of the wanted devices can be picked from `start` on; at least 1.

        For requests alike the scheduler tries every order, too.
        """
        horizon = self._horizons[plan.key]
        wanted = max(plan.count - number + horizon.alike, 1)
        if horizon.before is not None:
            left = max(len(horizon.own) - horizon.before - number, 0)
            return sum(perm(left, picked) for picked in range(wanted))
        left = len(horizon.own) - bisect_left(horizon.own, start)
        return sum(comb(left, picked) for picked in range(wanted))


def _horizons(
    view: NodeView, claims: Sequence[ClaimPlan], judges: Mapping[PlanKey, Judge], parts: Sequence[Part]
) -> dict[PlanKey, Horizon]:
    part_at = {position: number for number, part in enumerate(parts) for position in part.positions}
    found: dict[PlanKey, Horizon] = {}
    later: frozenset[int] = frozenset()
    for group in _groups(claims):
        here: frozenset[int] = frozenset()
        for rank, plan in enumerate(group):
            own, calm, shared = _own(view, judges[plan.key])
            own_parts = frozenset(part_at[position] for position in own)
            here |= own_parts
            single = _is_single(plan)
            found[plan.key] = Horizon(
                own=own,
                own_set=frozenset(own),
                own_parts=own_parts,
                later_parts=later,
                certain=calm and not shared and not plan.request.derived_attributes,
                calm=calm and not may_abort(plan),
                alike=len(group) - 1 - rank if single else 0,
                before=rank if single else None,
            )
        later |= here
    return found


def _may_exceed(claim: ClaimPlan, horizons: Mapping[PlanKey, Horizon]) -> bool:
    """Whether some choice of alternatives comes past 32 devices: those before it must be there to be had."""
    most = 0
    for plans in claim.requests:
        if any(most + plan.count > MAX_RESULTS for plan in plans):
            return True
        most += max((plan.count for plan in plans if plan.count <= len(horizons[plan.key].own)), default=0)
    return False


def _groups(claims: Sequence[ClaimPlan]) -> Iterator[Sequence[RequestPlan]]:
    """From the last request to the first: requests alike together, alternatives of one request together."""
    for claim in reversed(claims):
        group: list[RequestPlan] = []
        for plans in filter(None, reversed(claim.requests)):
            if group and _is_single(plans[0]) and _is_single(group[0]) and plans[0].wanted == group[0].wanted:
                group.insert(0, plans[0])
                continue
            if group:
                yield group
            group = list(plans)
        if group:
            yield group


def _is_single(plan: RequestPlan) -> bool:
    return not plan.parent and plan.count == 1 and not plan.all_devices


def _own(view: NodeView, judge: Judge) -> tuple[tuple[int, ...], bool, bool]:
    """Positions that the request looks at; whether none of them is a fault; whether some can be had twice."""
    own: list[int] = []
    calm, shared = True, False
    for segment in view.segments:
        for index, shape in enumerate(segment.slice_.layout.shapes):
            verdict = judge.of(segment.pool, segment.slice_, index)
            if verdict.usable or verdict.fault is not None:
                calm = calm and verdict.fault is None
                shared = shared or shape.allow_multiple
                own.append(segment.start + index)
    return tuple(own), calm, shared
