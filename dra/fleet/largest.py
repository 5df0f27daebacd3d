"""The largest count that one node could serve, for a wish that is one device request. Pure.

More devices never fit where fewer don't, so counts are found by halving; a node that can't beat the best so far is
asked once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dra.allocation import Snapshot
from dra.fleet.answer import LargestCount
from dra.fleet.nodeanswers import NodeAnswers
from dra.fleet.question import Question

_MOST: Final = 32  # devices of a ResourceClaim (AllocationResultsMaxSize)


def largest_count(
    snapshot: Snapshot, question: Question, nodes: Iterable[str], answers: NodeAnswers
) -> LargestCount | None:
    """The best of these nodes, the first of equals; None where the wish has another form or not even one fits."""
    if question.only_request is None:
        return None
    questions = [question.with_count(count) for count in range(_MOST + 1)]
    best, where = 0, ""
    for node in nodes:
        if best < _MOST and answers.fits(snapshot, questions[best + 1], node):
            best, where = _most(snapshot, questions, node, best + 1, answers), node
    return LargestCount(best, where) if best else None


def _most(snapshot: Snapshot, questions: list[Question], node: str, least: int, answers: NodeAnswers) -> int:
    """The largest count that fits on the node, where `least` does."""
    above = _MOST + 1
    while above - least > 1:
        middle = (least + above) // 2
        if answers.fits(snapshot, questions[middle], node):
            least = middle
        else:
            above = middle
    return least
