"""The largest count that one node could serve, for a wish that is one device request. Pure.

More devices never fit where fewer don't, so counts are found by halving. A node is asked only where it has enough
devices to beat the best so far, and never for long: a count that takes a long search is left open, and the answer then
says "at least". The scheduler would run into its time limit over such counts, too.
"""

from __future__ import annotations

from collections.abc import Iterable

from dra.allocation import Snapshot
from dra.fleet.answer import LargestCount
from dra.fleet.nodeanswers import NodeAnswers
from dra.fleet.question import Question


def largest_count(
    snapshot: Snapshot, question: Question, nodes: Iterable[str], answers: NodeAnswers
) -> LargestCount | None:
    """The best of these nodes, the first of equals; None where the wish has another form or not even one fits."""
    request = question.only_request
    if request is None:
        return None
    best, where, counts = 0, "", _Counts(snapshot, question, answers)
    for node in nodes:
        if request.count > best and answers.fits(snapshot, question, node):
            best, where = request.count, node
        found = counts.most(node, best)
        if found > best:
            best, where = found, node
    return LargestCount(best, where, exact=counts.undecided <= best) if best else None


class _Counts:
    """Asks nodes for counts. `undecided`: the largest count that took too long."""

    def __init__(self, snapshot: Snapshot, question: Question, answers: NodeAnswers) -> None:
        self._snapshot = snapshot
        self._question = question
        self._answers = answers
        self._counted: dict[int, Question] = {}
        self.undecided = 0

    def most(self, node: str, least: int) -> int:
        """The largest count that fits on the node, or `least` where none beyond it does."""
        above = self._answers.most_devices(self._snapshot, self._with(1), node) + 1
        if above <= least + 1 or not self._fits(node, least + 1):
            return least
        least, middle = least + 1, above - 1  # the last one is tried first: where nothing is in the way it fits
        while above - least > 1:
            if self._fits(node, middle):
                least = middle
            else:
                above = middle
            middle = (least + above) // 2
        return least

    def _fits(self, node: str, count: int) -> bool:
        fits = self._answers.quickly_fits(self._snapshot, self._with(count), node)
        if fits is None:
            self.undecided = max(self.undecided, count)
        return fits is True

    def _with(self, count: int) -> Question:
        if count not in self._counted:
            self._counted[count] = self._question.with_count(count)
        return self._counted[count]
