"""The checkpoint as a whole, under its lock: taken over at the start, changed claim by claim. Touches no hardware."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from dra.names import ClaimRef, ClaimUID
from nodedriver.boundary import boundary
from nodedriver.checkpoint import CheckpointError, CheckpointFile, keep_aside, write_checkpoint
from nodedriver.facts import PciAddress
from nodedriver.holding import Checkpoint, PreparedClaim, conflict
from nodedriver.locks import Locks

type UncleanCards = Mapping[PciAddress, str]  # what on each card is not as it would be without claims


@dataclass(frozen=True, slots=True)
class SetAside:
    """An unreadable checkpoint: where its content is kept, and why it could not be read."""

    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class Opened:
    """What taking the checkpoint over came to: what was set aside, which claims were made anew from their files, and
    whether the checkpoint had been deleted.
    """

    aside: SetAside | None
    restored: tuple[ClaimRef, ...]
    was_deleted: bool


class PreparedClaims:
    """The claims of this node. Callers hold the locks of the GPUs that they read or write about."""

    def __init__(self, path: Path, *, boot_id: str, locks: Locks) -> None:
        self._path = path
        self._file = CheckpointFile(path, boot_id)
        self._boot_id = boot_id
        self._locks = locks

    def open(
        self,
        noted: Iterable[PreparedClaim],
        look: Callable[[Iterable[PreparedClaim]], UncleanCards],
        *,
        ran_before: bool = False,
    ) -> Opened:
        """Take the checkpoint over at start-up, and say what had to be done.

        One that can't be read is set aside. It, or one that was deleted (`ran_before`: there must have been one), is
        made anew from the claims that the CDI files note. The cards on which `look` finds more than these claims
        explain take no new ones: nobody knows any more whose state they carry. They stay so over restarts until `look`
        finds them clean.
        """
        with self._locks.checkpoint():
            was_deleted = ran_before and not self._path.exists()
            checkpoint, aside = self._taken_over()
            restored = [claim for claim in noted if claim.uid not in checkpoint.claims]
            for claim in restored:
                checkpoint = _restored(checkpoint, claim)
            if aside or was_deleted:
                lost = f"could not be read (it is kept as {aside.path.name})" if aside else "had been deleted"
                unclean = _refusals(look(checkpoint.claims.values()), lost)
                checkpoint = replace(checkpoint, unclean=unclean)
            elif checkpoint.unclean:
                still = look(checkpoint.claims.values())
                unclean = {gpu: why for gpu, why in checkpoint.unclean.items() if gpu in still}
                checkpoint = replace(checkpoint, unclean=unclean)
            write_checkpoint(self._path, checkpoint)
        return Opened(aside, tuple(claim.ref for claim in restored if claim.uid in checkpoint.claims), was_deleted)

    def _taken_over(self) -> tuple[Checkpoint, SetAside | None]:
        try:
            return self._file.read(), None
        except CheckpointError as error:
            return Checkpoint(boot_id=self._boot_id), SetAside(keep_aside(self._path), str(error))

    def read(self) -> Checkpoint:
        """The checkpoint now; it is only ever replaced whole, so no lock is needed. CheckpointError as at reading."""
        return self._file.read()

    def save(self, claim: PreparedClaim) -> None:
        """Write this claim's entry, durably, before anything that it announces is done."""
        boundary(claim.uid, f"checkpoint {claim.state}")
        self._change(lambda checkpoint: checkpoint.with_claim(claim))

    def restore(self, claim: PreparedClaim) -> None:
        """Write the entry of a claim that was prepared and is not known any more, if nothing contradicts it."""
        self._change(lambda checkpoint: _restored(checkpoint, claim))

    def drop(self, uid: ClaimUID) -> None:
        """Forget the claim; unknown is fine."""
        boundary(uid, "checkpoint gone")
        self._change(lambda checkpoint: checkpoint.without_claim(uid))
        boundary(uid, "answer")

    def _change(self, step: Callable[[Checkpoint], Checkpoint]) -> None:
        with self._locks.checkpoint():
            write_checkpoint(self._path, step(self.read()))


def _restored(checkpoint: Checkpoint, claim: PreparedClaim) -> Checkpoint:
    if claim.uid in checkpoint.claims or conflict(checkpoint, claim):
        return checkpoint
    return checkpoint.with_claim(claim)


def _refusals(unclean: UncleanCards, lost: str) -> dict[PciAddress, str]:
    return {
        gpu: f"GPU {gpu} takes no new claims, since the checkpoint {lost} and the card still has {what}. "
        "An operator must make it clean (nvidia-smi mig -dci, then -dgi; nvidia-smi -c DEFAULT; "
        "restart the MPS supervisor) and then restart the node driver"
        for gpu, what in unclean.items()
    }
