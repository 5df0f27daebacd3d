"""The part "GPU class": a card for each class, with what is free of it, or why it can't be asked for here and now.

It decides nothing: bounds are judged by `claims.wish`, numbers come from the fleet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from claims.messages import say
from claims.selectors import ClassOption
from claims.services.charges import Full, full_quotas
from claims.services.preview import Preview
from claims.wish import closed
from gpuinventory.gpuclasses import GPUClassView, Numbers
from gpuinventory.selectors.gpuclasses import class_numbers
from gpuinventory.selectors.held import Held
from portal.templatetags.portal_ui import binary

_PRODUCTS = 2  # that a card names


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A class to choose. `reason` is why it can't be, "" where it can; `instead` the address with the class that has
    taken its place. The chosen one stays open, so that nobody has to guess what was sent.
    """

    name: str
    title: str
    chosen: bool
    facts: tuple[str, ...]
    room: str
    free: int
    reason: str
    instead: str
    other: str

    @property
    def disabled(self) -> bool:
        """Whether it can't be chosen."""
        return bool(self.reason) and not self.chosen


@dataclass(frozen=True, slots=True)
class Group:
    """A card, and folded under it the cards of the kinds within its DeviceClass; open if one of them is chosen."""

    card: Card
    kinds: tuple[Card, ...]

    @property
    def open(self) -> bool:
        """Whether one of the kinds is chosen."""
        return any(kind.chosen for kind in self.kinds)


def what(seen: Preview, fleet: Held) -> dict[str, Any]:
    """The values of the part's template. Queries: those of the quotas."""
    namespace = seen.reading.values.get("ns", "")
    full = full_quotas(namespace) if namespace in seen.bounds.namespaces else {}
    cards = [(option, _card(seen, option, class_numbers(fleet, option.view), full)) for option in seen.options]
    return {"groups": tuple(_groups(cards))}


def _groups(cards: Iterable[tuple[ClassOption, Card]]) -> Iterable[Group]:
    """The kinds of a DeviceClass stand behind it in the catalogue, and have selectors of their own."""
    kinds: dict[str, list[Card]] = {}
    mains: list[tuple[ClassOption, Card]] = []
    for option, card in cards:
        if option.facts.selectors:
            kinds.setdefault(option.facts.device_class, []).append(card)
        else:
            mains.append((option, card))
    return (Group(card, tuple(kinds.get(option.view.name, ()))) for option, card in mains)


def _card(seen: Preview, option: ClassOption, numbers: Numbers, full: Mapping[str, Full]) -> Card:
    view, spec = option.view, option.facts.spec
    other = spec.replaced_by if spec.state == "replaced" and spec.replaced_by else ""
    return Card(
        name=view.name,
        title=view.spec.title,
        chosen=option is seen.chosen,
        facts=tuple(_facts(option)),
        room=_room(option, numbers),
        free=numbers.free,
        reason=_reason(seen, option, numbers, full.get(option.facts.device_class)),
        instead=_with_class(seen, other) if other else "",
        other=other,
    )


def _reason(seen: Preview, option: ClassOption, numbers: Numbers, full: Full | None) -> str:
    """Why it can't be chosen: bounds of the class, then a fault, then a quota."""
    namespace = seen.reading.values.get("ns", "")
    if namespace in seen.bounds.namespaces and (refusal := closed(option.facts, namespace)):
        said = say(refusal)
        return f"{said.what} {said.why}"
    if numbers.fault:
        return "Kubernetes gives up on pods that ask for it"
    if full is not None:
        allowed = f"has all its {full.limit} in use" if full.limit else "allows none"
        return f"ResourceQuota {full.quota} of {namespace} {allowed}."
    return ""


def _room(option: ClassOption, numbers: Numbers) -> str:
    """What is free now, such as "1 of 2 free, at most 1 on one node". Slices exclude each other: they are no total.

    Of shares so many of the default size can be had; a request takes one.
    """
    offer, share = option.facts.offer, option.view.share
    total = f" shares of {share} %" if share else "" if offer and offer.parts else f" of {option.view.devices}"
    words = [f"{'' if numbers.bounded else 'at least '}{numbers.free}{total} free"]
    if numbers.largest and numbers.largest <= numbers.free and not share:
        words.append(f"at most {numbers.largest} on one node")
    if numbers.waiting:
        words.append(f"{numbers.waiting} waiting")
    return ", ".join(words)


def _facts(option: ClassOption) -> Iterable[str]:
    view = option.view
    if view.name != view.spec.title:
        yield view.name
    yield from _kinds(view)
    if option.facts.spec.price_per_hour:
        yield f"{option.facts.spec.price_per_hour} an hour for a whole device"
    if option.facts.extended_resource and not option.facts.selectors:
        yield f"also {option.facts.extended_resource}"
    if option.configured:
        yield "with settings of its own"
    if not option.expressions and not option.facts.selectors:
        yield "no selector: every device of every driver"


def _kinds(view: GPUClassView) -> Iterable[str]:
    """Models and memory; the driver where no model is known."""
    products = view.products[:_PRODUCTS] or view.drivers[:_PRODUCTS]
    more = len(view.products) - _PRODUCTS
    if products and view.spec.title not in products:
        yield ", ".join(products) + (f" and {more} more" if more > 0 else "")
    least, most = view.memory
    if most:
        yield binary(most) if least == most else f"{binary(least)} to {binary(most)}"


def _with_class(seen: Preview, name: str) -> str:
    pairs = [pair for pair in seen.reading.pairs if pair[0] != "class"]
    return urlencode([*pairs, ("class", name)])
