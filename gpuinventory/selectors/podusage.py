"""What the pods of each node take, kept while pods come and go: a change costs its node, not the fleet. Pure.

Mappings are replaced and never changed, and those of nodes without a change stay the same objects, by which
`dra.fleet` knows that there is nothing to look at again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from dra.fleet import NO_USAGE, Usage, pod_requests, takes_room
from dra.objects import Pod
from dra.quantity import Quantity

type PodKey = tuple[str, str]
"""Namespace and name."""
type _Amounts = tuple[tuple[str, Quantity], ...]

_ONE: Final = ("pods", Quantity.of(1))
_NOBODY: Final[Mapping[PodKey, _Amounts]] = {}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pod is and what it takes there; `None` in its stead for one that takes nothing."""

    node: str
    amounts: _Amounts


@dataclass(frozen=True, slots=True)
class PodUsage:
    """`on` are the nodes of pods that take room, `pods` their amounts by node, `taken` the sums."""

    on: Mapping[PodKey, str] = field(default_factory=dict)
    pods: Mapping[str, Mapping[PodKey, _Amounts]] = field(default_factory=dict)
    taken: Usage = NO_USAGE

    def with_changes(self, changes: Iterable[tuple[PodKey, Place | None]]) -> PodUsage:
        """With these pods as they are now, each once."""
        news = {key: place for key, place in dict(changes).items() if place != self._place(key)}
        if not news:
            return self
        nodes = {self.on[key] for key in news if key in self.on} | {place.node for place in news.values() if place}
        pods = {node: dict(self.pods.get(node, _NOBODY)) for node in nodes}
        on = dict(self.on)
        for key, place in news.items():
            if (before := on.pop(key, None)) is not None:
                del pods[before][key]
            if place is not None:
                on[key] = place.node
                pods[place.node][key] = place.amounts
        taken = {node: _sum(those.values()) for node, those in pods.items()}
        return PodUsage(on, _merged(self.pods, pods), _merged(self.taken, taken))

    def _place(self, key: PodKey) -> Place | None:
        node = self.on.get(key)
        return None if node is None else Place(node, self.pods[node][key])


def place_of(pod: Pod) -> Place | None:
    """InvalidQuantityError where an amount can't be read."""
    if not takes_room(pod):
        return None
    return Place(pod.spec.node_name, _shared((*pod_requests(pod).items(), _ONE)))


@lru_cache(maxsize=4096)
def _shared(amounts: _Amounts) -> _Amounts:
    """One object for all pods that ask for the same."""
    return amounts


def _merged[T](old: Mapping[str, Mapping[T, Any]], new: Mapping[str, Mapping[T, Any]]) -> dict[str, Mapping[T, Any]]:
    """Nodes with nothing on them are left out."""
    return {node: those for node, those in {**old, **new}.items() if those}


def _sum(parts: Iterable[_Amounts]) -> Mapping[str, Quantity]:
    total: dict[str, Quantity] = {}
    for part in parts:
        for name, amount in part:
            total[name] = total[name] + amount if name in total else amount
    return total
