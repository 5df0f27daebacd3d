"""Two voices for one explanation: with names for those who may hear them, in numbers only for everybody else.

A foreign resource claim, its namespace and its pods are never named to others: they become a count.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from dra.advice.explanation import DeviceRequestExplanation, Explanation, FleetExplanation, Holder, Miss, Step
from dra.advice.tally import merge_fallen


@dataclass(frozen=True, slots=True)
class Voice:
    """Whose resource claims and pods are named: those of `namespaces`, or all where it is None."""

    namespaces: frozenset[str] | None

    @classmethod
    def operator(cls) -> Voice:
        """Names everybody."""
        return cls(None)

    @classmethod
    def named(cls, own_namespaces: Iterable[str]) -> Voice:
        """Names what lies in one's own namespaces; the rest is a number."""
        return cls(frozenset(own_namespaces))

    @classmethod
    def numbers(cls) -> Voice:
        """Names nobody."""
        return cls(frozenset())

    def names(self, holder: Holder) -> bool:
        """Whether this holder is named."""
        return self.namespaces is None or holder.resource_claim.namespace in self.namespaces


def told[E: (Explanation, FleetExplanation)](explanation: E, voice: Voice) -> E:
    """The explanation as this voice may tell it; a miss says in `held_by_others` how many holders it does not name."""
    return replace(explanation, device_requests=tuple(_request(each, voice) for each in explanation.device_requests))


def _request(request: DeviceRequestExplanation, voice: Voice) -> DeviceRequestExplanation:
    near = request.nearest_miss
    return replace(
        request,
        steps=tuple(_step(step, voice) for step in request.steps),
        nearest_miss=replace(near, misses=tuple(_miss(miss, voice) for miss in near.misses)) if near else None,
    )


def _step(step: Step, voice: Voice) -> Step:
    return replace(step, fallen=merge_fallen(replace(each, miss=_miss(each.miss, voice)) for each in step.fallen))


def _miss(miss: Miss, voice: Voice) -> Miss:
    if not miss.holders:
        return miss
    heard = tuple(holder for holder in miss.holders if voice.names(holder))
    hidden = len(miss.holders) - len(heard)
    return replace(miss, holders=heard, facts={**miss.facts, "held_by_others": hidden} if hidden else miss.facts)
