"""Changes that make a wish fit, as wishes: each is written as an address, read back, rendered and asked again.

What a person follows is therefore exactly what was found to fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from urllib.parse import urlencode

from claims.manifests import render
from claims.services.fit.answer import Proposal
from claims.services.fit.claim import claim_of
from claims.services.preview import Preview
from claims.wish import SHARE_STEP, judge, read
from dra.advice.explanation import ChangeCode, Suggestion
from dra.advice.suggest import suggest
from dra.fleet import Wish
from dra.quantity import parse_quantity
from gpuinventory.selectors.held import Held

_SHARE, _MEMORY = "sharePercent", "memory"


def proposals(seen: Preview, held: Held, asked: Wish) -> tuple[Proposal, ...]:
    """At most three, the smallest change first; for the same pod."""
    found = suggest(held.snapshot, asked.resource_claims, classes=_kindred(seen))
    return tuple(_checked(seen, held, found, asked))


def _kindred(seen: Preview) -> tuple[str, ...]:
    """Other classes of the same driver: who asks for one maker's GPU has no use for another's."""
    chosen = seen.chosen
    if chosen is None or chosen.facts.driver is None:
        return ()
    return tuple(
        option.view.name
        for option in seen.options
        if option.facts.driver == chosen.facts.driver and option.view.expressions and option is not chosen
    )


def _checked(seen: Preview, held: Held, found: tuple[Suggestion, ...], asked: Wish) -> Iterator[Proposal]:
    for suggestion in found:
        changed = _changed_values(suggestion)
        query = urlencode(_replaced(seen.reading.pairs, changed))
        nodes = _nodes(seen, held, query, asked) if changed else 0
        if nodes:
            ((key, after),) = changed.items()
            yield Proposal(
                code=suggestion.code,
                before=seen.reading.values.get(key, ""),
                after=after,
                nodes=nodes,
                query=query,
            )


def _changed_values(suggestion: Suggestion) -> Mapping[str, str]:
    """The one field of the form that has to change, nothing where no field says it."""
    facts, after = suggestion.facts, str(suggestion.facts["to"])
    match suggestion.code:
        case ChangeCode.COUNT:
            return {"count": after}
        case ChangeCode.DEVICE_CLASS:
            return {"class": after}
        case ChangeCode.CAPACITY if facts["capacity"] == _SHARE and after.isdecimal():
            return {"share": str(int(after) // SHARE_STEP * SHARE_STEP)}
        case ChangeCode.CAPACITY if facts["capacity"] == _MEMORY:
            return {"memory": after}
        case ChangeCode.LITERAL if facts["identifier"] == _MEMORY:
            return {"memory": _round(after)}
    return {}


def _replaced(pairs: Iterable[tuple[str, str]], changed: Mapping[str, str]) -> list[tuple[str, str]]:
    return [pair for pair in pairs if pair[0] not in changed] + list(changed.items())


def _round(memory: str) -> str:
    """A floor that is easier to read, a whole number of Gi below it; less of a floor takes every device of a higher."""
    whole = parse_quantity(memory).value // 2**30
    return f"{whole}Gi" if whole else memory


def _nodes(seen: Preview, held: Held, query: str, asked: Wish) -> int:
    """On how many nodes the wish of that address fits, 0 where it is none that could be created."""
    wish = read(query).wish
    if wish is None or judge(wish, seen.bounds):
        return 0
    claim = claim_of(render(wish, seen.bounds.classes[wish.device_class], seen.key))
    answer = held.fleet.answer(held.snapshot, replace(asked, resource_claims=(claim,)), held.usage)
    return 0 if answer.aborts else answer.fitting
