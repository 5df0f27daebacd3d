"""Parts of what a node sees: devices that share counters, told apart only by what a question can notice. Pure.

A part's `kind` is a number that equal parts share; its condition says what attempts have left of it. Nothing here knows
names: parts of different cards, or pools, are of one kind where a question cannot tell them apart.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dra.allocation.derived import published_attribute
from dra.allocation.request import ClaimPlan, PlanKey, RequestPlan
from dra.allocation.state import State
from dra.allocation.verdict import Judge, Verdict
from dra.allocation.view import DeviceView, NodeView
from dra.capacity import Amounts
from dra.constraints import attribute_value
from dra.counters import CounterKey


@dataclass(frozen=True, slots=True)
class Member:
    """A device of a part: what it draws on the part's counters, by their number there."""

    position: int
    draws: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Devices that share counters, in order; `counters` with what allocated devices left of each.

    `exact`: which devices are taken matters, not only which can still be had (admin access takes them twice).
    """

    positions: tuple[int, ...]
    members: tuple[Member, ...]
    counters: tuple[tuple[tuple[int, CounterKey], int], ...]
    kind: int
    ranks: Mapping[int, int]
    exact: bool
    _known: dict[Hashable, Hashable] = field(default_factory=dict)

    def condition(self, state: State) -> Hashable:
        """Equal where the same can still be had of parts of one kind."""
        marks, shares = state.marks, state.shares
        taken = tuple(
            (rank, marks.get(position), _total(shares.get(position, ())), position in shares)
            for rank, position in enumerate(self.positions)
            if position in marks or position in shares
        )
        if not taken or self.exact:
            return taken
        known = self._known.get(taken)
        if known is None:
            known = self._known[taken] = self._left(state)
        return known

    def _left(self, state: State) -> Hashable:
        left = tuple(amount - state.drawn.get(key, 0) for key, amount in self.counters)
        free = tuple(
            _total(state.shares[member.position])
            if member.position in state.shares
            else member.position not in state.marks and all(amount <= left[key] for key, amount in member.draws)
            for member in self.members
        )
        return left, free


def _total(shares: Iterable[Mapping[str, int]]) -> Hashable:
    total: dict[str, int] = {}
    for share in shares:
        for name, amount in share.items():
            total[name] = total.get(name, 0) + amount
    return frozenset(total.items())


def parts_of(
    view: NodeView,
    claims: Sequence[ClaimPlan],
    judges: Mapping[PlanKey, Judge],
    plans: Sequence[RequestPlan],
) -> tuple[Part, ...]:
    """The parts that some plan looks at, in order of their first devices."""
    notice = _Notice(view, claims, [judges[plan.key] for plan in plans])
    exact = any(plan.admin for plan in plans) or view.features.device_compatibility_groups
    gathered: dict[object, list[tuple[int, DeviceView, Hashable]]] = {}
    for position, device in enumerate(view.devices()):
        role = notice.role(position, device)
        if role is not None:
            gathered.setdefault(_joint(device, position), []).append((position, device, role))
    kinds: dict[Hashable, int] = {}
    return tuple(_part(members, kinds, exact=exact) for members in _merged(gathered))


def _joint(device: DeviceView, position: int) -> object:
    """What devices of one part have in common: counter sets of one pool, or nothing."""
    sets = frozenset(name for name, _ in device.shape.groups)
    return (device.pool.id, sets) if sets else position


type _Members = list[tuple[int, DeviceView, Hashable]]


def _merged(gathered: Mapping[object, _Members]) -> list[_Members]:
    """Joins groups that have a counter set in common."""
    owners: dict[object, _Members] = {}
    merged: list[_Members] = []
    for joint, members in gathered.items():
        keys = [(joint[0], name) for name in joint[1]] if isinstance(joint, tuple) else [joint]
        known = [owners[key] for key in keys if key in owners]
        target = known[0] if known else []
        if not known:
            merged.append(target)
        for other in known[1:]:
            if other is not target:
                target.extend(other)
                merged = [each for each in merged if each is not other]
                owners = {key: target if owner is other else owner for key, owner in owners.items()}
        target.extend(members)
        owners.update(dict.fromkeys(keys, target))
    return [sorted(each, key=lambda member: member[0]) for each in merged]


def _part(members: _Members, kinds: dict[Hashable, int], *, exact: bool) -> Part:
    pool = members[0][1].pool
    numbers: dict[CounterKey, int] = {}
    drawing = tuple(
        Member(
            position,
            tuple((numbers.setdefault(key, len(numbers)), amount) for key, amount in device.shape.draws),
        )
        for position, device, _ in members
    )
    counters = tuple(((id(pool), key), pool.counters_left[key]) for key in numbers)
    roles = tuple(role for _, _, role in members)
    draws = tuple(member.draws for member in drawing)
    content = (roles, draws, tuple(left for _, left in counters), bool(numbers) and pool.overdrawn)
    positions = tuple(position for position, _, _ in members)
    return Part(
        positions=positions,
        members=drawing,
        counters=counters,
        kind=kinds.setdefault(content, len(kinds)),
        ranks={position: rank for rank, position in enumerate(positions)},
        exact=exact,
    )


class _Notice:
    """What the question can notice of a device."""

    def __init__(self, view: NodeView, claims: Sequence[ClaimPlan], judges: Sequence[Judge]) -> None:
        self._judges = judges
        self._grouped = view.features.device_compatibility_groups
        # Where a constraint may end everything, the order of devices decides whether it does.
        self._ordered = any(may_abort(judge.plan) for judge in judges)
        self._constraints = [constraint for claim in claims for constraint in claim.constraints]
        self._signatures: dict[int, tuple[Verdict, Hashable]] = {}

    def role(self, position: int, device: DeviceView) -> Hashable | None:
        """Equal for devices that differ in nothing but place and draws; None where no plan looks at the device."""
        verdicts = [judge.of(device.pool, device.slice_, device.index) for judge in self._judges]
        if not any(verdict.usable or verdict.fault is not None for verdict in verdicts):
            return None
        if self._ordered or (self._grouped and device.shape.groups):
            return position
        name, use = device.name, device.pool.use
        consumed = use.consumed.get(name, {})
        room = tuple(
            (key, each.value.nano - consumed.get(key, 0)) for key, each in sorted(device.shape.capacities.items())
        )
        values = tuple(self._value(device, each.attribute, lists=each.lists) for each in self._constraints)
        in_use = (name in use.whole, name in use.shared, device.shape.allow_multiple)
        return (*map(self._signature, verdicts), room, values, in_use)

    def _value(self, device: DeviceView, name: str, *, lists: bool) -> Hashable:
        attribute = published_attribute(device, name)
        return None if attribute is None else (attribute_value(attribute, lists=lists),)

    def _signature(self, verdict: Verdict) -> Hashable:
        known = self._signatures.get(id(verdict))
        if known is None:
            content = (verdict.selectable, verdict.allowed, _amounts(verdict.amounts), repr(verdict.fault))
            known = self._signatures[id(verdict)] = (verdict, content)
        return known[1]


def may_abort(plan: RequestPlan) -> bool:
    """Whether taking a device for the request may be an error, by what was taken before."""
    return bool(plan.constraints) and (plan.all_devices or bool(plan.request.derived_attributes))


def _amounts(amounts: Amounts | None) -> Hashable:
    return None if amounts is None else tuple(sorted((name, amount.nano) for name, amount in amounts.items()))
