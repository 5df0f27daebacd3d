"""Which resource claim holds which device: the checkpoint as a whole, under its lock, with one invariant.

The invariant: shares of one piece of silicon never exceed 100 %, and pieces that overlap are never held together. The
scheduler keeps it too; here it guards against a stale allocation. No hardware is touched here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from pathlib import Path

from dra.names import ClaimUID
from nodedriver.boundary import boundary
from nodedriver.checkpoint import (
    Checkpoint,
    CheckpointError,
    PreparedClaim,
    PreparedDevice,
    keep_aside,
    read_checkpoint,
    write_checkpoint,
)
from nodedriver.facts import MigPlacement, PciAddress
from nodedriver.gpuconfig import MpsLimits
from nodedriver.locks import Locks
from nodedriver.plan import WHOLE

type UncleanCards = Mapping[PciAddress, str]  # what on each card is not as it would be without claims


@dataclass(frozen=True, slots=True)
class SetAside:
    """An unreadable checkpoint: where its content is kept, and why it could not be read."""

    path: Path
    reason: str


class PreparedClaims:
    """The claims of this node. Callers hold the locks of the GPUs that they read or write about."""

    def __init__(self, path: Path, *, boot_id: str, locks: Locks) -> None:
        self._path = path
        self._boot_id = boot_id
        self._locks = locks

    def open(self, look: Callable[[], UncleanCards]) -> SetAside | None:
        """Take the checkpoint over at start-up, and say whether it had to be set aside.

        Then the cards that `look` finds unclean take no new claims: nobody knows any more whose state they carry. They
        stay so over restarts until `look` finds them clean.
        """
        with self._locks.checkpoint():
            try:
                checkpoint, aside = read_checkpoint(self._path, self._boot_id), None
            except CheckpointError as error:
                aside = SetAside(keep_aside(self._path), str(error))
                checkpoint = Checkpoint(boot_id=self._boot_id, unclean=_refusals(look(), aside.path.name))
            if aside is None and checkpoint.unclean:
                still = look()
                unclean = {gpu: why for gpu, why in checkpoint.unclean.items() if gpu in still}
                checkpoint = replace(checkpoint, unclean=unclean)
            write_checkpoint(self._path, checkpoint)
        return aside

    def read(self) -> Checkpoint:
        """The checkpoint now; it is only ever replaced whole, so no lock is needed. CheckpointError as at reading."""
        return read_checkpoint(self._path, self._boot_id)

    def save(self, claim: PreparedClaim) -> None:
        """Write this claim's entry, durably, before anything that it announces is done."""
        boundary(claim.uid, f"checkpoint {claim.state}")
        self._change(lambda checkpoint: checkpoint.with_claim(claim))

    def drop(self, uid: ClaimUID) -> None:
        """Forget the claim; unknown is fine."""
        boundary(uid, "checkpoint gone")
        self._change(lambda checkpoint: checkpoint.without_claim(uid))
        boundary(uid, "answer")

    def _change(self, step: Callable[[Checkpoint], Checkpoint]) -> None:
        with self._locks.checkpoint():
            write_checkpoint(self._path, step(self.read()))


def neighbours(checkpoint: Checkpoint, uid: ClaimUID, gpus: AbstractSet[PciAddress]) -> tuple[PreparedClaim, ...]:
    """The claims on these cards other than that one, in the order of their uids."""
    others = sorted(checkpoint.claims.values(), key=lambda other: other.uid)
    return tuple(other for other in others if other.uid != uid and other.gpus & gpus)


def sharers(device: PreparedDevice, claims: Iterable[PreparedClaim]) -> list[PreparedDevice]:
    """The devices of these claims that are shares of the same silicon."""
    return [theirs for claim in claims for theirs in _taking(claim.devices) if theirs.place == device.place]


def limits_of(devices: Iterable[PreparedDevice]) -> list[MpsLimits]:
    """What MPS is to hold these devices to."""
    return [device.mps for device in devices if device.mps]


def why_not(checkpoint: Checkpoint, claim: PreparedClaim) -> str:
    """Why these devices can't be given to this claim now; "" when they can. Admin access takes nothing from anybody."""
    for device in _taking(claim.devices):
        if reason := checkpoint.unclean.get(device.gpu):
            return f"device {device.device} can't be prepared: {reason}"
        if reason := _held(device, claim, neighbours(checkpoint, claim.uid, claim.gpus)):
            return f"device {device.device} ({device.part}) can't be prepared: {reason}"
    return ""


def _held(device: PreparedDevice, claim: PreparedClaim, others: Iterable[PreparedClaim]) -> str:
    taken = sum((own.percent for own in sharers(device, (claim,))), Fraction())
    holders = []
    for other in others:
        for theirs in _taking(other.devices):
            if theirs.place == device.place:
                taken += theirs.percent
                holders.append(f"{other.ref} ({theirs.part})")
            elif theirs.gpu == device.gpu and _overlap(theirs.placement, device.placement):
                return f"it overlaps {theirs.device}, which resource claim {other.ref} holds until it is unprepared"
    if taken <= WHOLE:
        return ""
    return f"with {', '.join(holders) or 'the other shares of this claim'} its shares would be {ceil(taken)} % of it"


def _overlap(one: MigPlacement | None, other: MigPlacement | None) -> bool:
    """Whether two pieces of one card share silicon; None is the whole card."""
    if one is None or other is None:
        return True
    return one.start < other.start + other.size and other.start < one.start + one.size


def _taking(devices: Iterable[PreparedDevice]) -> tuple[PreparedDevice, ...]:
    return tuple(device for device in devices if not device.admin_access)


def _refusals(unclean: UncleanCards, aside: str) -> dict[PciAddress, str]:
    return {
        gpu: f"GPU {gpu} takes no new claims, since the checkpoint could not be read (it is kept as {aside}) and the "
        f"card still has {what}. An operator must make it clean (nvidia-smi mig -dci, then -dgi; nvidia-smi -c "
        "DEFAULT; restart the MPS supervisor) and then restart the node driver"
        for gpu, what in unclean.items()
    }
