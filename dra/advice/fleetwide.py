"""The explanation over all nodes: one node of each kind is asked, its steps count for all of the kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from dra.advice.explain import explain, pools_aside
from dra.advice.explanation import AdviceWarning, Explanation, FleetExplanation, Miss, Verdict
from dra.advice.kinds import NOT_ASKED, node_kinds
from dra.advice.tally import add_up
from dra.allocation import Answer, Snapshot
from dra.objects.resourceclaim import ResourceClaim


def explain_fleet(
    snapshot: Snapshot, resource_claims: Sequence[ResourceClaim], answers: Mapping[str, Answer] = NOT_ASKED
) -> FleetExplanation:
    """The same steps as `explain`, summed over all nodes. Holders are left out: ask a node for them.

    `answers` are what `allocate` says of these claims on some nodes; only other nodes are asked.
    """
    kinds = node_kinds(snapshot, resource_claims)
    explained = [(explain(snapshot, names[0], resource_claims, answer=answers.get(names[0])), names) for names in kinds]
    verdicts: Counter[Verdict] = Counter()
    for each, names in explained:
        verdicts[each.verdict] += len(names)
    with_steps = [(each, len(names)) for each, names in explained if each.device_requests]
    device_requests = tuple(
        add_up([(each.device_requests[index], nodes) for each, nodes in with_steps])
        for index in range(len(with_steps[0][0].device_requests) if with_steps else 0)
    )
    return FleetExplanation(
        nodes=dict(verdicts),
        device_requests=device_requests,
        pools=_pools(snapshot, explained),
        warnings=_warnings(explained),
    )


def _pools(snapshot: Snapshot, explained: Sequence[tuple[Explanation, tuple[str, ...]]]) -> tuple[Miss, ...]:
    """Pools that are not looked at, each once however many nodes see it."""
    asides = (
        miss for each, names in explained if each.pools for name in names for miss in pools_aside(snapshot.node(name))
    )
    return tuple({miss.key: miss for miss in asides}.values())


def _warnings(explained: Sequence[tuple[Explanation, tuple[str, ...]]]) -> tuple[AdviceWarning, ...]:
    """Each kind's warnings, with the number of nodes that they hold for."""
    return tuple(
        replace(warning, facts={**warning.facts, "nodes": len(names)})
        for each, names in explained
        for warning in each.warnings
    )
