"""A wish in words: what each pod gets, and what is created for it. Pure."""

from __future__ import annotations

from claims.wish.values import WHOLE, Owner, Wish


def noun(wish: Wish) -> str:
    """What is created for it, in a word."""
    return "claim" if wish.owner is Owner.SHARED else "template"


def summary(wish: Wish) -> str:
    """What each pod gets, such as "2 whole devices of h100, each with at least 40Gi"."""
    if wish.share < WHOLE:
        memory = f", with at most {wish.memory} of its memory" if wish.memory else ""
        return f"{wish.share} % of one device of {wish.device_class}{memory}"
    devices = _devices(wish)
    memory = f", {'with' if wish.count == 1 else 'each with'} at least {wish.memory}" if wish.memory else ""
    return f"{devices} of {wish.device_class}{memory}"


def _devices(wish: Wish) -> str:
    if wish.profile:
        return f"1 slice {wish.profile}" if wish.count == 1 else f"{wish.count} slices {wish.profile}"
    if wish.slots is not None:
        shared = "1 device" if wish.count == 1 else f"{wish.count} devices"
        return f"{wish.slots} {'slot' if wish.slots == 1 else 'slots'} of {shared}"
    return "1 whole device" if wish.count == 1 else f"{wish.count} whole devices"
