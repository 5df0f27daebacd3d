"""The checkpoint: which resource claims are prepared or half prepared, with all that undoing needs. Versioned JSON.

Reads and writes one file, whole; no lock, no hardware, no rule about who may hold what (`prepared`). A field that this
version does not know is ignored; content that can't be read is set aside under a new name and never overwritten.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from fractions import Fraction
from pathlib import Path

import msgspec

from dra.names import ClaimRef, ClaimUID
from nodedriver.cardmodes import CardMode
from nodedriver.facts import DeviceType, MigPlacement, PciAddress
from nodedriver.files import write_atomically
from nodedriver.gpuconfig import Interval, MpsLimits

VERSION = 1  # raised when an older driver must not read the file


class CheckpointError(Exception):
    """The file's content is no checkpoint of a version that we know. The text names the file and the reason."""


class ClaimState(StrEnum):
    """Started: hardware may have been touched. Completed: every step was done and the devices were given out."""

    STARTED = "started"
    COMPLETED = "completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedDevice:
    """One allocated device, or one share of it, and what was done to the hardware for it.

    `share` in percent; a time-sliced device is given in `slots` out of `slot_count` instead. `made_instance`: the MIG
    instance did not exist before our claims. `uuid` is the GPU's or the MIG device's, "" until the instance exists; it
    names the control daemon. `exclusive_process`, `interval`: what we set on the card.
    """

    device_request: str
    pool: str
    device: str
    type: DeviceType = DeviceType.PHYSICAL
    share_id: str | None = None
    share: int = 100
    slots: int = 0
    slot_count: int = 0
    admin_access: bool = False
    gpu: PciAddress
    placement: MigPlacement | None = None
    made_instance: bool = False
    uuid: str = ""
    mps: MpsLimits | None = None
    exclusive_process: bool = False
    interval: Interval | None = None
    cdi_device_id: str = ""

    @property
    def place(self) -> tuple[PciAddress, MigPlacement | None, bool]:
        """What silicon this is, and whether its time is shared: devices of one place are parts of the same thing."""
        return self.gpu, self.placement, self.slot_count > 0

    @property
    def mode(self) -> CardMode:
        """The mode that its card must be in."""
        return CardMode.MIG if self.placement else CardMode.WHOLE

    @property
    def part(self) -> str:
        """How much of the place it takes, in words."""
        return f"{self.slots} of {self.slot_count} slots" if self.slot_count else f"{self.share} %"

    @property
    def percent(self) -> Fraction:
        """How much of the place it takes."""
        return Fraction(self.slots * 100, self.slot_count) if self.slot_count else Fraction(self.share)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedClaim:
    """One resource claim. `prepared_at` is the RFC 3339 time of completion."""

    namespace: str
    name: str
    uid: ClaimUID
    state: ClaimState
    devices: tuple[PreparedDevice, ...]
    prepared_at: str | None = None

    @property
    def ref(self) -> ClaimRef:
        return ClaimRef(self.namespace, self.name, self.uid)

    @property
    def gpus(self) -> frozenset[PciAddress]:
        """The cards that this claim touches."""
        return frozenset(device.gpu for device in self.devices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """All resource claims by uid. `unclean` says per card why it takes no new claims after an unreadable checkpoint."""

    version: int = VERSION
    boot_id: str
    claims: dict[ClaimUID, PreparedClaim] = field(default_factory=dict)
    unclean: dict[PciAddress, str] = field(default_factory=dict)

    def with_claim(self, claim: PreparedClaim) -> Checkpoint:
        return replace(self, claims={**self.claims, claim.uid: claim})

    def without_claim(self, uid: ClaimUID) -> Checkpoint:
        return replace(self, claims={key: claim for key, claim in self.claims.items() if key != uid})


_DECODER = msgspec.json.Decoder(Checkpoint)


def read_checkpoint(path: Path, boot_id: str) -> Checkpoint:
    """The file's content as it counts under this boot; a missing file is an empty checkpoint. CheckpointError else."""
    try:
        checkpoint = _DECODER.decode(path.read_bytes())
    except FileNotFoundError:
        return Checkpoint(boot_id=boot_id)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path} is not a checkpoint: {error}") from error
    if checkpoint.version != VERSION:
        raise CheckpointError(f"{path} has version {checkpoint.version}, and this driver reads version {VERSION}")
    return checkpoint if checkpoint.boot_id == boot_id else _after_reboot(checkpoint, boot_id)


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Replace the file, durably."""
    write_atomically(path, msgspec.json.format(msgspec.json.encode(checkpoint), indent=1) + b"\n")


def keep_aside(path: Path) -> Path:
    """Give the unreadable file a second, new name, so that replacing the first one loses nothing."""
    aside = path.with_name(f"{path.name}.unreadable-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}")
    os.link(path, aside)
    return aside


def _after_reboot(checkpoint: Checkpoint, boot_id: str) -> Checkpoint:
    """A reboot ends MIG instances, compute modes, daemons and CDI files: every claim is to be prepared anew.

    What exists now is not ours, so nothing is marked as made by us.
    """
    claims = {
        uid: replace(
            claim,
            state=ClaimState.STARTED,
            devices=tuple(
                replace(d, made_instance=False, exclusive_process=False, interval=None) for d in claim.devices
            ),
        )
        for uid, claim in checkpoint.claims.items()
    }
    return Checkpoint(boot_id=boot_id, claims=claims)
