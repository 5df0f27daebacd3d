"""What pods ask of nodes, what nodes have given, and kube-scheduler's words for why a pod stays. Pure.

The rules themselves are `dra.fleet.podrules`; here are the scheduler's own sentences for them (the plugins'
`ErrReason` texts and `FitError.Error` of pkg/scheduler/framework/types.go, 1.37.2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from dra.extended import is_served_name
from dra.fleet.podrules import PodFault, PodRule, pod_room
from dra.fleet.wish import PodNeeds, Toleration
from dra.objects import Node
from dra.objects.nodeselector import NodeSelector
from dra.quantity import Quantity, parse_quantity
from simulator.hands import is_over
from simulator.store import Object

_NOTHING: Final = Quantity(0)
_ONE: Final = Quantity.of(1)
_NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
_NO_VICTIMS: Final = "No preemption victims found for incoming pod"
_AFFINITY: Final = "node(s) didn't match Pod's node affinity/selector"
_PLACEMENT: Final = {
    PodRule.UNSCHEDULABLE: "node(s) were unschedulable",
    PodRule.TAINT: "node(s) had untolerated taint(s)",
    PodRule.NODE_SELECTOR: _AFFINITY,
    PodRule.NODE_AFFINITY: _AFFINITY,
}


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why one node does not take a pod. `room` is set where fewer other pods there would help; `unusable` names claims
    whose allocation does not serve the pod there.
    """

    reasons: tuple[str, ...]
    room: bool = False
    unusable: tuple[str, ...] = ()


def needs_of(pod: Object) -> PodNeeds:
    """What the pod asks of its node."""
    spec = pod["spec"]
    affinity = spec.get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return PodNeeds(
        node_selector=spec.get("nodeSelector", {}),
        affinity=msgspec.convert(required, NodeSelector) if required else None,
        tolerations=tuple(_toleration(each) for each in spec.get("tolerations", ())),
        requests={name: str(amount) for name, amount in _requests(spec).items()},
    )


def _toleration(given: Mapping[str, Any]) -> Toleration:
    return Toleration(
        key=given.get("key", ""),
        operator=given.get("operator", "Equal"),
        value=given.get("value", ""),
        effect=given.get("effect", ""),
    )


def _requests(spec: Object) -> dict[str, Quantity]:
    """Sums over what runs together; an init container alone may need more (component-helpers PodRequests)."""
    initial = spec.get("initContainers", ())
    total: dict[str, Quantity] = {}
    for container in (*spec["containers"], *(each for each in initial if each.get("restartPolicy") == "Always")):
        total = _added(total, _asked(container))
    for container in initial:
        for name, amount in _asked(container).items():
            total[name] = max(total.get(name, _NOTHING), amount)
    return total


def _asked(container: Mapping[str, Any]) -> dict[str, Quantity]:
    """Requests, and limits where a resource has no request (API defaults)."""
    resources = container.get("resources", {})
    texts = resources.get("limits", {}) | resources.get("requests", {})
    return {name: parse_quantity(str(text)) for name, text in texts.items()}


def _added(one: Mapping[str, Quantity], other: Mapping[str, Quantity]) -> dict[str, Quantity]:
    return {name: one.get(name, _NOTHING) + other.get(name, _NOTHING) for name in one.keys() | other.keys()}


def usage_of(pods: Iterable[Object], chosen: Mapping[str, str]) -> dict[str, dict[str, Quantity]]:
    """What the pods of each node request in all, and how many they are; `chosen` are nodes of pods not yet bound."""
    used: dict[str, dict[str, Quantity]] = {}
    for pod in pods:
        node = pod["spec"].get("nodeName") or chosen.get(pod["metadata"]["uid"])
        if node and not is_over(pod):
            used[node] = _added(used.get(node, {}), _requests(pod["spec"]) | {"pods": _ONE})
    return used


def without_served(needs: PodNeeds, node: Node, served: frozenset[str]) -> PodNeeds:
    """The needs less those that devices meet there (noderesources `shouldDelegateResourceToDRA`)."""
    allocatable = node.status.allocatable
    own = {
        name: text
        for name, text in needs.requests.items()
        if name not in served or not is_served_name(name) or parse_quantity(str(allocatable.get(name, "0"))).nano
    }
    return replace(needs, requests=own)


def rejection(needs: PodNeeds, node: Node, used: Mapping[str, Quantity]) -> Rejection | None:
    """What the first filter that refuses says; None where the node takes the pod."""
    faults = pod_room(needs, node, used).faults
    if not faults:
        return None
    if faults[0].rule is not PodRule.RESOURCES:
        return Rejection((_PLACEMENT[faults[0].rule],))
    return Rejection(
        tuple(_insufficient(each) for each in faults), room=all(_fits_empty(each, node) for each in faults)
    )


def _insufficient(fault: PodFault) -> str:
    return "Too many pods" if fault.subject == "pods" else f"Insufficient {fault.subject}"


def _fits_empty(fault: PodFault, node: Node) -> bool:
    return parse_quantity(fault.asked) <= parse_quantity(node.status.allocatable.get(fault.subject, "0"))


def said_of_all(nodes: int, prefilter: str) -> str:
    """The scheduler's message where the pod is refused before any node is looked at."""
    return f"0/{nodes} nodes are available: {prefilter}. {_preemption(nodes, 0)}"


def said_by_nodes(rejections: Sequence[Rejection], done: str = "") -> str:
    """The scheduler's message where each node refused; `done` is what it did about it."""
    nodes = len(rejections)
    if not nodes:
        return "no nodes available to schedule pods"  # schedule_one.go, ErrNoNodesAvailable
    told = Counter(reason for each in rejections for reason in each.reasons)
    after = f"{done}, " if done else ""
    after += _preemption(nodes, sum(each.room for each in rejections))
    return f"0/{nodes} nodes are available: {_histogram(told)}. {after}"


def _preemption(nodes: int, candidates: int) -> str:
    """DefaultPreemption's part. No victim is ever found: the simulator preempts nobody."""
    told = Counter({_NOT_HELPFUL: nodes - candidates, _NO_VICTIMS: candidates})
    return f"preemption: 0/{nodes} nodes are available: {_histogram(told)}."


def _histogram(told: Counter[str]) -> str:
    return ", ".join(sorted(f"{number} {reason}" for reason, number in told.items() if number))


def fullness(needs: PodNeeds, node: Node, used: Mapping[str, Quantity]) -> float:
    """Mean of the requested parts of cpu and memory with the pod there (NodeResourcesFit, LeastAllocated)."""
    parts = []
    for name in ("cpu", "memory"):
        room = parse_quantity(node.status.allocatable.get(name, "0"))
        asked = used.get(name, _NOTHING) + parse_quantity(needs.requests.get(name, "0"))
        parts.append(asked.nano / room.nano if room.nano else 1.0)
    return sum(parts) / len(parts)
