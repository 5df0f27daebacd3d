"""Nodes that see the same, kept together while snapshots follow each other: only what changed is looked at. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import compress
from operator import is_not

from dra.allocation import NodeView, Snapshot
from dra.fleet.grants import view_of


class NodeGroups:
    """The nodes of the last snapshot by what they see. A node whose pools can't be told is a group of its own."""

    def __init__(self) -> None:
        self._views: dict[str, NodeView | None] = {}
        self._keys: dict[str, Hashable] = {}
        self._members: dict[Hashable, set[str]] = {}
        self._sorted: dict[Hashable, tuple[str, ...]] = {}

    def follow(self, snapshot: Snapshot) -> None:
        """Take over what is different in this snapshot, from wherever it comes."""
        views = snapshot.views
        # Written without a loop of Python: it looks at every node for every question.
        changed = list(compress(views, map(is_not, views.values(), map(self._views.get, views))))
        for name in (*changed, *(snapshot.nodes.keys() - views.keys())):
            self._look_at(snapshot, name)
        if len(self._views) > len(snapshot.nodes):
            for name in self._views.keys() - snapshot.nodes.keys():
                self._leave(name)
                del self._views[name]

    def groups(self) -> list[tuple[str, ...]]:
        """The groups, each by name, in the order of their first nodes."""
        for key in self._members.keys() - self._sorted.keys():
            self._sorted[key] = tuple(sorted(self._members[key]))
        return sorted(self._sorted.values())

    def names(self) -> Iterator[str]:
        """All nodes by name."""
        return iter(sorted(self._views))

    def _look_at(self, snapshot: Snapshot, name: str) -> None:
        view = view_of(snapshot, name)
        self._views[name] = view
        key: Hashable = name if view is None else view.key
        if self._keys.get(name) == key:
            return
        self._leave(name)
        self._keys[name] = key
        self._members.setdefault(key, set()).add(name)
        self._sorted.pop(key, None)

    def _leave(self, name: str) -> None:
        key = self._keys.pop(name, None)
        if key is None:
            return
        self._sorted.pop(key, None)
        self._members[key].discard(name)
        if not self._members[key]:
            del self._members[key]
