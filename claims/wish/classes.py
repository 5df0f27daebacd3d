"""What a GPU class does not give: to that namespace, now, in that mode, so many, so much. Pure.

Bounds are those of its administrator; what no device of the class publishes can't be had either. A class of which no
device is published is judged by its bounds alone: nodes may be added.
"""

from __future__ import annotations

from collections.abc import Iterator

from claims.refusals import Code, Refusal, quoted, refuse
from claims.wish.facts import ClassFacts
from claims.wish.values import WHOLE, Choice, Mode
from dra.objects.gpuclass import MemoryBounds
from dra.quantity import Quantity, parse_quantity

_MODES = {
    "whole": Mode.WHOLE,
    "slice": Mode.SLICE,
    "share": Mode.SHARE,
    "timesliced": Mode.TIMESLICED,
    "vfio": Mode.WHOLE,
}
_MODE_WORDS = {
    Mode.WHOLE: "whole devices",
    Mode.SLICE: "slices",
    Mode.SHARE: "shares",
    Mode.TIMESLICED: "time slices",
}


def closed(facts: ClassFacts, namespace: str, field: str = "class") -> Refusal | None:
    """Why nobody in that namespace can ask for anything of the class now."""
    spec = facts.spec
    if spec.namespaces and namespace not in spec.namespaces:
        return refuse(Code.CLASS_FOREIGN, field, gpu_class=facts.name, namespace=quoted(namespace))
    if spec.state == "paused":
        return refuse(Code.CLASS_PAUSED, field, gpu_class=facts.name, message=quoted(spec.message or "no reason given"))
    if spec.state == "replaced":
        return refuse(Code.CLASS_REPLACED, field, gpu_class=facts.name, other=spec.replaced_by or "another class")
    if facts.fault:
        return refuse(Code.CLASS_FAULT, field, gpu_class=facts.name, fault=facts.fault.rstrip("."))
    return None


def offered_mode(facts: ClassFacts) -> Mode | None:
    """The one mode in which its administrator gives the class; None where it is given in any."""
    return _MODES.get(facts.spec.mode)


def mode_closed(facts: ClassFacts, mode: Mode, field: str = "mode") -> Refusal | None:
    """Why the class can't be asked for in that mode."""
    offered = offered_mode(facts)
    any_slice = mode is Mode.WHOLE and facts.offer is not None and not facts.offer.wholes
    if offered is not None and mode is not offered and not (offered is Mode.SLICE and any_slice):
        return refuse(Code.MODE_OTHER, field, gpu_class=facts.name, offered=_MODE_WORDS[offered])
    if facts.offer is None:
        return None
    if mode is Mode.SLICE and not facts.offer.parts:
        return refuse(Code.MODE_NO_SLICES, field, gpu_class=facts.name)
    if mode is Mode.SHARE and facts.offer.share is None:
        return refuse(Code.MODE_NO_SHARES, field, gpu_class=facts.name, capacity=facts.share_capacity)
    if mode is Mode.TIMESLICED and facts.offer.slots is None:
        return refuse(Code.MODE_NO_SLOTS, field, gpu_class=facts.name)
    return None


def out_of_bounds(choice: Choice, facts: ClassFacts, prefix: str) -> Iterator[Refusal]:
    """What of the choice the class does not allow. `prefix` is that of its fields, such as `alt.1.`."""
    spec, mode = facts.spec, choice.mode
    if mode is Mode.WHOLE and offered_mode(facts) is Mode.SHARE and spec.share.max == WHOLE:
        mode = Mode.SHARE  # all of a device
    if refusal := mode_closed(facts, mode, f"{prefix}mode"):
        yield refusal
    elif mode is Mode.SLICE:
        yield from _unknown_profile(choice, facts, f"{prefix}profile")
    if not spec.count.min <= choice.count <= spec.count.max:
        bounds = {"least": spec.count.min, "most": spec.count.max}
        yield refuse(Code.COUNT_CLASS, f"{prefix}count", gpu_class=facts.name, value=choice.count, **bounds)
    if choice.share < WHOLE and not _step(choice.share, facts):
        share = {"least": spec.share.min, "most": spec.share.max, "step": spec.share.step}
        yield refuse(Code.SHARE_CLASS, f"{prefix}share", gpu_class=facts.name, value=choice.share, **share)
    if choice.memory and not _within(choice.memory, spec.memory):
        said = {"gpu_class": facts.name, "value": choice.memory, "bounds": _words(spec.memory)}
        yield refuse(Code.MEMORY_CLASS, f"{prefix}memory", **said)


def _unknown_profile(choice: Choice, facts: ClassFacts, field: str) -> Iterator[Refusal]:
    if facts.offer is None:
        return
    known = [part.profile for part in facts.offer.parts]
    if choice.profile not in known:
        said = {"gpu_class": facts.name, "value": quoted(choice.profile), "known": ", ".join(known)}
        yield refuse(Code.PROFILE_ABSENT, field, **said)


def _step(share: int, facts: ClassFacts) -> bool:
    bounds = facts.spec.share
    return bounds.min <= share <= bounds.max and (share - bounds.min) % bounds.step == 0


def _within(memory: Quantity, bounds: MemoryBounds) -> bool:
    low = bounds.min is None or parse_quantity(bounds.min) <= memory
    return low and (bounds.max is None or memory <= parse_quantity(bounds.max))


def _words(bounds: MemoryBounds) -> str:
    words = (f"at least {bounds.min}" if bounds.min else "", f"at most {bounds.max}" if bounds.max else "")
    return " and ".join(filter(None, words))
