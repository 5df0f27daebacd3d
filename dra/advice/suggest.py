"""Changes that would make a wish fit, each found to fit by allocating the changed wish on one node of each kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from dra.advice.asks import asks
from dra.advice.changes import (
    Change,
    Ladder,
    Wish,
    dropped_constraints,
    fewer_devices,
    less_capacity,
    other_classes,
    other_literals,
    tolerated_taints,
)
from dra.advice.explanation import Suggestion
from dra.advice.kinds import NOT_ASKED, node_kinds
from dra.advice.published import Published
from dra.allocation import Allocated, Answer, Failed, Snapshot, allocate
from dra.errors import InvalidObjectError, InvalidQuantityError
from dra.objects.resourceclaim import ResourceClaim

LIMIT: Final = 3
MAX_ALLOCATIONS: Final = 600  # per question; a ladder that is begun then is not tried


def suggest(
    snapshot: Snapshot,
    resource_claims: Sequence[ResourceClaim],
    *,
    classes: Sequence[str] = (),
    answers: Mapping[str, Answer] = NOT_ASKED,
) -> tuple[Suggestion, ...]:
    """At most three changes, the smallest first; none where the wish fits somewhere and the scheduler finds it.

    `classes` are other device classes that may be proposed. A change after which the scheduler would abort is none.
    `answers` are what `allocate` says of the wish as it is on some nodes; only other nodes are asked.
    """
    trials = _Trials(snapshot, node_kinds(snapshot, resource_claims, classes=classes))
    if trials.asked(resource_claims, answers):
        return ()
    try:
        ladders = list(_ladders(snapshot, resource_claims, trials.kinds, classes))
    except (InvalidObjectError, InvalidQuantityError):
        return ()
    fitting = [change for ladder in ladders if (change := _first_that_fits(ladder, trials)) is not None]
    best = sorted(fitting, key=lambda change: change.size)[:LIMIT]
    return tuple(
        Suggestion(
            code=change.code,
            facts={**change.facts, "nodes": trials.nodes(change.resource_claims)},
            resource_claims=change.resource_claims,
        )
        for change in best
    )


@dataclass(slots=True)
class _Trials:
    """Allocations over the kinds of nodes, counted; each list of claims is tried once."""

    snapshot: Snapshot
    kinds: tuple[tuple[str, ...], ...]
    made: int = 0
    known: list[tuple[Sequence[ResourceClaim], int]] = field(default_factory=list)

    def nodes(self, resource_claims: Sequence[ResourceClaim]) -> int:
        """On how many nodes they fit; 0 where the scheduler would abort on any, with an error or for lack of time."""
        found = next((nodes for tried, nodes in self.known if tried is resource_claims), None)
        if found is None:
            found = self.asked(resource_claims)
            self.known.append((resource_claims, found))
        return found

    def asked(self, resource_claims: Sequence[ResourceClaim], answers: Mapping[str, Answer] = NOT_ASKED) -> int:
        """The same of claims that were not tried yet."""
        total = 0
        for names in self.kinds:
            self.made += 1
            answer = answers.get(names[0]) or allocate(self.snapshot, names[0], resource_claims)
            if answer.warnings or (isinstance(answer, Failed) and answer.kind != "node"):
                return 0
            total += len(names) if isinstance(answer, Allocated) else 0
        return total


def _ladders(
    snapshot: Snapshot, resource_claims: Sequence[ResourceClaim], kinds: Sequence[Sequence[str]], classes: Sequence[str]
) -> Iterator[Ladder]:
    published = Published([snapshot.node(names[0]) for names in kinds])
    known = [name for name in classes if name in snapshot.classes]
    for ask in asks(resource_claims, snapshot.classes):
        yield from _of_one(Wish(resource_claims, ask), published, known)


def _of_one(wish: Wish, published: Published, classes: Sequence[str]) -> Iterator[Ladder]:
    yield from fewer_devices(wish)
    yield from less_capacity(wish, published)
    yield from other_literals(wish, published)
    yield from dropped_constraints(wish)
    yield from other_classes(wish, classes)
    yield from tolerated_taints(wish, published)


def _first_that_fits(ladder: Ladder, trials: _Trials) -> Change | None:
    rungs = ladder.rungs
    if not rungs or trials.made > MAX_ALLOCATIONS:
        return None
    if not ladder.monotone:
        return next((rung for rung in rungs if trials.nodes(rung.resource_claims)), None)
    if not trials.nodes(rungs[-1].resource_claims):
        return None
    low, high = -1, len(rungs) - 1  # the rung `high` fits
    while high - low > 1:
        middle = (low + high) // 2
        if trials.nodes(rungs[middle].resource_claims):
            high = middle
        else:
            low = middle
    return rungs[high]
