"""The count step: whether enough devices can be had at once, found by allocating.

What is left after the rules of single devices may still exclude each other (counters, constraints) or be wanted by an
earlier device request. Only the allocation engine can tell, so it is asked: alone, then beside the earlier ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from dra.advice.asks import Ask
from dra.advice.explanation import Code, Facts, Miss, StepKind
from dra.advice.walk import Walk
from dra.allocation import Allocated, Answer, Failed, Refused, Snapshot, allocate
from dra.objects.resourceclaim import DeviceRequest, ResourceClaim

MAX_DEVICES: Final = 32  # of one resource claim (resource.k8s.io AllocationResultsMaxSize)
EXACT_COUNT: Final = "ExactCount"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """Allocations of parts of a wish on one node. `answer` is that of the whole wish."""

    snapshot: Snapshot
    node_name: str
    resource_claims: Sequence[ResourceClaim]
    answer: Answer

    def serves(self, ask: Ask) -> bool:
        """Whether the whole wish is allocated, with this device request or alternative in it."""
        if not isinstance(self.answer, Allocated):
            return False
        return any(result.request == ask.name for result in self.answer.results[ask.claim].devices.results)

    def fits(self, ask: Ask, *, beside: bool, count: int | None = None) -> bool | None:
        """Whether this device request fits, by itself or beside all earlier ones, with another count if one is given.

        None where the engine has an error instead of an answer.
        """
        part = self._part(ask, beside=beside, count=count)
        whole = count is None and len(part) == len(self.resource_claims) and part == list(self.resource_claims)
        answer = self.answer if whole else allocate(self.snapshot, self.node_name, part)
        match answer:
            case Failed():
                return None
            case Allocated():
                return True
            case Refused():
                return False

    def largest(self, ask: Ask, needed: int, *, beside: bool) -> int:
        """The largest count below `needed` that fits; less always fits where more does."""
        low, high = 0, min(needed, MAX_DEVICES + 1)
        while high - low > 1:
            middle = (low + high) // 2
            if self.fits(ask, beside=beside, count=middle):
                low = middle
            else:
                high = middle
        return low

    def _part(self, ask: Ask, *, beside: bool, count: int | None) -> list[ResourceClaim]:
        devices = ask.resource_claim.spec.devices
        earlier = devices.requests[: ask.request] if beside else ()
        requests = (*earlier, _narrowed(devices.requests[ask.request], ask, count))
        spec = msgspec.structs.replace(
            ask.resource_claim.spec, devices=msgspec.structs.replace(devices, requests=requests)
        )
        part = msgspec.structs.replace(ask.resource_claim, spec=spec)
        return [*(self.resource_claims[: ask.claim] if beside else ()), part]


def _narrowed(device_request: DeviceRequest, ask: Ask, count: int | None) -> DeviceRequest:
    """The device request with this alternative only, and so many devices."""
    if ask.alternative is None:
        exact = device_request.exactly
        if count is None or exact is None:
            return device_request
        counted = msgspec.structs.replace(exact, allocation_mode=EXACT_COUNT, count=count)
        return msgspec.structs.replace(device_request, exactly=counted)
    alternative = device_request.first_available[ask.alternative]
    if count is not None:
        alternative = msgspec.structs.replace(alternative, allocation_mode=EXACT_COUNT, count=count)
    return msgspec.structs.replace(device_request, first_available=(alternative,))


def count(walk: Walk, trials: Trials, *, blocked: bool) -> bool:
    """The count step of one walk; whether enough is left. `blocked`: an earlier device request has nothing to stand
    beside, so this one is tried by itself.
    """
    facts: Facts = {"needed": walk.needed}
    if not walk.cohort:
        walk.skip(StepKind.COUNT, facts=facts)
        return False
    judged = _judged(walk, trials, blocked=blocked)
    if isinstance(judged, Unknown):
        walk.skip(StepKind.COUNT, facts=facts)
        return False
    walk.take(StepKind.COUNT, [judged] * len(walk.cohort), facts=facts)
    return judged is None


@dataclass(frozen=True, slots=True)
class Unknown:
    """The engine has an error instead of an answer."""


def _judged(walk: Walk, trials: Trials, *, blocked: bool) -> Miss | Unknown | None:
    needed, left, ask = walk.needed, len(walk.cohort), walk.ask
    if needed > MAX_DEVICES:
        return Miss(code=Code.COUNT_OVER_LIMIT, facts={"needed": needed, "limit": MAX_DEVICES})
    if left < needed:
        return Miss(code=Code.COUNT_SHORT, facts={"needed": needed, "found": left})
    if trials.serves(ask):
        return None
    alone = trials.fits(ask, beside=False)
    if alone is False:
        found = trials.largest(ask, needed, beside=False)
        return Miss(code=Code.COUNT_SHORT, facts={"needed": needed, "found": found})
    if alone is None:
        return Unknown()
    return None if blocked or _is_first(ask) else _beside(walk, trials)


def _is_first(ask: Ask) -> bool:
    return ask.claim == ask.request == 0


def _beside(walk: Walk, trials: Trials) -> Miss | Unknown | None:
    together = trials.fits(walk.ask, beside=True)
    if together is None:
        return Unknown()
    if together:
        return None
    found = trials.largest(walk.ask, walk.needed, beside=True)
    facts: Facts = {"needed": walk.needed, "found": found, "beside": _earlier(walk.ask, trials)}
    return Miss(code=Code.COUNT_TOGETHER, facts=facts)


def _earlier(ask: Ask, trials: Trials) -> tuple[str, ...]:
    """Names of the device requests that are served before, those of other resource claims with the claim's name."""
    others = (
        f"{claim.metadata.name}/{request.name}"
        for claim in trials.resource_claims[: ask.claim]
        for request in claim.spec.devices.requests
    )
    own = (request.name for request in ask.resource_claim.spec.devices.requests[: ask.request])
    return (*others, *own)
