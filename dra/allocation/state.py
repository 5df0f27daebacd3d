"""What one attempt at an allocation has taken so far, on top of what was allocated before. Pure, but mutable.

Follows `allocateDevice` and `rollbackDevice` of the structured allocator: a device is taken if nothing is against it,
and giving it back restores everything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dra.allocation.derived import Attributes
from dra.allocation.groups import Compatibility
from dra.allocation.request import ClaimPlan, RequestPlan, plan_fault
from dra.allocation.shapes import Shape
from dra.allocation.verdict import Verdict
from dra.allocation.view import DeviceView, NodeView, PoolView
from dra.constraints import Constraint
from dra.counters import CounterKey
from dra.quantity import Quantity

type Shares = tuple[Mapping[str, int], ...]
"""Amounts of each share that was taken of a device, in nano units."""


@dataclass(frozen=True, slots=True)
class Picked:
    """A device taken for a request. `amounts` is what a share of it consumes, None for a whole device."""

    plan: RequestPlan
    position: int
    device: DeviceView
    amounts: Mapping[str, Quantity] | None


@dataclass(frozen=True, slots=True)
class Taken:
    """What giving a device back has to undo."""

    picked: Picked
    charged: bool
    constraints: tuple[Constraint, ...]


class State:
    """Devices in hand, by position; what they draw on counters and consume; constraints and results of each claim."""

    def __init__(self, view: NodeView, claims: Sequence[ClaimPlan]) -> None:
        self._view = view
        self._shares_on = view.features.consumable_capacity
        self.marks: dict[int, frozenset[int]] = {}
        self.shares: dict[int, Shares] = {}
        self.drawn: dict[tuple[int, CounterKey], int] = {}
        self.constraints = [claim.constraints for claim in claims]
        self.results: list[list[Picked]] = [[] for _ in claims]
        self._attributes = Attributes()
        self._groups = Compatibility() if view.features.device_compatibility_groups else None

    def in_use(self, plan: RequestPlan, pool: PoolView, name: str, position: int) -> bool:
        """Whether the device cannot be had because somebody has it: for admin access only this claim counts."""
        held = self.marks.get(position)
        if plan.admin:
            return held is not None and plan.claim in held
        return held is not None or name in pool.use.whole

    def take(self, plan: RequestPlan, position: int, verdict: Verdict, device: DeviceView) -> Taken | None:
        """Take the device, which must be usable and not in use, or None with nothing changed.

        For `All` a constraint that is broken is an error, and comes before capacity; else capacity comes first, since
        an attribute that is derived for a constraint may end everything.
        """
        shape = device.shape
        multiple = self._shares_on and shape.allow_multiple
        if not plan.all_devices and not self._has_capacity(verdict, device, position):
            return None
        charged = bool(shape.groups) and not (multiple and self.is_shared(device, position))
        if charged and not self._charge(shape, device.pool):
            return None
        before = self.constraints[plan.claim]
        taken = Taken(
            Picked(plan, position, device, verdict.amounts if multiple else None), charged=charged, constraints=before
        )
        satisfied = self._satisfies(plan, device, before)
        if not satisfied or (plan.all_devices and not self._has_capacity(verdict, device, position)):
            self._uncharge(taken)
            return None
        self._mark(taken)
        return taken

    def _satisfies(self, plan: RequestPlan, device: DeviceView, constraints: tuple[Constraint, ...]) -> bool:
        if not plan.constraints:
            return True
        after = list(constraints)
        for number in plan.constraints:
            added = after[number].add(self._attributes.of(plan, device, after[number].attribute))
            if added is None:
                if plan.all_devices:
                    text = f"cannot add device {device.id} because a claim constraint would not be satisfied"
                    raise plan_fault("constraint", plan, text, device=device.id)
                return False
            after[number] = added
        self.constraints[plan.claim] = tuple(after)
        return True

    def is_shared(self, device: DeviceView, position: int) -> bool:
        """Whether a share of the device is had already, so that a further one draws on no counter."""
        return position in self.shares or device.name in device.pool.use.shared

    def _charge(self, shape: Shape, pool: PoolView) -> bool:
        """Draw on the counters; nothing is drawn where one is short, or any of the pool is overdrawn already."""
        left, owner = pool.counters_left, id(pool)
        if pool.overdrawn or (self._groups is not None and not self._groups.add(pool, shape)):
            return False
        for number, (key, amount) in enumerate(shape.draws):
            drawn = self.drawn.get((owner, key), 0) + amount
            self.drawn[owner, key] = drawn
            if drawn > left[key]:
                for undone, less in shape.draws[: number + 1]:
                    self.drawn[owner, undone] -= less
                if self._groups is not None:
                    self._groups.remove(pool, shape)
                return False
        return True

    def _uncharge(self, taken: Taken) -> None:
        self.constraints[taken.picked.plan.claim] = taken.constraints
        if not taken.charged:
            return
        device = taken.picked.device
        for key, amount in device.shape.draws:
            self.drawn[id(device.pool), key] -= amount
        if self._groups is not None:
            self._groups.remove(device.pool, device.shape)

    def _has_capacity(self, verdict: Verdict, device: DeviceView, position: int) -> bool:
        if not verdict.amounts:
            return True
        held = device.pool.use.consumed.get(device.name, {})
        shares = self.shares.get(position, ())
        capacities = device.shape.capacities
        return all(
            amount.nano + held.get(name, 0) + sum(share.get(name, 0) for share in shares) <= capacities[name].value.nano
            for name, amount in verdict.amounts.items()
        )

    def _mark(self, taken: Taken) -> None:
        picked = taken.picked
        position, claim = picked.position, picked.plan.claim
        if picked.amounts is None:
            self.marks[position] = self.marks.get(position, frozenset()) | {claim}
        else:
            share = {name: amount.nano for name, amount in picked.amounts.items()}
            self.shares[position] = (*self.shares.get(position, ()), share)
        self.results[claim].append(picked)

    def give_back(self, taken: Taken) -> None:
        """Undo the latest `take` that is not undone yet."""
        position, claim = taken.picked.position, taken.picked.plan.claim
        self.results[claim].pop()
        if taken.picked.amounts is None:
            kept = self.marks.pop(position) - {claim}
            if kept:
                self.marks[position] = kept
        else:
            shares = self.shares.pop(position)[:-1]
            if shares:
                self.shares[position] = shares
        self._uncharge(taken)
