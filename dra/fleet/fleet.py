"""`fits`: a wish asked of every node of a snapshot; `Fleet`: the same, quick from the second question on. Pure.

Nodes that see the same are asked once. What follows from one snapshot to the next is taken over, so that a question
after a change costs what the change touched.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from dra.allocation import Snapshot
from dra.fleet import summary
from dra.fleet.answer import FleetAnswer, Instances, NodeGroup
from dra.fleet.joint import joint_instances
from dra.fleet.largest import largest_count
from dra.fleet.nodeanswers import NodeAnswers
from dra.fleet.nodegroups import NodeGroups
from dra.fleet.podrooms import PodRooms
from dra.fleet.question import Question, question
from dra.fleet.summary import Rooms
from dra.fleet.wish import NO_USAGE, PodNeeds, Usage, Wish

_MOST_NEEDS: Final = 8


def fits(snapshot: Snapshot, wish: Wish, usage: Usage = NO_USAGE) -> FleetAnswer:
    """Where and how often the wish fits now. `usage` is what pods request on each node already.

    InvalidQuantityError and InvalidObjectError name what is malformed in the pod's needs; faults of claims, classes
    and selectors are in the answer.
    """
    return Fleet().answer(snapshot, wish, usage)


class Fleet:
    """Follows snapshots and remembers answers. One for each caller that asks in turn: it is changed by every question.

    Snapshots may come in any order; those that share their parts, as changes to a snapshot do, are quick.
    """

    def __init__(self) -> None:
        self._answers = NodeAnswers()
        self._groups = NodeGroups()
        self._rooms: dict[bytes, PodRooms] = {}

    def answer(self, snapshot: Snapshot, wish: Wish, usage: Usage = NO_USAGE) -> FleetAnswer:
        """As `fits`."""
        asked, rooms = self._asked(snapshot, wish, usage)
        groups = tuple(self._group(snapshot, asked, nodes) for nodes in self._nodes(asked))
        candidates = (nodes[0] for nodes in (summary.admitted(group, rooms) for group in groups) if nodes)
        return FleetAnswer(
            groups=groups,
            fitting=_fitting(groups, rooms),
            total=self._total(snapshot, asked, groups, rooms),
            best=summary.best(groups, rooms),
            largest=largest_count(snapshot, asked, candidates, self._answers),
            aborts=tuple(summary.aborts(groups, rooms)),
            timeouts=summary.timeouts(groups, rooms),
            pod_obstacles=() if rooms is None else summary.pod_obstacles(groups, rooms),
            pod_refused=frozenset(() if rooms is None else (name for name, room in rooms.items() if not room.pods)),
        )

    def nodes(self, snapshot: Snapshot, wish: Wish, usage: Usage = NO_USAGE) -> int:
        """On how many nodes the wish fits now, 0 where the scheduler gives up: `fitting` of the answer, not how often
        and how much, which costs several times as much.
        """
        asked, rooms = self._asked(snapshot, wish, usage)
        groups = tuple(
            NodeGroup(nodes=nodes, answer=self._answers.answer(snapshot, asked, nodes[0]), instances=Instances(0))
            for nodes in self._nodes(asked)
        )
        return 0 if any(summary.aborts(groups, rooms)) else _fitting(groups, rooms)

    def _asked(self, snapshot: Snapshot, wish: Wish, usage: Usage) -> tuple[Question, Rooms]:
        self._groups.follow(snapshot)
        rooms = None if wish.pod is None else self._rooms_for(wish.pod).follow(snapshot.nodes, usage)
        return question(wish.resource_claims, snapshot.classes), rooms

    def _nodes(self, asked: Question) -> Iterable[tuple[str, ...]]:
        if asked.reads_identity:
            return ((name,) for name in self._groups.names())
        return self._groups.groups()

    def _group(self, snapshot: Snapshot, asked: Question, nodes: tuple[str, ...]) -> NodeGroup:
        answer = self._answers.answer(snapshot, asked, nodes[0])
        grants = self._answers.grants(snapshot, asked, nodes[0])
        return NodeGroup(nodes=nodes, answer=answer, instances=grants.instances, joint=grants.joint)

    def _total(self, snapshot: Snapshot, asked: Question, groups: Iterable[NodeGroup], rooms: Rooms) -> Instances:
        apart = summary.total((group for group in groups if not group.joint), rooms)
        together = [node for group in groups if group.joint for node in group.nodes]
        joint = joint_instances(snapshot, asked, together, rooms, self._answers)
        return Instances(apart.count + joint.count, apart.bounded and joint.bounded)

    def _rooms_for(self, needs: PodNeeds) -> PodRooms:
        key = msgspec.msgpack.encode(needs, enc_hook=dict)
        rooms = self._rooms.pop(key, None) or PodRooms(needs)
        while len(self._rooms) >= _MOST_NEEDS:
            del self._rooms[next(iter(self._rooms))]
        self._rooms[key] = rooms
        return rooms


def _fitting(groups: Iterable[NodeGroup], rooms: Rooms) -> int:
    return sum(len(summary.admitted(group, rooms)) for group in groups if group.fits)
