"""Ask the fleet about a wish: what would become of its pod, by which rules devices fall, and what else would fit.

A wish that does not fit now is asked once more of the same fleet with nothing in use: what fits there will wait, what
does not never can. The scheduler passes over a pool that is not read in full and says nothing of it
(`allocateOne` of the structured allocator), so that such a pool leaves a doubt only where nothing else would do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import msgspec

from claims.manifests import Files
from claims.services.fit.answer import Fit, Outcome
from claims.services.fit.claim import choice_of, claim_of
from claims.services.fit.explained import explanation
from claims.services.fit.idle import idle_answer
from claims.services.fit.pod import needs_of
from claims.services.fit.proposals import proposals
from claims.services.fit.stop import Stop, stop_of
from claims.services.preview import Preview
from dra.advice.explanation import Code, DeviceRequestExplanation, FleetExplanation, Miss, StepKind
from dra.allocation import Allocated
from dra.errors import DraError
from dra.fleet import FleetAnswer, PodNeeds, Wish
from dra.objects import DeviceRequestAllocationResult, ResourceClaim
from dra.pools import PoolID
from gpuinventory.selectors.held import Held

_BEFORE_USE = (StepKind.DEVICES, StepKind.CLASS, StepKind.SELECTOR, StepKind.TAINT)
_BY_USE = (StepKind.IN_USE, StepKind.COUNTERS, StepKind.CAPACITY)
_FITTING = (Outcome.NOW, Outcome.POD_LIMITS)
_STOPPED = (Outcome.ABORTED, Outcome.NEVER)


def fit(seen: Preview, held: Held, *, own: int = 0) -> Fit | None:
    """The answer for the wish of this preview, None where it is no wish yet. Changes nothing.

    `own` claims of the same wish wait already; they are not ahead of themselves.
    """
    if seen.files is None:
        return None
    claim = claim_of(seen.files)
    needs, pod_fault = _needs(seen.files, held)
    wish = Wish(resource_claims=(claim,), pod=needs)
    answer = held.fleet.answer(held.snapshot, wish, held.usage)
    explained = explanation(held.snapshot, claim, answer)
    known = _outcome(answer)
    idle = None if known else idle_answer(held.snapshot, wish)
    unread = _unread(seen, held, explained, idle) if idle else None
    outcome = known or _later(idle, unread)
    first = next(iter(explained.device_requests), None)
    given = _given_by_best(answer)
    return Fit(
        outcome=outcome,
        answer=answer,
        explanation=explained,
        matching=_left_after(first, _BEFORE_USE),
        free=_left_after(first, _BY_USE),
        ahead=sum(max(held.waiting.get(name, 0) - own, 0) for name in _classes(claim)),
        serving=choice_of(given[0].request) if given else 0,
        alone=tuple(_alone(held, wish)),
        made_ready=any(each.binding_conditions for each in given),
        idle=idle,
        unread=unread if outcome is Outcome.UNKNOWN else None,
        stop=_stop(claim, held, outcome, idle or answer),
        proposals=() if outcome in _FITTING else proposals(seen, held, wish, outcome, answer),
        pod_fault=pod_fault,
        revision=held.revision,
        as_of=held.as_of,
    )


def _needs(files: Files, held: Held) -> tuple[PodNeeds, str]:
    """What the pod asks of its node; where that can't be read, nothing, and why."""
    try:
        return needs_of(files, held.snapshot), ""
    except DraError as error:
        return PodNeeds(), str(error)


def _outcome(answer: FleetAnswer) -> Outcome | None:
    """What is known without asking the fleet with nothing in use."""
    if answer.aborts:
        return Outcome.ABORTED
    if answer.fitting:
        return Outcome.NOW
    if any(group.fits for group in answer.groups):
        return Outcome.POD_LIMITS
    return None


def _later(idle: FleetAnswer | None, unread: Miss | None) -> Outcome:
    """What becomes of a pod that has no place now. A selector that fails on a device is not put to one in use: with
    nothing in use the search may end in an error.
    """
    if idle and idle.fitting and not idle.aborts:
        return Outcome.WAIT
    return Outcome.UNKNOWN if unread and not (idle and idle.aborts) else Outcome.NEVER


def _stop(claim: ResourceClaim, held: Held, outcome: Outcome, answer: FleetAnswer) -> Stop | None:
    """The first of the errors that end the search, where they decide."""
    if outcome not in _STOPPED or not answer.aborts:
        return None
    return stop_of(answer.aborts[0].failed, claim, held.snapshot)


def _alone(held: Held, wish: Wish) -> Iterator[int]:
    """On how many nodes each choice fits with no other beside it."""
    (claim,) = wish.resource_claims
    (request,) = claim.spec.devices.requests
    for each in request.first_available:
        only = msgspec.structs.replace(request, first_available=(each,))
        devices = msgspec.structs.replace(claim.spec.devices, requests=(only,))
        asked = msgspec.structs.replace(claim, spec=msgspec.structs.replace(claim.spec, devices=devices))
        answer = held.fleet.answer(held.snapshot, replace(wish, resource_claims=(asked,)), held.usage)
        yield 0 if answer.aborts else answer.fitting


def _given_by_best(answer: FleetAnswer) -> list[DeviceRequestAllocationResult]:
    """The devices that the best node would give."""
    given = (group.answer for group in answer.groups if answer.best in group.nodes)
    return [each for found in given if isinstance(found, Allocated) for each in found.results[0].devices.results]


def _unread(seen: Preview, held: Held, explained: FleetExplanation, idle: FleetAnswer) -> Miss | None:
    """The first pool that is not read in full, could hold devices of a choice, and is on a node that takes the pod."""
    classes, choices = seen.bounds.classes, seen.wish.choices if seen.wish else ()
    drivers = {classes[each.device_class].driver for each in choices}
    for miss in explained.pools:
        pool = PoolID(*str(miss.facts["pool"]).split("/", 1))  # a pool's name may have more of them
        nodes = {each.node_name for each in held.snapshot.pools.get(pool, ())}
        if miss.code is Code.POOL_INCOMPLETE and drivers & {None, pool.driver} and nodes - idle.pod_refused:
            return miss
    return None


def _left_after(explained: DeviceRequestExplanation | None, kinds: Iterable[StepKind]) -> int:
    """The devices left after the last of these steps."""
    steps = [step for step in explained.steps if step.kind in kinds] if explained else []
    return steps[-1].left if steps else 0


def _classes(claim: ResourceClaim) -> set[str]:
    requests = claim.spec.devices.requests
    exact = {each.exactly.device_class_name for each in requests if each.exactly is not None}
    return exact | {sub.device_class_name for each in requests for sub in each.first_available}
