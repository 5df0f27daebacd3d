"""The corpus in rounds: wishes one after another while the fleet fills, then the fleet is emptied and looked at again.

Besides what the panel says of each wish it holds three more of its words to the scheduler: a change that it proposes
does fit; what was said to wait does fit once nothing is in use; what was said never to fit does not even then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final

from claims.services.fit import Outcome, Proposal
from claims.wish import Wish, read
from tests.cluster.corpusrun import Stage, Tried

KEEP: Final = 0.85  # of those that got devices
# A selector that fails on a device is put to it once it is free: that is no fit either.
ON_EMPTY: Final[Mapping[Outcome, Container[Outcome | str]]] = {
    Outcome.WAIT: (Outcome.NOW,),
    Outcome.NEVER: (Outcome.NEVER, Outcome.ABORTED),
}


@dataclass(slots=True)
class Run:
    """All that was tried: wishes of the corpus, and what followed from what was said of them."""

    stage: Stage
    random: Random
    tried: list[Tried] = field(default_factory=list)
    followed: list[Tried] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def play(self, wishes: Iterable[Wish]) -> None:
        """One round. Wishes that the form refuses are left out."""
        found = [tried for wish in wishes if (tried := self._play_one(wish))]
        self.stage.clear()
        for tried in found:
            if tried.said.outcome in ON_EMPTY:
                self._look_again(tried)

    def report(self) -> str:
        """How many, with which answers, and how long from creation to the scheduler's word."""
        outcomes = Counter(str(each.said.outcome) for each in self.tried)
        seconds = sorted(each.seconds for each in (*self.tried, *self.followed))
        return (
            f"{len(self.tried)} wishes {dict(outcomes)}, {len(self.followed)} that followed from them; "
            f"created to scheduled: median {seconds[len(seconds) // 2]:.2f} s, most {seconds[-1]:.2f} s; "
            f"{self.stage.restarts} times only a restarted scheduler agreed"
        )

    def _play_one(self, wish: Wish) -> Tried | None:
        tried = self.stage.try_out(wish)
        if tried is None:
            return None
        self.tried.append(tried)
        self._note(tried.fault)
        if tried.said.outcome is Outcome.NOW and self.random.random() < KEEP:
            self.stage.kept.append(tried)
            return tried
        self.stage.take_back(tried)
        if tried.said.proposals:
            self._follow(tried, self.random.choice(tried.said.proposals))
        return tried

    def _follow(self, tried: Tried, proposal: Proposal) -> None:
        wish = read(proposal.query).wish
        again = self.stage.try_out(wish) if wish else None
        what = f"{tried.query}\n  proposed: {proposal.query}"
        if again is None:
            self._note(f"{what}, which the form refuses")
            return
        said = again.said
        if (said.outcome, said.answer.fitting) != (Outcome.NOW, proposal.nodes):
            self._note(f"{what} for {proposal.nodes} nodes; then: {said.outcome} on {said.answer.fitting}")
        self._finish(again)

    def _look_again(self, tried: Tried) -> None:
        again = self.stage.try_out(tried.wish)
        said = again.said.outcome if again else "refused"
        if said not in ON_EMPTY[tried.said.outcome]:
            self._note(f"{tried.query}\n  panel: {tried.said.outcome}; then, with nothing in use: {said}")
        if again:
            self._finish(again)

    def _finish(self, again: Tried) -> None:
        self.followed.append(again)
        self._note(again.fault)
        self.stage.take_back(again)

    def _note(self, fault: str) -> None:
        if fault:
            self.faults.append(fault)
