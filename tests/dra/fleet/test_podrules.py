"""Rules of nodes about pods, one row a rule; expected values by hand from the scheduler's filter plugins."""

from __future__ import annotations

import pytest

from dra.errors import InvalidObjectError, InvalidQuantityError
from dra.fleet.podrules import PodFault, PodRoom, PodRule, pod_room, tolerates
from dra.fleet.wish import PodNeeds, Toleration
from dra.objects import ObjectMeta
from dra.objects.node import Node, NodeSpec, NodeStatus, Taint
from dra.objects.nodeselector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dra.quantity import parse_quantity

ALLOCATABLE = {"cpu": "8", "memory": "64Gi", "pods": "110"}
DEDICATED = Taint(key="dedicated", value="ml", effect="NoSchedule")
CORDON = Toleration(key="node.kubernetes.io/unschedulable", operator="Exists", effect="NoSchedule")


def node(*taints: Taint, unschedulable: bool = False, labels: dict[str, str] | None = None, **allocatable: str) -> Node:
    return Node(
        metadata=ObjectMeta(name="node-a", labels=labels or {"zone": "east"}),
        spec=NodeSpec(unschedulable=unschedulable, taints=taints),
        status=NodeStatus(allocatable=ALLOCATABLE | allocatable),
    )


def affinity(key: str, operator: str, *values: str) -> PodNeeds:
    requirement = NodeSelectorRequirement(key=key, operator=operator, values=values)
    term = NodeSelectorTerm(match_expressions=(requirement,))
    return PodNeeds(affinity=NodeSelector(node_selector_terms=(term,)))


def requests(**amounts: str) -> PodNeeds:
    return PodNeeds(requests=amounts)


FITTING = [
    ("nothing asked but a place", PodNeeds(), node(), 110),
    ("a cordon that is tolerated", PodNeeds(tolerations=(CORDON,)), node(unschedulable=True), 110),
    ("a taint that repels nobody", PodNeeds(), node(Taint(key="slow", effect="PreferNoSchedule")), 110),
    (
        "a taint that is tolerated",
        PodNeeds(tolerations=(Toleration(key="dedicated", value="ml"),)),
        node(DEDICATED),
        110,
    ),
    ("its node selector", PodNeeds(node_selector={"zone": "east"}), node(), 110),
    ("its node affinity", affinity("zone", "In", "west", "east"), node(), 110),
    ("all CPUs", requests(cpu="8"), node(), 1),
    ("CPUs twice and a half", requests(cpu="3200m"), node(), 2),
    ("the scarcer of two", requests(cpu="1", memory="20Gi"), node(), 3),
    ("nothing of a resource that the node lacks", requests(**{"example.com/foo": "0"}), node(), 110),
]


@pytest.mark.parametrize(("needs", "where", "pods"), [row[1:] for row in FITTING], ids=[row[0] for row in FITTING])
def test_room(needs: PodNeeds, where: Node, pods: int) -> None:
    assert pod_room(needs, where) == PodRoom(pods=pods)


REFUSED = [
    ("cordoned", PodNeeds(), node(unschedulable=True), PodFault(rule=PodRule.UNSCHEDULABLE)),
    ("tainted", PodNeeds(), node(DEDICATED), PodFault(rule=PodRule.TAINT, subject="dedicated=ml:NoSchedule")),
    (
        "tainted for those who run already",
        PodNeeds(),
        node(Taint(key="bad", effect="NoExecute")),
        PodFault(rule=PodRule.TAINT, subject="bad=:NoExecute"),
    ),
    (
        "another label",
        PodNeeds(node_selector={"zone": "west"}),
        node(),
        PodFault(rule=PodRule.NODE_SELECTOR, subject="zone=west"),
    ),
    ("another affinity", affinity("zone", "NotIn", "east"), node(), PodFault(rule=PodRule.NODE_AFFINITY)),
    (
        "too few CPUs",
        requests(cpu="16"),
        node(),
        PodFault(rule=PodRule.RESOURCES, subject="cpu", asked="16", left="8"),
    ),
    (
        "a resource that the node lacks",
        requests(**{"example.com/foo": "1"}),
        node(),
        PodFault(rule=PodRule.RESOURCES, subject="example.com/foo", asked="1", left="0"),
    ),
    ("no place", PodNeeds(), node(pods="0"), PodFault(rule=PodRule.RESOURCES, subject="pods", asked="1", left="0")),
]


@pytest.mark.parametrize(("needs", "where", "fault"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_fault(needs: PodNeeds, where: Node, fault: PodFault) -> None:
    assert pod_room(needs, where) == PodRoom(pods=0, faults=(fault,))


def test_what_other_pods_request_is_gone() -> None:
    used = {"cpu": parse_quantity("6500m"), "pods": parse_quantity("9")}
    assert pod_room(requests(cpu="500m"), node(), used).pods == 3
    assert pod_room(requests(cpu="2"), node(), used).faults == (
        PodFault(rule=PodRule.RESOURCES, subject="cpu", asked="2", left="1500m"),
    )


def test_every_fault_is_named() -> None:
    room = pod_room(requests(cpu="9", memory="65Gi"), node(DEDICATED, unschedulable=True))
    assert [fault.rule for fault in room.faults] == [
        PodRule.UNSCHEDULABLE,
        PodRule.TAINT,
        PodRule.RESOURCES,
        PodRule.RESOURCES,
    ]


TOLERATIONS = [
    ("everything", Toleration(operator="Exists"), True),
    ("the key whatever its value", Toleration(key="dedicated", operator="Exists"), True),
    ("the value", Toleration(key="dedicated", value="ml"), True),
    ("another value", Toleration(key="dedicated", value="web"), False),
    ("another key", Toleration(key="other", operator="Exists"), False),
    ("another effect", Toleration(key="dedicated", operator="Exists", effect="NoExecute"), False),
    ("an unknown operator", Toleration(key="dedicated", operator="Like", value="ml"), False),
    ("the operator left out", Toleration(key="dedicated", operator="", value="ml"), True),
]


@pytest.mark.parametrize(("toleration", "holds"), [row[1:] for row in TOLERATIONS], ids=[row[0] for row in TOLERATIONS])
def test_toleration(toleration: Toleration, holds: bool) -> None:  # noqa: FBT001 - a column of the table
    assert tolerates(toleration, DEDICATED) is holds


def test_malformed_needs_are_named() -> None:
    with pytest.raises(InvalidQuantityError, match="12 GB"):
        pod_room(requests(memory="12 GB"), node())
    with pytest.raises(InvalidObjectError, match="Near"):
        pod_room(affinity("zone", "Near", "east"), node())
