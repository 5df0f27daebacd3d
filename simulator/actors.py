"""People of the scenario who make workloads and end them, by a seeded dice and the clock that is handed in.

The same seed and times give the same workloads. What the API server refuses them is left for the next turn and said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from dra.errors import DraError
from simulator import kinds
from simulator.hands import Hands, is_going
from simulator.kinds import Kind
from simulator.scenario import Actor
from simulator.store import Object

_LABEL = "app.kubernetes.io/managed-by"
_HOST = "simulator"


class Actors:
    """All actors. They know their own workloads alone and touch no others."""

    def __init__(self, hands: Hands, actors: Sequence[Actor], seed: int) -> None:
        self._parts = [_Part(hands, actor, Random(f"{seed}/{actor.name}")) for actor in actors]  # noqa: S311  # a game

    def sync(self, seconds: float) -> list[str]:
        """Make and end what is due at that time; gives what was refused."""
        return [refusal for part in self._parts for refusal in part.sync(seconds)]


class _Part:
    """One actor: when the next workload comes, and when each ends."""

    def __init__(self, hands: Hands, actor: Actor, dice: Random) -> None:
        self._hands, self._actor, self._dice = hands, actor, dice
        self._kind: Kind = kinds.DEPLOYMENT if actor.kind == "Deployment" else kinds.POD
        self._ends: dict[str, float] = {}  # name of a workload to when it is over
        self._made = 0
        self._next: float | None = None

    def sync(self, seconds: float) -> Iterator[str]:
        """End, then make."""
        for name in [name for name, end in self._ends.items() if end <= seconds]:
            self._end(name)
        if self._next is None:
            self._next = seconds + self._pause()
            for _ in range(self._actor.at_start):
                yield from self._make(seconds)
        while self._next <= seconds:
            self._next += self._pause()
            if len(self._ends) < self._actor.most:
                yield from self._make(seconds)

    def _pause(self) -> float:
        return self._dice.expovariate(1 / self._actor.every)

    def _make(self, seconds: float) -> Iterator[str]:
        self._made += 1
        name = f"{self._actor.name}-{self._made}"
        end = seconds + self._dice.uniform(*self._actor.lasts)
        try:
            self._hands.create(self._kind, self._workload(name))
            self._ends[name] = end
        except DraError as error:
            yield f"{self._actor.namespace}/{name}: {error}"

    def _end(self, name: str) -> None:
        del self._ends[name]
        found = self._hands.store.find(self._kind, name, self._actor.namespace)
        if found is not None and not is_going(found):
            self._hands.delete(found)

    def _workload(self, name: str) -> Object:
        labels = {"app": name, _LABEL: _HOST}
        meta = {"name": name, "namespace": self._actor.namespace, "labels": labels}
        if self._kind == kinds.POD:
            return {"metadata": meta, "spec": self._pod_spec() | {"restartPolicy": "Never"}}
        template = {"metadata": {"labels": labels}, "spec": self._pod_spec()}
        replicas = self._dice.randint(*self._actor.replicas)
        spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
        return {"metadata": meta, "spec": spec}

    def _pod_spec(self) -> Object:
        resources = {"requests": {"cpu": self._actor.cpu, "memory": self._actor.memory}, "claims": [{"name": "gpu"}]}
        container = {"name": "main", "image": self._actor.image, "resources": resources}
        entry = {"name": "gpu", "resourceClaimTemplateName": self._actor.template}
        spec: Object = {"containers": [container], "resourceClaims": [entry]}
        if self._actor.node_selector:
            spec["nodeSelector"] = self._actor.node_selector
        if self._actor.priority_class:
            spec["priorityClassName"] = self._actor.priority_class
        return spec
