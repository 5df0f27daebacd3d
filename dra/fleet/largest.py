"""The largest count that one node could serve, for a wish that is one device request. Pure.

More devices never fit where fewer don't, so counts are found by halving. A node is asked only where it has enough
devices to beat the best so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from dra.allocation import Snapshot
from dra.fleet.answer import LargestCount
from dra.fleet.nodeanswers import NodeAnswers
from dra.fleet.question import Question


def largest_count(
    snapshot: Snapshot, question: Question, nodes: Iterable[str], answers: NodeAnswers
) -> LargestCount | None:
    """The best of these nodes, the first of equals; None where the wish has another form or not even one fits."""
    if question.only_request is None:
        return None
    counted = cache(question.with_count)
    best, where = 0, ""
    for node in nodes:
        above = answers.most_devices(snapshot, counted(1), node) + 1
        if above > best + 1 and answers.fits(snapshot, counted(best + 1), node):
            best, where = _most(snapshot, counted, node, range(best + 1, above), answers), node
    return LargestCount(best, where) if best else None


def _most(
    snapshot: Snapshot, counted: Callable[[int], Question], node: str, counts: range, answers: NodeAnswers
) -> int:
    """The largest of these counts that fits on the node, where the first does; the last one is tried first."""
    least, above, middle = counts.start, counts.stop, counts[-1]
    while above - least > 1:
        if answers.fits(snapshot, counted(middle), node):
            least = middle
        else:
            above = middle
        middle = (least + above) // 2
    return least
