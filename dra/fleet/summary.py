"""From what groups of nodes answer to what is said of the fleet: totals, the best node, obstacles, aborts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from dra.allocation import Failed, SchedulerTimesOut
from dra.fleet.answer import Abort, Instances, NodeGroup, PodObstacle
from dra.fleet.podrules import PodFault, PodRoom, PodRule
from dra.quantity import parse_quantity

type Rooms = Mapping[str, PodRoom] | None


def admitted(group: NodeGroup, rooms: Rooms) -> Sequence[str]:
    """The nodes of the group that take the pod, by name."""
    return group.nodes if rooms is None else [node for node in group.nodes if rooms[node].pods > 0]


def total(groups: Iterable[NodeGroup], rooms: Rooms) -> Instances:
    """Instances of all nodes together; for groups whose nodes share no devices."""
    parts = [part for group in groups if group.fits for part in _on_nodes(group, rooms)]
    return Instances(sum(each.count for each in parts), all(each.bounded for each in parts))


def _on_nodes(group: NodeGroup, rooms: Rooms) -> Iterator[Instances]:
    on_node = group.instances
    if rooms is None:
        yield Instances(on_node.count * len(group.nodes), on_node.bounded)
        return
    pods = [rooms[node].pods for node in group.nodes]
    yield Instances(sum(min(on_node.count, each) for each in pods), on_node.bounded or max(pods) <= on_node.count)


def best(groups: Iterable[NodeGroup], rooms: Rooms) -> str | None:
    """The first node of those where the fewest instances fit, but at least one."""
    fitting = ((group.instances, admitted(group, rooms)) for group in groups if group.fits)
    ranked = [(not each.bounded, each.count, nodes[0]) for each, nodes in fitting if nodes]
    return min(ranked)[2] if ranked else None


def aborts(groups: Iterable[NodeGroup], rooms: Rooms) -> Iterator[Abort]:
    """The groups whose nodes end the scheduler's search; its earlier filters keep it from nodes without room."""
    for group in groups:
        if isinstance(group.answer, Failed) and group.answer.kind != "node":
            nodes = tuple(admitted(group, rooms))
            if nodes:
                yield Abort(nodes=nodes, failed=group.answer)


def timeouts(groups: Iterable[NodeGroup], rooms: Rooms) -> int:
    """The nodes where the scheduler's own search takes too long."""
    slow = (group for group in groups if any(isinstance(each, SchedulerTimesOut) for each in group.answer.warnings))
    return sum(len(admitted(group, rooms)) for group in slow)


def pod_obstacles(groups: Iterable[NodeGroup], rooms: Mapping[str, PodRoom]) -> tuple[PodObstacle, ...]:
    """What keeps the pod off nodes whose devices would do, the most frequent first."""
    met: dict[tuple[PodRule, str], list[PodFault]] = {}
    for group in (group for group in groups if group.fits):
        for fault in (fault for node in group.nodes for fault in rooms[node].faults):
            met.setdefault((fault.rule, fault.subject), []).append(fault)
    return tuple(map(_obstacle, sorted(met.values(), key=len, reverse=True)))


def _obstacle(faults: Sequence[PodFault]) -> PodObstacle:
    first = faults[0]
    most_left = max((fault.left for fault in faults if fault.left), key=parse_quantity, default="")
    return PodObstacle(
        rule=first.rule, subject=first.subject, nodes=len(faults), asked=first.asked, most_left=most_left
    )
