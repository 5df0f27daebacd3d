"""Why resource claims fit or do not fit on one node: every rule's count, every fallen device's reason, the warnings.

The verdict is the engine's answer for the node; the steps say which rule removed what. Whose names are heard is decided
by `dra.advice.voice`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Final

from dra.advice.asks import asks
from dra.advice.count import Trials, count
from dra.advice.explanation import Code, DeviceRequestExplanation, Explanation, Miss, Verdict
from dra.advice.rules import Pods
from dra.advice.walk import Walk, constrain, walked
from dra.advice.warn import warnings
from dra.allocation import Allocated, Answer, Failed, NodeView, Snapshot, allocate
from dra.errors import InvalidObjectError, InvalidQuantityError
from dra.names import ClaimRef
from dra.objects.resourceclaim import ResourceClaim
from dra.pools import PoolState

NO_PODS: Final[Mapping[ClaimRef, tuple[str, ...]]] = MappingProxyType({})


def explain(
    snapshot: Snapshot,
    node_name: str,
    resource_claims: Sequence[ResourceClaim],
    *,
    pods: Pods = NO_PODS,
    answer: Answer | None = None,
) -> Explanation:
    """The explanation for one node; `pods` names the pods that may use each allocated resource claim, `answer` is what
    `allocate` says of the node, where it was asked already.

    UnknownNodeError where the snapshot has no such node. A wish that the scheduler cannot read (malformed amount or
    node selector) has no steps: verdict and warning carry the scheduler's error.
    """
    answer = answer or allocate(snapshot, node_name, resource_claims)
    try:
        view = snapshot.node(node_name)
        walks = [walked(ask, view, pods) for ask in asks(resource_claims, snapshot.classes)]
    except (InvalidObjectError, InvalidQuantityError):
        return Explanation(
            node=node_name, verdict=verdict_of(answer), device_requests=(), warnings=warnings(node_name, answer, [])
        )
    for _, of_claim in groupby(walks, key=lambda walk: walk.ask.claim):
        constrain(list(of_claim))
    trials = Trials(snapshot=snapshot, node_name=node_name, resource_claims=resource_claims, answer=answer)
    _count_all(walks, trials)
    device_requests = tuple(map(_explained, walks))
    return Explanation(
        node=node_name,
        verdict=verdict_of(answer),
        device_requests=device_requests,
        pools=pools_aside(view),
        warnings=warnings(node_name, answer, device_requests),
    )


def verdict_of(answer: Answer) -> Verdict:
    """The scheduler's answer in a word; our own search limit makes it unknown."""
    match answer:
        case Allocated():
            return Verdict.FITS
        case Failed(kind="budget"):
            return Verdict.UNKNOWN
        case Failed():
            return Verdict.FAILED
        case _:
            return Verdict.REFUSED


def pools_aside(view: NodeView) -> tuple[Miss, ...]:
    """Pools that the node sees but whose devices are not looked at, with the reason."""
    codes = {PoolState.INCOMPLETE: Code.POOL_INCOMPLETE, PoolState.INVALID: Code.POOL_INVALID}
    return tuple(
        Miss(code=codes[pool.state], facts={"pool": str(pool.id), "reason": pool.reason})
        for pool in view.pools
        if pool.state in codes
    )


def _count_all(walks: Sequence[Walk], trials: Trials) -> None:
    blocked = False
    for _, alternatives in groupby(walks, key=lambda walk: (walk.ask.claim, walk.ask.request)):
        enough = [count(walk, trials, blocked=blocked) for walk in alternatives]
        blocked = blocked or not any(enough)


def _explained(walk: Walk) -> DeviceRequestExplanation:
    metadata = walk.ask.resource_claim.metadata
    return DeviceRequestExplanation(
        resource_claim=f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name,
        device_request=walk.ask.name,
        device_class=walk.ask.exact.device_class_name,
        allocation_mode=walk.ask.exact.allocation_mode,
        needed=walk.needed,
        steps=tuple(walk.steps),
        nearest_miss=walk.nearest_miss,
    )
