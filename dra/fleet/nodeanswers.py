"""Answers of nodes, each asked once: kept by question and by what the node sees, whichever node and snapshot that was.

The cache is bounded: the oldest answers go first. It holds no state of a fleet, so it may outlive any snapshot.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from dra.allocation import Allocated, Answer, Failed, NodeView, Refused, Snapshot, allocate, allocate_on
from dra.allocation.allocate import searched
from dra.fleet.answer import MAX_INSTANCES, Instances
from dra.fleet.choices import most_devices
from dra.fleet.grants import allocated_claims, granted, reaches_others, view_of
from dra.fleet.question import Question

MAX_KEPT = 16_384
SHORT_WORK = 45_000  # steps times devices of a node, some hundredths of a second (dra.allocation.search.WORK_BUDGET)

type _Place = tuple[bytes, Hashable]


@dataclass(frozen=True, slots=True)
class Grants:
    """How often a node grants a question by itself; `joint`: from devices that other nodes reach, too."""

    instances: Instances
    joint: bool = False


NO_GRANTS = Grants(Instances(0))
ENDLESS = Grants(Instances(MAX_INSTANCES, bounded=False))


class NodeAnswers:
    """Asks nodes of snapshots and remembers."""

    def __init__(self, most: int = MAX_KEPT) -> None:
        self._most = most
        self._answers: dict[_Place, tuple[Answer, NodeView]] = {}
        self._grants: dict[_Place, tuple[Grants, NodeView]] = {}
        self._choices: dict[_Place, tuple[int, NodeView]] = {}
        self._tries: dict[_Place, tuple[Answer, NodeView]] = {}

    def answer(self, snapshot: Snapshot, question: Question, node: str) -> Answer:
        """What that node answers, with its own names in it."""
        view = view_of(snapshot, node)
        return allocate(snapshot, node, question.claims) if view is None else self._answer(snapshot, question, view)

    def fits(self, snapshot: Snapshot, question: Question, node: str) -> bool:
        """Whether that node allocates; quicker where another node that sees the same was asked."""
        view = view_of(snapshot, node)
        kept = None if view is None else self._answers.get(_place(question, view))
        answer = self.answer(snapshot, question, node) if kept is None else kept[0]
        return isinstance(answer, Allocated)

    def grants(self, snapshot: Snapshot, question: Question, node: str) -> Grants:
        """How often that node allocates, each time from what is left."""
        view = view_of(snapshot, node)
        if view is None:
            return NO_GRANTS
        path: list[tuple[NodeView, bool]] = []
        while (known := self._grants.get(_place(question, view))) is None:
            answer = self._answer(snapshot, question, view)
            if not isinstance(answer, Allocated):
                return self._walk_back(question, path, self._keep(question, view, NO_GRANTS))
            path.append((view, reaches_others(view, answer)))
            after = granted(view, allocated_claims(question.claims, answer, str(len(path))))
            if after.key is view.key or len(path) == MAX_INSTANCES:
                return self._walk_back(question, path, ENDLESS)
            view = after
        return self._walk_back(question, path, known[0])

    def most_devices(self, snapshot: Snapshot, question: Question, node: str) -> int:
        """A count beyond which the question's only device request can't fit on that node."""
        view = view_of(snapshot, node)
        if view is None:
            return 0
        place = _place(question, view)
        kept = self._choices.get(place)
        if kept is None:
            kept = most_devices(view, snapshot.classes, question), view
            _put(self._choices, place, kept, self._most)
        return kept[0]

    def quickly_fits(self, snapshot: Snapshot, question: Question, node: str) -> bool | None:
        """Whether that node allocates; None where that takes more than a short search."""
        view = view_of(snapshot, node)
        if view is None:
            return False
        place = _place(question, view)
        kept = self._tries.get(place)
        if kept is None:
            kept = searched(view, snapshot.classes, question.claims, SHORT_WORK)[0], view
            _put(self._tries, place, kept, self._most)
        undecided = isinstance(kept[0], Failed) and kept[0].kind == "budget"
        return None if undecided else isinstance(kept[0], Allocated)

    def _walk_back(self, question: Question, path: list[tuple[NodeView, bool]], end: Grants) -> Grants:
        for view, joint in reversed(path):
            count = min(end.instances.count + 1, MAX_INSTANCES)
            end = Grants(Instances(count, end.instances.bounded), joint or end.joint)
            # Where counting was cut off, the states on the way are not known as well as the first.
            if end.instances.bounded or view is path[0][0]:
                self._keep(question, view, end)
        return end

    def _keep(self, question: Question, view: NodeView, grants: Grants) -> Grants:
        _put(self._grants, _place(question, view), (grants, view), self._most)
        return grants

    def _answer(self, snapshot: Snapshot, question: Question, view: NodeView) -> Answer:
        place = _place(question, view)
        kept = self._answers.get(place)
        if kept is not None and (isinstance(kept[0], Refused) or _names(kept[1]) == _names(view)):
            return kept[0]
        answer = allocate_on(view, snapshot.classes, question.claims)
        _put(self._answers, place, (answer, view), self._most)
        return answer


def _place(question: Question, view: NodeView) -> _Place:
    # Where identifiers count, a view stands for itself. The cache keeps it, so that its id is never another view's.
    return question.key, id(view) if question.reads_identity else view.key


def _names(view: NodeView) -> tuple[object, ...]:
    """The names that answers have in them; devices are named alike wherever keys are the same."""
    return view.name, *(pool.id for pool in view.pools)


def _put[K, V](kept: dict[K, V], key: K, value: V, most: int) -> None:
    kept.pop(key, None)
    while len(kept) >= most:
        del kept[next(iter(kept))]
    kept[key] = value
