"""One device request on one node, from all devices seen down to those that are left: steps that add up.

Knows the rules of single devices and of constraints; how many devices can be had together it leaves to `count`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dra.advice.asks import Ask
from dra.advice.common import Party, constraint_misses
from dra.advice.explanation import Facts, Fallen, Miss, NearestMiss, Step, StepKind
from dra.advice.rules import Pods, Rule, matching, rules
from dra.advice.tally import merge_fallen
from dra.allocation import DeviceView, NodeView


@dataclass(slots=True)
class Walk:
    """The way of one device request: steps so far, the devices left, and how many are needed.

    `needed` is final only after the rules of single devices, since All counts what matches.
    """

    ask: Ask
    node: NodeView
    rules: tuple[Rule, ...]
    cohort: list[DeviceView]
    needed: int
    steps: list[Step] = field(default_factory=list)
    last_fallen: list[tuple[DeviceView, Miss]] = field(default_factory=list)

    @property
    def party(self) -> Party:
        """What constraints read of it."""
        return Party(ask=self.ask, cohort=self.cohort, needed=self.needed)

    def take(self, kind: StepKind, judged: Sequence[Miss | None], *, index: int = 0, facts: Facts) -> None:
        """One step: the devices with a reason fall."""
        fallen = [(device, miss) for device, miss in zip(self.cohort, judged, strict=True) if miss is not None]
        self.cohort = [device for device, miss in zip(self.cohort, judged, strict=True) if miss is None]
        self.last_fallen = fallen or self.last_fallen
        self.steps.append(
            Step(
                kind=kind,
                index=index,
                evaluated=True,
                left=len(self.cohort),
                fell=len(fallen),
                facts=facts,
                fallen=_grouped(fallen),
            )
        )

    def skip(self, kind: StepKind, *, index: int = 0, facts: Facts) -> None:
        """A step that no device reached, or that could not be judged."""
        self.steps.append(Step(kind=kind, index=index, evaluated=False, left=0, fell=0, facts=facts))

    @property
    def nearest_miss(self) -> NearestMiss | None:
        """Of the devices that fell last, the first with the fewest rules against it; None while enough are left."""
        last = next((step for step in reversed(self.steps) if step.fell), None)
        if last is None or self.steps[-1].left:
            return None
        later = [rule for rule in self.rules if _place(rule.kind, rule.index) > _place(last.kind, last.index)]
        near = (_nearness(device, miss, last.kind, later) for device, miss in self.last_fallen)
        return max(near, key=lambda each: each.rank, default=None)


def _nearness(device: DeviceView, miss: Miss, step: StepKind, later: Iterable[Rule]) -> NearestMiss:
    more = tuple(other for rule in later if (other := rule.judge(device)) is not None)
    return NearestMiss(device=device.id, step=step, misses=(miss, *more))


def _place(kind: StepKind, index: int) -> tuple[int, int]:
    return tuple(StepKind).index(kind), index


def _grouped(fallen: Sequence[tuple[DeviceView, Miss]]) -> tuple[Fallen, ...]:
    """One entry a reason; devices of one shape share the very object, so most are grouped by identity first."""
    groups: dict[int, tuple[Miss, list[DeviceView]]] = {}
    for device, miss in fallen:
        groups.setdefault(id(miss), (miss, []))[1].append(device)
    return merge_fallen(
        Fallen(count=len(devices), devices=tuple(device.id for device in devices), miss=miss)
        for miss, devices in groups.values()
    )


def walked(ask: Ask, node: NodeView, pods: Pods) -> Walk:
    """The walk through all rules of single devices."""
    devices = [device for device in node.devices() if device.usable_here]
    walk = Walk(ask=ask, node=node, rules=tuple(rules(ask, node, pods)), cohort=devices, needed=ask.exact.count or 1)
    for rule in walk.rules:
        if rule.kind is StepKind.TAINT and ask.takes_all:
            walk.needed = _matching(walk)
        if walk.cohort or rule.kind is StepKind.DEVICES:
            facts = _devices_facts(node) if rule.kind is StepKind.DEVICES else rule.facts
            walk.take(rule.kind, list(map(rule.judge, walk.cohort)), index=rule.index, facts=facts)
        else:
            walk.skip(rule.kind, index=rule.index, facts=rule.facts)
    return walk


def _matching(walk: Walk) -> int:
    """What All takes: everything that is selected and large enough, in use or not."""
    return sum(matching(walk.ask, walk.node, device) for device in walk.cohort)


def _devices_facts(node: NodeView) -> Facts:
    return {
        state: names
        for state in ("incomplete", "invalid")
        if (names := tuple(str(pool.id) for pool in node.pools if pool.state == state))
    }


def constrain(walks: Sequence[Walk]) -> None:
    """The constraint steps of all device requests of one resource claim, each judged by what was left before any."""
    before = [walk.party for walk in walks]
    for walk, party in zip(walks, before, strict=True):
        features = walk.node.features
        lists = features.allocator == "experimental" and features.list_type_attributes
        derived = {each.name for each in walk.ask.exact.derived_attributes}
        for index, constraint in walk.ask.constraints:
            name = constraint.match_attribute or constraint.distinct_attribute or ""
            facts: Facts = {"attribute": name, "rule": "match" if constraint.match_attribute else "distinct"}
            if not walk.cohort or name in derived:
                walk.skip(StepKind.CONSTRAINT, index=index, facts=facts)
                continue
            others = [each for each in before if each.ask.base != party.ask.base and _bound(each, before, index)]
            misses = constraint_misses(constraint, walk.party, others, lists=lists)
            judged = [misses.get(position) for position in range(len(walk.cohort))]
            walk.take(StepKind.CONSTRAINT, judged, index=index, facts=facts)


def _bound(party: Party, parties: Sequence[Party], index: int) -> bool:
    """Whether the constraint covers every alternative of the device request, so that none escapes it."""
    return all(
        any(index == number for number, _ in each.ask.constraints)
        for each in parties
        if each.ask.base == party.ask.base
    )
