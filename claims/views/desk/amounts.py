"""What a wish amounts to, in words: the share that the scheduler will charge, and cards with their memory. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from claims.wish import WHOLE, ClassFacts, Mode, Wish, gib
from dra.capacity import CapacityError, refusal, rounded
from dra.errors import InvalidQuantityError
from dra.quantity import Quantity, parse_quantity
from gpuinventory.gpuclasses import Portion


@dataclass(frozen=True, slots=True)
class Scheduled:
    """What is charged for a share. `warning`: why the devices can't give it, "" where they can."""

    words: str
    warning: str


def least_memory(values: Mapping[str, str]) -> int:
    """The memory that is asked for, in bytes; 0 where none is, or what is written is no amount."""
    try:
        return parse_quantity(values.get("memory", "") or "0").value
    except InvalidQuantityError:
        return 0


def scheduled(wish: Wish | None, facts: ClassFacts) -> Scheduled | None:
    """What the scheduler charges for the share, None where the wish is none or nothing is published."""
    portion = facts.offer.share if facts.offer else None
    if wish is None or portion is None or wish.mode is not Mode.SHARE:
        return None
    asked = Quantity.of(wish.share)
    try:
        charged = rounded(portion.capacity, asked, fractional=False)
    except CapacityError as error:
        return Scheduled(f"{wish.share} %.", str(error))
    up = f"{wish.share} %, rounded up to {charged} %" if charged.value != wish.share else f"{charged} %"
    return Scheduled(f"{up}{_of(portion, charged.value)}.", refusal(portion.capacity, charged, fractional=False))


def _of(portion: Portion, percent: int) -> str:
    """Of the smallest device that gives shares: of others it is more."""
    if not portion.sizes:
        return ""
    more = " or more" if len(portion.sizes) > 1 else ""
    return f" of {gib(portion.sizes[0])}{more} = {gib(portion.sizes[0] * percent // WHOLE)}"


def amount(wish: Wish | None, facts: ClassFacts) -> str:
    """Cards and memory for each pod, such as "0.5 of a card, 39.8 GiB"; memory of the smallest device that would do."""
    if wish is None:
        return ""
    if wish.mode is Mode.SLICE:
        cards, one = f"{wish.count} slice{'s' if wish.count > 1 else ''} {wish.profile}", _of_part(wish, facts)
    elif wish.mode is Mode.TIMESLICED:
        cards, one = f"{wish.slots} slot{'s' if wish.slots != 1 else ''} of a card", 0
    else:
        cards, one = _cards(wish, facts), _each(wish, facts)
    return f"{cards}, {gib(one * wish.count)}" if one else cards


def _cards(wish: Wish, facts: ClassFacts) -> str:
    """Such as "0.25 of a card", "2 whole cards"."""
    if wish.share < WHOLE:
        return f"{wish.share / WHOLE:g} of a card"
    kind = "whole card" if facts.offer is None or facts.offer.wholes else "slice"
    return f"{wish.count} {kind}{'s' if wish.count > 1 else ''}"


def _each(wish: Wish, facts: ClassFacts) -> int:
    """The memory of each device or share; memory that is asked of a share only tightens it."""
    part = _of_card(wish, facts) * wish.share // WHOLE
    return min(part, wish.memory.value) if wish.memory and wish.share < WHOLE else part


def _of_part(wish: Wish, facts: ClassFacts) -> int:
    parts = facts.offer.parts if facts.offer else ()
    return next((part.memory for part in parts if part.profile == wish.profile), 0)


def _of_card(wish: Wish, facts: ClassFacts) -> int:
    sizes = facts.offer.sizes if facts.offer else ()
    if wish.mode is Mode.SHARE and facts.offer and facts.offer.share:
        return next(iter(facts.offer.share.sizes), 0)
    floor = wish.memory.value if wish.memory else 0
    return next((size for size in sizes if size >= floor), 0)
