"""The part "How much": modes with what enforces them, counts, memory, slices, shares, and what it all amounts to.

It decides nothing: what a class does not give is judged by `claims.wish`, amounts are rounded as the scheduler does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from claims.messages import say
from claims.services.preview import Preview
from claims.services.slices import obtainable
from claims.views.desk.amounts import amount, least_memory, scheduled
from claims.views.desk.into import Option
from claims.wish import MAX_COUNT, WHOLE, ClassFacts, Mode, mode_closed, mode_of
from claims.wish.facts import CAPACITY, PARTS
from gpuinventory.gpuclasses import Numbers, Offer
from gpuinventory.selectors.gpuclasses import class_numbers
from gpuinventory.selectors.held import Held
from portal.templatetags.portal_ui import binary

_GIB: Final = 2**30
_HALF: Final = "50"  # as a wish without a value is read
_MODES: Final[Mapping[Mode, tuple[str, str]]] = {
    Mode.WHOLE: ("Whole", "The device is for this pod alone."),
    Mode.SLICE: ("Slice", "A MIG instance: the hardware keeps its memory and compute units apart."),
    Mode.SHARE: ("Share", "A percentage of a device."),
    Mode.TIMESLICED: ("Time-sliced", "Pods take turns on the device; nothing keeps their memory apart."),
}
_ANY_SLICE: Final = ("Any slice", "A slice of whatever profile is free, for this pod alone.")
ENFORCED: Final[Mapping[str, str]] = {
    "sharePercent": "MPS holds each process to its part of compute units and memory, for teams that trust each other.",
    "cores": "HAMi-core inside the container holds its processes to their part.",
}
UNENFORCED: Final = "Nothing enforces it at run time; neighbours can use more."


@dataclass(frozen=True, slots=True)
class Choice:
    """An entry of a list, with what is shown for it."""

    value: str
    label: str
    chosen: bool = False


def much(seen: Preview, fleet: Held) -> dict[str, Any]:
    """The values of the part's template."""
    chosen, values = seen.chosen, seen.reading.values
    facts = chosen.facts if chosen else ClassFacts(name=values.get("class", ""))
    mode = mode_of(values)
    return {
        "mode": mode,
        "modes": tuple(_mode(facts, each, seen.bounds.lacking, chosen=each is mode) for each in Mode),
        "sizes": tuple(_sizes(facts.offer, mode)),
        "profiles": tuple(_profiles(seen, facts, fleet, mode)),
        "share": _share(values.get("share", ""), mode),
        "share_bounds": facts.spec.share,
        "enforced": enforced(facts),
        "scheduled": scheduled(seen.reading.wish, facts),
        "amount": amount(seen.reading.wish, facts),
        "count_most": min(facts.spec.count.max, MAX_COUNT),
        "count_least": facts.spec.count.min,
        "on_one_node": _on_one_node(class_numbers(fleet, chosen.view)) if chosen else "",
    }


def _share(value: str, mode: Mode) -> str:
    """The field's value; of a whole device it is 100, and who turns to a share then wants less."""
    return _HALF if not value or (value == str(WHOLE) and mode is not Mode.SHARE) else value


def enforced(facts: ClassFacts) -> str:
    """What holds a share to its part, as far as its driver is known to do it."""
    return ENFORCED.get(facts.share_capacity, UNENFORCED) if _known(facts) else UNENFORCED


def _known(facts: ClassFacts) -> bool:
    """Whether shares are published under that name; of a class without devices nothing is known."""
    return facts.offer is None or facts.offer.share is not None


def _mode(facts: ClassFacts, mode: Mode, lacking: Mapping[str, str], *, chosen: bool) -> Option:
    """One mode; one that is chosen stays open, so that nobody has to guess what was sent."""
    title, text = _MODES[mode]
    if mode is Mode.WHOLE and facts.offer is not None and not facts.offer.wholes:
        title, text = _ANY_SLICE
    if mode is Mode.SHARE:
        text = f"{text} {enforced(facts)}"
    refusal, why = mode_closed(facts, mode), lacking.get(CAPACITY, "") if mode in PARTS else ""
    if refusal and not why:
        why = say(refusal).why
    return Option(value=mode, title=title, text=text, chosen=chosen, closed="" if chosen else why)


def _sizes(offer: Offer | None, mode: Mode) -> Iterator[Choice]:
    """Published sizes as floors, in whole Gi, so that each takes the devices that it stands for."""
    if offer is None:
        return
    found: Iterable[int] = (part.memory for part in offer.parts) if mode is Mode.SLICE else offer.sizes
    for floor, size in sorted({size // _GIB: size for size in found if size >= _GIB}.items()):
        yield Choice(f"{floor}Gi", f"devices with {binary(size)}")


def _profiles(seen: Preview, facts: ClassFacts, fleet: Held, mode: Mode) -> Iterator[Choice]:
    """The slices of the class, none where none is known; how many can be had is asked only where a slice is wanted."""
    value = seen.reading.values.get("profile", "")
    parts = facts.offer.parts if facts.offer else ()
    floor = least_memory(seen.reading.values)
    free: Mapping[str, str] = {}
    if seen.chosen and mode is Mode.SLICE:
        free = obtainable(fleet, seen.chosen.view, [part.profile for part in parts])
    for part in parts:
        words = [part.profile, binary(part.memory) if part.memory else "memory unknown"]
        words += ["too small"] if part.memory < floor else []
        words += [_obtainable(free[part.profile])] if part.profile in free else []
        yield Choice(part.profile, ", ".join(words), chosen=part.profile == value)
    if parts and value and value not in {part.profile for part in parts}:
        yield Choice(value, f"{value}, unknown here", chosen=True)


def _obtainable(count: str) -> str:
    return "offered, none left" if count == "0" else f"obtainable {count}"


def _on_one_node(numbers: Numbers) -> str:
    if not numbers.free:
        return "None is free now."
    return f"At most {numbers.largest} on one node now." if numbers.largest else ""
