"""What each node has left for pods of some needs, kept while snapshots follow each other. Pure.

A node is looked at again when its object or what is used of it is another one than before.
"""

from __future__ import annotations

from collections.abc import Mapping

from dra.fleet.podrules import NOTHING_USED, PodRoom, pod_room
from dra.fleet.wish import PodNeeds, Usage
from dra.objects import Node
from dra.quantity import Quantity

type _Seen = tuple[Node, Mapping[str, Quantity], PodRoom]


class PodRooms:
    """Rooms for pods of one kind, by node name."""

    def __init__(self, needs: PodNeeds) -> None:
        self._needs = needs
        self._seen: dict[str, _Seen] = {}

    def follow(self, nodes: Mapping[str, Node], usage: Usage) -> Mapping[str, PodRoom]:
        """The rooms on these nodes."""
        before = self._seen
        self._seen = {
            name: self._look_at(node, usage.get(name, NOTHING_USED), before.get(name)) for name, node in nodes.items()
        }
        return {name: room for name, (_, _, room) in self._seen.items()}

    def _look_at(self, node: Node, used: Mapping[str, Quantity], before: _Seen | None) -> _Seen:
        if before is not None and before[0] is node and before[1] is used:
            return before
        return node, used, pod_room(self._needs, node, used)
