"""Who holds what of the cards: the entries of the checkpoint as values, and the one rule about them. Pure.

The rule: shares of one piece of silicon never exceed 100 %, and pieces that overlap are never held together. The
scheduler keeps it too; here it guards against a stale allocation.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from math import ceil

from dra.names import ClaimRef, ClaimUID
from nodedriver.cardmodes import CardMode
from nodedriver.facts import DeviceType, MigPlacement, PciAddress, Vendor
from nodedriver.gpuconfig import Interval, MpsLimits
from nodedriver.ports import MpsShare
from nodedriver.vfioconfig import VfioConfig

VERSION = 1  # of the checkpoint; raised when an older driver must not read it
WHOLE = 100  # percent


class ClaimState(StrEnum):
    """Started: hardware may have been touched. Completed: every step was done and the devices were given out."""

    STARTED = "started"
    COMPLETED = "completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedDevice:
    """One allocated device, or one share of it, and what was done to the hardware for it.

    `request` is `main/sub` where `device_request` is `main`. `share` in percent; a time-sliced device is given in
    `slots` out of `slot_count` instead. `made_instance`: the MIG instance did not exist before our claims. `uuid` is
    the GPU's or the MIG device's, "" until the instance exists; it names the control daemon. `exclusive_process`,
    `interval`: what we set on the card. `vfio` of a card for a virtual machine; `bound`: no VFIO driver had it before;
    `persistence`: it was in persistence mode then.
    """

    device_request: str
    request: str = ""
    pool: str
    device: str
    type: DeviceType = DeviceType.PHYSICAL
    vendor: Vendor = Vendor.NVIDIA
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
    vfio: VfioConfig | None = None
    bound: bool = False
    persistence: bool = False
    cdi_device_id: str = ""

    @property
    def place(self) -> tuple[PciAddress, MigPlacement | None, bool, bool]:
        """What silicon this is, and as what it is given: devices of one place are parts of the same thing."""
        return self.gpu, self.placement, self.slot_count > 0, self.vfio is not None

    @property
    def mode(self) -> CardMode:
        """The mode that its card must be in."""
        if self.vfio:
            return CardMode.VFIO
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
    """One resource claim. `prepared_at` is the RFC 3339 time of completion; `pod_claim_name` is the entry of the pod's
    spec that a claim of a template was made for, else "".
    """

    namespace: str
    name: str
    uid: ClaimUID
    state: ClaimState
    devices: tuple[PreparedDevice, ...]
    prepared_at: str | None = None
    pod_claim_name: str = ""

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

    @property
    def passed_through(self) -> frozenset[PciAddress]:
        """The cards that claims have for virtual machines, bound by us."""
        return frozenset(device.gpu for claim in self.claims.values() for device in claim.devices if device.bound)

    def with_claim(self, claim: PreparedClaim) -> Checkpoint:
        return replace(self, claims={**self.claims, claim.uid: claim})

    def without_claim(self, uid: ClaimUID) -> Checkpoint:
        return replace(self, claims={key: claim for key, claim in self.claims.items() if key != uid})


def held_devices(checkpoint: Checkpoint) -> tuple[PreparedDevice, ...]:
    """Every device of every claim."""
    return tuple(device for claim in checkpoint.claims.values() for device in claim.devices)


def neighbours(checkpoint: Checkpoint, uid: ClaimUID, gpus: AbstractSet[PciAddress]) -> tuple[PreparedClaim, ...]:
    """The claims on these cards other than that one, in the order of their uids."""
    others = sorted(checkpoint.claims.values(), key=lambda other: other.uid)
    return tuple(other for other in others if other.uid != uid and other.gpus & gpus)


def sharers(device: PreparedDevice, claims: Iterable[PreparedClaim]) -> list[PreparedDevice]:
    """The devices of these claims that are shares of the same silicon."""
    return [theirs for claim in claims for theirs in _taking(claim.devices) if theirs.place == device.place]


def mps_shares(device: PreparedDevice, claims: Iterable[PreparedClaim]) -> list[MpsShare]:
    """The shares of the same silicon that MPS serves, with whose they are."""
    return [
        MpsShare(claim=claim.uid, name=theirs.cdi_device_id, limits=theirs.mps)
        for claim in claims
        for theirs in sharers(device, (claim,))
        if theirs.mps
    ]


def limits_of(devices: Iterable[PreparedDevice]) -> list[MpsLimits]:
    """What MPS is to hold these devices to."""
    return [device.mps for device in devices if device.mps]


def why_not(checkpoint: Checkpoint, claim: PreparedClaim) -> str:
    """Why these devices can't be given to this claim now; "" when they can. Admin access takes nothing from anybody."""
    for device in _taking(claim.devices):
        if reason := checkpoint.unclean.get(device.gpu):
            return f"device {device.device} can't be prepared: {reason}"
    return conflict(checkpoint, claim)


def conflict(checkpoint: Checkpoint, claim: PreparedClaim) -> str:
    """What others hold of it; "" where nothing."""
    for device in _taking(claim.devices):
        if reason := _held(device, claim, neighbours(checkpoint, claim.uid, claim.gpus)):
            return f"device {device.device} ({device.part}) can't be prepared: {reason}"
    return ""


def _held(device: PreparedDevice, claim: PreparedClaim, others: Iterable[PreparedClaim]) -> str:
    taken = sum((own.percent for own in sharers(device, (claim,))), Fraction())
    parts = []
    for other in others:
        for theirs in _taking(other.devices):
            if theirs.place == device.place:
                taken += theirs.percent
                parts.append(theirs.part)
            elif theirs.gpu == device.gpu and _overlap(theirs.placement, device.placement):
                return f"it overlaps {theirs.device}, which another resource claim holds until it is unprepared"
    if taken <= WHOLE:
        return ""
    others_hold = f"what other claims hold ({', '.join(parts)})" if parts else "the other shares of this claim"
    return f"with {others_hold} its shares would be {ceil(taken)} % of it"


def _overlap(one: MigPlacement | None, other: MigPlacement | None) -> bool:
    """Whether two pieces of one card share silicon; None is the whole card."""
    if one is None or other is None:
        return True
    return one.start < other.start + other.size and other.start < one.start + one.size


def _taking(devices: Iterable[PreparedDevice]) -> tuple[PreparedDevice, ...]:
    return tuple(device for device in devices if not device.admin_access)
