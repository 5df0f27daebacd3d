"""Changes of a wish that might make it fit, as ladders from the smallest to the largest. Nothing is tried here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from dra.advice.asks import Ask
from dra.advice.explanation import ChangeCode, Facts
from dra.advice.literals import Comparison, comparisons
from dra.advice.published import Published, relative_size
from dra.allocation import is_identifier
from dra.objects.device import DeviceTaint
from dra.objects.deviceclass import CelSelector, DeviceSelector
from dra.objects.resourceclaim import DeviceSubRequest, DeviceToleration, ResourceClaim
from dra.quantity import Quantity

# How large a change is that has no numbers to compare: 0 changes nothing, 1 everything.
_CONSTRAINT_SIZE = 0.6
_CLASS_SIZE = 0.7
_TAINT_SIZE = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One changed wish; `size` orders changes, smaller is better."""

    code: ChangeCode
    facts: Facts
    resource_claims: tuple[ResourceClaim, ...]
    size: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """Changes of one thing, smallest first. `monotone`: what fits on a rung fits on every later one."""

    rungs: Sequence[Change]
    monotone: bool


@dataclass(frozen=True, slots=True)
class Wish:
    """The resource claims, with one place in them that is changed."""

    resource_claims: Sequence[ResourceClaim]
    ask: Ask

    def facts(self, before: str | int, after: str | int) -> Facts:
        """What all changes say."""
        metadata = self.ask.resource_claim.metadata
        name = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
        return {"resource_claim": name, "device_request": self.ask.name, "from": before, "to": after}

    def changed[T](self, **fields: T) -> tuple[ResourceClaim, ...]:
        """The resource claims with other fields in this device request or alternative."""
        exact = msgspec.structs.replace(self.ask.exact, **fields)
        devices = self.ask.resource_claim.spec.devices
        requests = list(devices.requests)
        before = requests[self.ask.request]
        if self.ask.alternative is None or not isinstance(exact, DeviceSubRequest):
            requests[self.ask.request] = msgspec.structs.replace(before, exactly=exact)
        else:
            alternatives = list(before.first_available)
            alternatives[self.ask.alternative] = exact
            requests[self.ask.request] = msgspec.structs.replace(before, first_available=tuple(alternatives))
        return self.with_devices(requests=tuple(requests))

    def with_devices[T](self, **fields: T) -> tuple[ResourceClaim, ...]:
        """The resource claims with other requests or constraints in the claim of this device request."""
        claim = self.ask.resource_claim
        devices = msgspec.structs.replace(claim.spec.devices, **fields)
        changed = msgspec.structs.replace(claim, spec=msgspec.structs.replace(claim.spec, devices=devices))
        return (*self.resource_claims[: self.ask.claim], changed, *self.resource_claims[self.ask.claim + 1 :])


def fewer_devices(wish: Wish) -> Iterator[Ladder]:
    """One less, two less, down to one."""
    count = wish.ask.exact.count
    if wish.ask.takes_all or count < 2:
        return
    yield Ladder(
        monotone=True,
        rungs=[
            Change(
                code=ChangeCode.COUNT,
                facts=wish.facts(count, fewer),
                resource_claims=wish.changed(count=fewer),
                size=(count - fewer) / count,
            )
            for fewer in range(count - 1, 0, -1)
        ],
    )


def less_capacity(wish: Wish, published: Published) -> Iterator[Ladder]:
    """For each requested capacity, the amounts that some device has left or allows, largest first."""
    capacity = wish.ask.exact.capacity
    for name, requested in wish.ask.requested.items():
        amounts = [each for each in published.shares_left(name) if each < requested]
        yield Ladder(
            monotone=True,
            rungs=[_with_amount(wish, name, Quantity(each.nano, requested.format)) for each in amounts if capacity],
        )


