"""What an address leaves open and a GPU class settles: its one mode, and of its slices the smallest that does. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from claims.wish.classes import offered_mode
from claims.wish.codec import Reading
from claims.wish.facts import ClassFacts
from claims.wish.reading import mode_of
from claims.wish.values import Mode
from dra.errors import InvalidQuantityError
from dra.quantity import parse_quantity

_TELLING = ("profile", "slots", "share")  # what says a mode where none is named


def settled(reading: Reading, facts: ClassFacts) -> tuple[tuple[str, str], ...]:
    """The pairs to be added to the address, none where nothing is left open.

    Whole is what a form says before anything was chosen, so it is no choice against a class that is not given whole.
    """
    values = reading.values
    offered = offered_mode(facts)
    chosen = any(values.get(key) for key in _TELLING) if not values.get("mode") else values["mode"] != Mode.WHOLE
    added = {"mode": str(offered)} if offered and not chosen and mode_of(values) is not offered else {}
    if mode_of({**values, **added}) is Mode.SLICE and not values.get("profile"):
        profile = smallest_profile(facts, values)
        added |= {"profile": profile} if profile else {}
    return tuple(added.items())


def smallest_profile(facts: ClassFacts, values: Mapping[str, str]) -> str:
    """The smallest slice of the class that has the memory, "" where there is none or the memory is no amount."""
    try:
        floor = parse_quantity(values.get("memory") or "0").value
    except InvalidQuantityError:
        floor = 0
    parts = facts.offer.parts if facts.offer else ()
    return next((part.profile for part in parts if part.memory >= floor), "")
