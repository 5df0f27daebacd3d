"""What a fleet answers to a wish: where it fits, how often, where best, and what stands in the way. Data only.

Answers are canonical: node names sorted, groups by their first node, so that equal fleets give equal answers however
they came about.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dra.allocation import Allocated, Answer, Failed
from dra.fleet.podrules import PodRule

MAX_INSTANCES = 256
"""Grants that are counted on one node; a node that takes so many pods is beyond what Kubernetes is run with."""


@dataclass(frozen=True, slots=True)
class Instances:
    """How often a wish can be granted one after another. Where not `bounded`, it is at least `count` times: admin
    access and shareable devices without capacity never run out, and counting stops at MAX_INSTANCES a node.
    """

    count: int
    bounded: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """Nodes that answer alike. `answer` is what the first of them says, with its own names.

    `instances` is for each node by devices alone. `joint`: the grants use devices that other nodes reach, too, so the
    instances of several nodes can't be added up.
    """

    nodes: tuple[str, ...]
    answer: Answer
    instances: Instances
    joint: bool = False

    @property
    def fits(self) -> bool:
        """Whether the resource claims fit on each of the nodes now."""
        return isinstance(self.answer, Allocated)


@dataclass(frozen=True, slots=True, kw_only=True)
class Abort:
    """kube-scheduler gives the pod up for all nodes when it looks at one of these; the first is `failed`'s.

    It stops looking once it has enough nodes that fit (all nodes of a fleet up to 100, fewer of a larger one), so that
    a pod may slip through; it is not to be relied upon.
    """

    nodes: tuple[str, ...]
    failed: Failed


@dataclass(frozen=True, slots=True, kw_only=True)
class PodObstacle:
    """A rule that keeps the pod off nodes whose devices would do. `most_left` is the best of them, a quantity."""

    rule: PodRule
    subject: str
    nodes: int
    asked: str = ""
    most_left: str = ""


@dataclass(frozen=True, slots=True)
class LargestCount:
    """The most devices that the wish's only device request could name on one node, and the first such node.

    Where not `exact`, some larger count took too long to decide, and the scheduler would likely time out over it.
    """

    count: int
    node: str
    exact: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetAnswer:
    """The answer. Nodes that the pod's own needs exclude are in `groups` but count nowhere else.

    `best` is the fullest node that still fits: there the fewest further instances remain, so whole cards stay free
    elsewhere; the scheduler may choose another one. `largest` is None for a wish of another form than one request with
    a count. `timeouts` are the nodes where the scheduler's own search would run into its time limit and abort.
    """

    groups: tuple[NodeGroup, ...]
    fitting: int
    total: Instances
    best: str | None
    largest: LargestCount | None
    aborts: tuple[Abort, ...]
    timeouts: int
    pod_obstacles: tuple[PodObstacle, ...] = ()
    pod_refused: frozenset[str] = frozenset()

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes on which it fits now, by name."""
        fitting: Iterable[str] = (node for group in self.groups if group.fits for node in group.nodes)
        return tuple(sorted(node for node in fitting if node not in self.pod_refused))
