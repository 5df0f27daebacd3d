"""What is done to a card that changes its mode: looked at, asked for the other mode, reset, asked back.

The lock of the card is held by the caller. Errors: GpuError, OSError and CheckpointError.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import structlog

from nodedriver.boundary import boundary
from nodedriver.cardmodes import CardMode
from nodedriver.facts import PciAddress
from nodedriver.maintenance.deciding import Seen
from nodedriver.maintenance.holders import holders
from nodedriver.ports import CardUse, GpuError, MigModes, ModeAnswer, Resets
from nodedriver.prepared import PreparedClaims

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """What it is done with. `minors` are the device minors of the cards, kept up to date: a reset may change them."""

    modes: MigModes
    resets: Resets
    prepared: PreparedClaims
    proc_root: Path
    minors: dict[PciAddress, int]

    def look(self, gpu: PciAddress, target: CardMode) -> Seen:
        """The card now, and what is in the way of a reset; `target` is the mode that is wished for.

        One that does not answer is in its own way, and taken not to be in that mode.
        """
        try:
            use = self.modes.use_of(gpu)
        except GpuError as error:
            other = _mode(mig=target is not CardMode.MIG)
            return Seen(other, None, tuple(self._holding(gpu)) or (f"a fault: {error}",))
        self.minors[gpu] = use.minor
        return Seen(_mode(mig=use.mig_enabled), _mode(mig=use.mig_pending), tuple(self._obstacles(gpu, use)))

    def switch(self, gpu: PciAddress, target: CardMode) -> ModeAnswer:
        """Bring the card into that mode, by a reset if it asks for one. In use: not before others leave it.

        GpuError where the reset failed, or came to nothing. The wish for the mode then stays with the card until it is
        taken back.
        """
        boundary(gpu, "wish for the other mode")
        answer = self.modes.wish_mig(gpu, enabled=target is CardMode.MIG)
        if answer is ModeAnswer.IN_USE:
            return answer
        if answer is ModeAnswer.RESET_REQUIRED:
            boundary(gpu, "reset")
            with self.modes.let_go():
                self.resets.reset(gpu)
        boundary(gpu, "look after reset")
        if self.look(gpu, target).mode is not target:
            raise GpuError(f"GPU {gpu}: it was reset and is not in mode {target}: dmesg, lines with NVRM, says more")
        _log.info("card changed its mode", gpu=gpu, mode=target, answer=answer)
        return answer

    def take_back(self, gpu: PciAddress, seen: Seen) -> None:
        """Wish for nothing but the mode that the card is in."""
        if seen.pending not in (None, seen.mode):
            boundary(gpu, "take the wish back")
            self.modes.wish_mig(gpu, enabled=seen.mode is CardMode.MIG)

    def _obstacles(self, gpu: PciAddress, use: CardUse) -> Iterator[str]:
        """Claims that are not unprepared yet, else the processes; and instances, which a reset would take away."""
        if holding := tuple(self._holding(gpu)):
            yield from holding
            return
        yield from holders(self.proc_root, use.minor, use.processes)
        if use.instances:
            yield f"{use.instances} GPU instances that no resource claim made (nvidia-smi mig -lgi lists them)"

    def _holding(self, gpu: PciAddress) -> Iterator[str]:
        """Devices that claims have; whose they are is nobody's business."""
        devices = [device for claim in self.prepared.read().claims.values() for device in claim.devices]
        held = [device for device in devices if device.gpu == gpu and not device.admin_access]
        if held:
            yield f"{len(held)} allocated devices that are not unprepared yet"


def _mode(*, mig: bool) -> CardMode:
    return CardMode.MIG if mig else CardMode.WHOLE
