"""What to do with a card whose mode others wait for, and what to say in their claims' status. Pure.

Asked again and again with what is there at that moment: the claims that wait, the card, what was kept. So a driver that
died goes on where it was, and a claim that was withdrawn ends it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec.structs import replace as replace_struct

from dra.objects import Condition
from nodedriver.cardmodes import CardMode
from nodedriver.facts import PciAddress
from nodedriver.inventory import mode_failed, mode_ready
from nodedriver.maintenance.awaited import Awaited

TRIES = 3  # of the reset itself
START_SECONDS = 30.0  # after the wait for others, in which a try may still begin: a card that nobody holds gets one
TRY_SECONDS = 60.0  # of one try: a reset takes up to 40, and a call of NVML that does not come back 20
_LONGEST = 1000  # characters of a condition's message, of 32,768 that the API takes: it goes into the pod's events


class Phase(StrEnum):
    """Working: the card takes no new claims until it changed its mode. Failed: it did not, and is not asked again."""

    WORKING = "working"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What is remembered of a card. `since` is RFC 3339; `why` is the last thing in the way; `held`: that goes away by
    itself, when others leave the card.
    """

    gpu: PciAddress
    target: CardMode
    since: str
    phase: Phase = Phase.WORKING
    tries: int = 0
    why: str = ""
    held: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """The card now: its mode, the one it will have after a reset (None: not known), and what keeps it from one, in
    words.
    """

    mode: CardMode
    pending: CardMode | None
    obstacles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rules:
    """How long others may hold the card, in seconds; and the driver's name."""

    driver_name: str
    wait: float

    @property
    def last_start(self) -> timedelta:
        """When the last try may begin, after the work on the card began; TRY_SECONDS later it has ended."""
        return timedelta(seconds=self.wait + START_SECONDS)


@dataclass(frozen=True, slots=True)
class Decision:
    """What to keep of the card from now on, and whether to bring it into the mode that this names."""

    kept: Kept | None
    switch: bool = False


def decide(seen: Seen, awaited: Sequence[Awaited], kept: Kept | None, rules: Rules, now: datetime) -> Decision:
    """The next step for a card. `awaited` are all devices on it."""
    if kept is not None and kept.phase is Phase.FAILED:
        return Decision(_unless_pending(kept, seen) if _is_over(kept, seen) else kept)
    unserved = sorted((each for each in awaited if _waits(each, seen)), key=lambda each: each.ref.uid)
    if not unserved:
        return Decision(_unless_pending(kept, seen))
    begun = kept or _begun(unserved[0], now)
    if seen.obstacles:
        return Decision(_held(begun, seen, rules, now))
    if kept is None:
        return Decision(begun)  # published first: others keep off the card
    if kept.tries >= TRIES or now > _since(kept) + rules.last_start:
        return Decision(_given_up(kept))
    return Decision(replace(kept, tries=kept.tries + 1, why="", held=False), switch=True)


def say(each: Awaited, seen: Seen, kept: Kept | None, rules: Rules, now: datetime) -> Awaited:
    """The device with what its status is to say; as it was where nothing new is to be said."""
    if each.is_settled:
        return each
    if each.mode is None or each.mode is seen.mode:
        return _saying(each, rules, now, ("True", "ModeReady", f"GPU {each.gpu} is in the mode of {each.device}"))
    if kept is None:
        return each
    if kept.phase is Phase.FAILED:
        return _saying(each, rules, now, ("False", "ModeChangeFailed", kept.why), failed=True)
    waiting = kept.why or f"GPU {each.gpu} is being reset for {each.device}"
    return _saying(each, rules, now, ("False", "Waiting" if kept.why else "Resetting", waiting))


def _waits(each: Awaited, seen: Seen) -> bool:
    return not each.is_settled and each.mode is not None and each.mode is not seen.mode


def _begun(first: Awaited, now: datetime) -> Kept:
    target = first.mode or CardMode.WHOLE
    return Kept(gpu=first.gpu, target=target, since=f"{now:%Y-%m-%dT%H:%M:%SZ}")


def _held(kept: Kept, seen: Seen, rules: Rules, now: datetime) -> Kept:
    """Others have the card; over the deadline it has failed, under the scheduler's own (600 s, bindingTimeout)."""
    given_up = now >= _since(kept) + timedelta(seconds=rules.wait)
    what = ", ".join(seen.obstacles)
    why = f"GPU {kept.gpu} can't change to mode {kept.target} while it is held by {what}"
    if given_up:
        why += f"; after {rules.wait:g} s that was given up. End what holds it: the card is then offered again"
    return replace(kept, phase=Phase.FAILED if given_up else Phase.WORKING, why=why, held=True)


def _given_up(kept: Kept) -> Kept:
    """No time is left, or it was tried often enough. A card that was never tried is offered again at once."""
    why = kept.why or f"GPU {kept.gpu} could not be changed to mode {kept.target} in time, after {kept.tries} tries"
    return replace(kept, phase=Phase.FAILED, why=why, held=kept.tries == 0)


def _since(kept: Kept) -> datetime:
    return datetime.fromisoformat(kept.since)


def _is_over(kept: Kept, seen: Seen) -> bool:
    """Whether what failed would not fail again: somebody changed the mode, or those who held the card left it."""
    return seen.mode is kept.target or (kept.held and not seen.obstacles)


def _unless_pending(kept: Kept | None, seen: Seen) -> Kept | None:
    """A card is forgotten only when no wish for another mode is left with it: that is taken back before."""
    return None if seen.pending is seen.mode else kept


def _saying(
    each: Awaited, rules: Rules, now: datetime, ready: tuple[str, str, str], *, failed: bool = False
) -> Awaited:
    """The same conditions keep their time (metav1.Condition, lastTransitionTime)."""
    status, reason, message = ready
    said = [Condition(type=mode_ready(rules.driver_name), status=status, reason=reason, message=message[:_LONGEST])]
    if failed:
        said.append(replace_struct(said[0], type=mode_failed(rules.driver_name), status="True"))
    if said == [replace_struct(condition, last_transition_time=None) for condition in each.said]:
        return each
    time = f"{now:%Y-%m-%dT%H:%M:%SZ}"
    return replace(each, said=tuple(replace_struct(condition, last_transition_time=time) for condition in said))
