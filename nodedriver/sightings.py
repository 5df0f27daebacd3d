"""When a process was last seen on what a claim holds: whose a process is, and which change is worth a write. Pure.

A claim that is held without a process is waste (KEP-4817 leaves it to drivers to say so). Who can't be told from others
counts for everybody on the same silicon: rather nobody is called idle than somebody wrongly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from dra.names import ClaimUID
from nodedriver.facts import GpuProcess, PciAddress
from nodedriver.holding import PreparedClaim, PreparedDevice

# How old the told time may become while processes run on: each write is one more for the API server, from every node.
TOLD_ANEW_AFTER = timedelta(minutes=15)

type Spot = tuple[ClaimUID, str]  # one device of a claim, by its CDI name
type Marks = Callable[[int], frozenset[ClaimUID]]  # the claims that a process is marked with


@dataclass(frozen=True, slots=True)
class Sight:
    """The last time (RFC 3339) that a process was seen, and whether the newest look saw one."""

    last: str
    running: bool


@dataclass(frozen=True, slots=True)
class Look:
    """What a look found: the devices of claims whose card answered, and those of them on which a process runs."""

    answered: frozenset[Spot]
    occupied: frozenset[Spot]


def look_at(
    claims: Iterable[PreparedClaim], processes: Mapping[PciAddress, Sequence[GpuProcess]], marks: Marks
) -> Look:
    """What these processes say of these claims. Admin access holds nothing, so it is left out.

    `processes` has the cards that answered.
    """
    held = [(claim, device) for claim in claims for device in claim.devices if not device.admin_access]
    answered = [(claim, device) for claim, device in held if device.gpu in processes]
    occupied = [
        (claim, device)
        for claim, device in answered
        if any(_runs_on(each, device) and marks(each.pid) <= {claim.uid} for each in processes[device.gpu])
    ]
    return Look(frozenset(map(_spot, answered)), frozenset(map(_spot, occupied)))


def _spot(held: tuple[PreparedClaim, PreparedDevice]) -> Spot:
    claim, device = held
    return claim.uid, device.cdi_device_id


def _runs_on(process: GpuProcess, device: PreparedDevice) -> bool:
    """Under MPS only clients count, since the server is there without any."""
    return process.placement == device.placement and process.mps_client is (device.mps is not None)


def looked(before: Mapping[Spot, Sight], look: Look, now: str) -> dict[Spot, Sight]:
    """What is known after a look; of a card that did not answer what was known before."""
    seen = dict.fromkeys(look.occupied, Sight(now, running=True))
    gone = {spot: Sight(sight.last, running=False) for spot, sight in before.items() if spot in look.answered}
    return {**before, **gone, **seen}


def told_time(told: str | None, sight: Sight | None) -> str | None:
    """The time that the claim's status should tell, after `told` as it does now.

    The first and the last time of a stretch are told exactly, what lies between only now and then.
    """
    if sight is None:
        return told
    before, seen = _time(told), _time(sight.last)
    if before is None or seen is None or not sight.running:
        return sight.last
    return told if seen - before < TOLD_ANEW_AFTER else sight.last


def _time(text: str | None) -> datetime | None:
    """None for what another version of the driver wrote in another form."""
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
