"""Ask the fleet about a wish: what would become of its pod, by which rules devices fall, and what else would fit.

A wish that does not fit now is asked once more of the same fleet with nothing in use: what fits there will wait, what
does not never can.
"""

from __future__ import annotations

from collections.abc import Iterable

from claims.manifests import Files
from claims.services.fit.answer import Fit, Outcome
from claims.services.fit.claim import claim_of
from claims.services.fit.idle import idle_answer
from claims.services.fit.pod import needs_of
from claims.services.fit.proposals import proposals
from claims.services.preview import Preview
from dra.advice.explanation import DeviceRequestExplanation, FleetExplanation, StepKind
from dra.advice.fleetwide import explain_fleet
from dra.errors import DraError
from dra.fleet import FleetAnswer, PodNeeds, Wish
from dra.objects import ResourceClaim
from gpuinventory.selectors.held import Held

_BEFORE_USE = (StepKind.DEVICES, StepKind.CLASS, StepKind.SELECTOR, StepKind.TAINT)
_BY_USE = (StepKind.IN_USE, StepKind.COUNTERS, StepKind.CAPACITY)


def fit(seen: Preview, held: Held) -> Fit | None:
    """The answer for the wish of this preview, None where it is no wish yet. Changes nothing."""
    if seen.files is None:
        return None
    claim = claim_of(seen.files)
    needs, pod_fault = _needs(seen.files, held)
    wish = Wish(resource_claims=(claim,), pod=needs)
    answer = held.fleet.answer(held.snapshot, wish, held.usage)
    explanation = explain_fleet(held.snapshot, [claim])
    outcome = _outcome(seen, held, wish, answer, explanation)
    first = next(iter(explanation.device_requests), None)
    return Fit(
        outcome=outcome,
        answer=answer,
        explanation=explanation,
        matching=_left_after(first, _BEFORE_USE),
        free=_left_after(first, _BY_USE),
        ahead=sum(held.waiting.get(name, 0) for name in _classes(claim)),
        proposals=() if outcome in (Outcome.NOW, Outcome.POD_LIMITS) else proposals(seen, held, wish),
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


def _outcome(seen: Preview, held: Held, wish: Wish, answer: FleetAnswer, explanation: FleetExplanation) -> Outcome:
    if answer.aborts:
        return Outcome.ABORTED
    if answer.fitting:
        return Outcome.NOW
    if any(group.fits for group in answer.groups):
        return Outcome.POD_LIMITS
    if _unread(seen, explanation):
        return Outcome.UNKNOWN
    return Outcome.WAIT if idle_answer(held.snapshot, wish).fitting else Outcome.NEVER


def _unread(seen: Preview, explanation: FleetExplanation) -> bool:
    """Whether a pool that could hold such devices is not read in full."""
    driver = seen.chosen.facts.driver if seen.chosen else None
    return any(driver is None or str(miss.facts["pool"]).startswith(f"{driver}/") for miss in explanation.pools)


def _left_after(explained: DeviceRequestExplanation | None, kinds: Iterable[StepKind]) -> int:
    """The devices left after the last of these steps."""
    steps = [step for step in explained.steps if step.kind in kinds] if explained else []
    return steps[-1].left if steps else 0


def _classes(claim: ResourceClaim) -> set[str]:
    requests = claim.spec.devices.requests
    exact = {each.exactly.device_class_name for each in requests if each.exactly is not None}
    return exact | {sub.device_class_name for each in requests for sub in each.first_available}