def _with_amount(wish: Wish, name: str, amount: Quantity) -> Change:
    before = wish.ask.requested[name]
    requests = {**{key: str(each) for key, each in wish.ask.requested.items()}, name: str(amount)}
    capacity = msgspec.structs.replace(wish.ask.exact.capacity, requests=requests) if wish.ask.exact.capacity else None
    return Change(
        code=ChangeCode.CAPACITY,
        facts={**wish.facts(str(before), str(amount)), "capacity": name},
        resource_claims=wish.changed(capacity=capacity),
        size=1 - amount.nano / before.nano if before.nano else 1.0,
    )


def other_classes(wish: Wish, classes: Sequence[str]) -> Iterator[Ladder]:
    """Each class out of the candidates."""
    before = wish.ask.exact.device_class_name
    for name in classes:
        if name != before:
            change = Change(
                code=ChangeCode.DEVICE_CLASS,
                facts=wish.facts(before, name),
                resource_claims=wish.changed(device_class_name=name),
                size=_CLASS_SIZE,
            )
            yield Ladder(monotone=False, rungs=(change,))


def dropped_constraints(wish: Wish) -> Iterator[Ladder]:
    """Each constraint of the resource claim left out; asked once per resource claim, at its first device request."""
    if wish.ask.request or wish.ask.alternative:
        return
    constraints = wish.ask.resource_claim.spec.devices.constraints
    for index, constraint in enumerate(constraints):
        attribute = constraint.match_attribute or constraint.distinct_attribute or ""
        change = Change(
            code=ChangeCode.CONSTRAINT,
            facts={**wish.facts(attribute, ""), "attribute": attribute, "constraint": index},
            resource_claims=wish.with_devices(constraints=(*constraints[:index], *constraints[index + 1 :])),
            size=_CONSTRAINT_SIZE,
        )
        yield Ladder(monotone=False, rungs=(change,))


def tolerated_taints(wish: Wish, published: Published) -> Iterator[Ladder]:
    """Each NoSchedule taint that keeps devices away; NoExecute would end the pods, so it is never proposed."""
    for taint in published.untolerated(wish.ask.exact.tolerations):
        if taint.effect == "NoSchedule":
            yield Ladder(monotone=False, rungs=(_with_toleration(wish, taint),))


def _with_toleration(wish: Wish, taint: DeviceTaint) -> Change:
    toleration = DeviceToleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
    facts: Facts = {"key": taint.key, "value": taint.value, "effect": taint.effect}
    return Change(
        code=ChangeCode.TOLERATION,
        facts={**wish.facts("", taint.key), **facts},
        resource_claims=wish.changed(tolerations=(*wish.ask.exact.tolerations, toleration)),
        size=_TAINT_SIZE,
    )


def other_literals(wish: Wish, published: Published) -> Iterator[Ladder]:
    """For each conjunct of a selector that compares with a literal, the nearest values that devices publish."""
    for index, selector in enumerate(wish.ask.exact.selectors):
        for comparison in comparisons(selector.cel.expression if selector.cel else ""):
            if not is_identifier(comparison.identifier):
                values = published.nearest(comparison)
                rungs = [_with_literal(wish, index, comparison, value) for value in values]
                yield Ladder(monotone=comparison.relation != "==", rungs=rungs)


def _with_literal(wish: Wish, index: int, comparison: Comparison, value: str | int) -> Change:
    selectors = list(wish.ask.exact.selectors)
    expression = comparison.with_value(value)
    selectors[index] = DeviceSelector(cel=CelSelector(expression=expression))
    facts: Facts = {
        "selector": index,
        "source": comparison.source,
        "identifier": comparison.identifier,
        "relation": comparison.relation,
        "expression": expression,
    }
    return Change(
        code=ChangeCode.LITERAL,
        facts={**wish.facts(comparison.value, value), **facts},
        resource_claims=wish.changed(selectors=tuple(selectors)),
        size=relative_size(comparison.value, value, comparison.wrapper),
    )
