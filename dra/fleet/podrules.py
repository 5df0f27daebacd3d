"""Whether a pod may come to a node for reasons that have nothing to do with devices, and how often. Pure.

The rules of kube-scheduler's filters before DynamicResources: NodeUnschedulable, TaintToleration, NodeAffinity (with
nodeSelector) and NodeResourcesFit. Ports, volumes, topology spread and affinity between pods are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from dra.fleet.wish import PodNeeds, Toleration
from dra.objects.node import Node, Taint
from dra.objects.nodeselector import matches
from dra.quantity import Quantity, parse_quantity

NOTHING_USED: Final[Mapping[str, Quantity]] = MappingProxyType({})
_NONE: Final = Quantity(0)
_ONE_POD: Final = MappingProxyType({"pods": Quantity.of(1)})
# plugins/nodeunschedulable: a cordoned node takes pods that tolerate the taint which the node controller would add.
_CORDON: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_REPELLING: Final = frozenset({"NoSchedule", "NoExecute"})


class PodRule(StrEnum):
    """Which rule keeps a pod off a node, in the scheduler's order."""

    UNSCHEDULABLE = "unschedulable"
    TAINT = "taint"
    NODE_SELECTOR = "nodeSelector"
    NODE_AFFINITY = "nodeAffinity"
    RESOURCES = "resources"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFault:
    """One reason. `subject` is the taint (`key=value:effect`), label or resource; `asked` and `left` are quantities."""

    rule: PodRule
    subject: str = ""
    asked: str = ""
    left: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRoom:
    """What a node has for such pods: how many it takes one after another, and why not one, if none."""

    pods: int
    faults: tuple[PodFault, ...] = ()


def pod_room(needs: PodNeeds, node: Node, used: Mapping[str, Quantity] = NOTHING_USED) -> PodRoom:
    """How many pods with these needs the node takes beside what is `used`.

    InvalidQuantityError and InvalidObjectError name a request or a node affinity that Kubernetes would not accept.
    """
    amounts = _amounts(needs)
    faults = (*_placement_faults(needs, node), *_shortages(amounts, node, used))
    if faults:
        return PodRoom(pods=0, faults=faults)
    return PodRoom(pods=min(_left(name, node, used).nano // asked.nano for name, asked in amounts.items()))


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """`Toleration.ToleratesTaint` of core/v1, without the gated operators Lt and Gt."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in {"", "Equal"} and toleration.value == taint.value


def _placement_faults(needs: PodNeeds, node: Node) -> Iterator[PodFault]:
    if node.spec.unschedulable and not _tolerated(needs, _CORDON):
        yield PodFault(rule=PodRule.UNSCHEDULABLE)
    for taint in node.spec.taints:
        if taint.effect in _REPELLING and not _tolerated(needs, taint):
            yield PodFault(rule=PodRule.TAINT, subject=f"{taint.key}={taint.value}:{taint.effect}")
    labels = node.metadata.labels
    for key, value in needs.node_selector.items():
        if labels.get(key) != value:
            yield PodFault(rule=PodRule.NODE_SELECTOR, subject=f"{key}={value}")
    if needs.affinity is not None and not matches(needs.affinity, node.metadata.name, labels):
        yield PodFault(rule=PodRule.NODE_AFFINITY)


def _tolerated(needs: PodNeeds, taint: Taint) -> bool:
    return any(tolerates(toleration, taint) for toleration in needs.tolerations)


def _amounts(needs: PodNeeds) -> dict[str, Quantity]:
    """What one pod takes; a request of nothing asks for nothing (noderesources `fitsRequest`)."""
    asked = {name: parse_quantity(text) for name, text in needs.requests.items()}
    return {**{name: amount for name, amount in asked.items() if amount.nano > 0}, **_ONE_POD}


def _shortages(amounts: Mapping[str, Quantity], node: Node, used: Mapping[str, Quantity]) -> Iterator[PodFault]:
    for name, asked in amounts.items():
        left = _left(name, node, used)
        if left < asked:
            yield PodFault(rule=PodRule.RESOURCES, subject=name, asked=str(asked), left=str(left))


def _left(name: str, node: Node, used: Mapping[str, Quantity]) -> Quantity:
    """Allocatable less used; negative where the node is overcommitted. What a node does not name it does not have."""
    return parse_quantity(node.status.allocatable.get(name, "0")) - used.get(name, _NONE)
