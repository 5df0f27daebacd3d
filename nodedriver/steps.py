"""The steps of prepare and unprepare as values: what is to hold on the node, in which order, and what undoes it.

Pure and deterministic: a claim as the checkpoint announces it, and the other claims on its cards, give the steps. Every
step may be repeated, and every undo counts "absent" as done, so a call that died in the middle is undone or redone from
its checkpoint entry alone. `hands` carries them out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nodedriver.cardmodes import CardMode
from nodedriver.facts import ComputeMode, MigPlacement, PciAddress, Vendor
from nodedriver.gpuconfig import Interval
from nodedriver.holding import PreparedClaim, PreparedDevice, mps_shares, sharers
from nodedriver.ports import MpsShare

type Others = Sequence[PreparedClaim]  # the other claims on the same cards


@dataclass(frozen=True, slots=True)
class EnterMode:
    """The card is in this mode."""

    gpu: PciAddress
    mode: CardMode


@dataclass(frozen=True, slots=True)
class SettleMode:
    """No claim needs the card's mode any more: it is left where nothing else needs it either. Never fails."""

    gpu: PciAddress


@dataclass(frozen=True, slots=True)
class GiveBack:
    """No virtual machine has the card any more: the vendor's driver has it, in persistence mode if it was before."""

    gpu: PciAddress
    persistence: bool


@dataclass(frozen=True, slots=True)
class MakeInstance:
    """The MIG instance of the claim's device of that index exists, and its UUID is known."""

    index: int
    gpu: PciAddress
    placement: MigPlacement


@dataclass(frozen=True, slots=True)
class RemoveInstance:
    """The MIG instance does not exist."""

    gpu: PciAddress
    placement: MigPlacement


@dataclass(frozen=True, slots=True)
class SetComputeMode:
    """The whole card has this compute mode."""

    gpu: PciAddress
    mode: ComputeMode


@dataclass(frozen=True, slots=True)
class SetTimeSlice:
    """The whole card gives time slices of this length."""

    gpu: PciAddress
    interval: Interval


@dataclass(frozen=True, slots=True)
class RunDaemon:
    """An MPS daemon serves the claim's device of that index, with the limits of all who share it."""

    index: int
    shares: tuple[MpsShare, ...]


@dataclass(frozen=True, slots=True)
class EndClients:
    """The MPS daemon of that UUID has no client of the claim any more."""

    uuid: str


@dataclass(frozen=True, slots=True)
class StopDaemon:
    """No MPS daemon serves the device of this UUID."""

    uuid: str


@dataclass(frozen=True, slots=True)
class WriteSpec:
    """The claim's CDI file says what its containers get."""


@dataclass(frozen=True, slots=True)
class RemoveSpec:
    """The claim has no CDI file."""


type Step = (
    EnterMode | SettleMode | GiveBack | MakeInstance | RemoveInstance | SetComputeMode | SetTimeSlice
    | RunDaemon | EndClients | StopDaemon | WriteSpec | RemoveSpec
)  # fmt: skip


def steps_of(claim: PreparedClaim, others: Others) -> tuple[Step, ...]:
    """What prepares the claim, in order: silicon first, then what runs on it, the CDI file once all of it stands."""
    devices = list(_acted_on(claim))
    return (
        *(step for index, device in devices for step in _silicon(index, device)),
        *(step for _, device in devices for step in _card_settings(device)),
        *(_daemon(index, device, (claim, *others)) for index, device in devices if device.mps),
        WriteSpec(),
    )


def undo_of(claim: PreparedClaim, others: Others) -> tuple[Step, ...]:
    """What takes back all of it that no other claim needs, in the opposite order; the CDI file goes last."""
    devices = list(_acted_on(claim))
    return (
        *(step for index, device in devices for step in _undo_daemon(index, device, others)),
        *(step for _, device in devices for step in _undo_settings(device, others)),
        *(step for _, device in devices for step in _undo_instance(device, others)),
        *(GiveBack(device.gpu, device.persistence) for _, device in devices if device.bound),
        *(SettleMode(gpu) for gpu in sorted(_left_by(claim, others))),
        RemoveSpec(),
    )


def _silicon(index: int, device: PreparedDevice) -> Iterator[Step]:
    yield EnterMode(device.gpu, device.mode)
    if device.placement:
        yield MakeInstance(index, device.gpu, device.placement)


def _card_settings(device: PreparedDevice) -> Iterator[Step]:
    if device.exclusive_process:
        yield SetComputeMode(device.gpu, ComputeMode.EXCLUSIVE_PROCESS)
    if device.interval:
        yield SetTimeSlice(device.gpu, device.interval)


def _daemon(index: int, device: PreparedDevice, claims: Others) -> RunDaemon:
    return RunDaemon(index, tuple(mps_shares(device, claims)))


def _undo_daemon(index: int, device: PreparedDevice, others: Others) -> Iterator[Step]:
    if device.mps is None or not device.uuid:
        return
    left = tuple(mps_shares(device, others))
    if not left:
        yield StopDaemon(device.uuid)
        return
    yield EndClients(device.uuid)
    yield RunDaemon(index, left)


def _undo_settings(device: PreparedDevice, others: Others) -> Iterator[Step]:
    beside = sharers(device, others)
    if device.interval and not any(each.interval for each in beside):
        yield SetTimeSlice(device.gpu, Interval.DEFAULT)
    if device.exclusive_process and not any(each.exclusive_process for each in beside):
        yield SetComputeMode(device.gpu, ComputeMode.DEFAULT)


def _undo_instance(device: PreparedDevice, others: Others) -> Iterator[Step]:
    if device.placement and device.made_instance and not sharers(device, others):
        yield RemoveInstance(device.gpu, device.placement)


def _left_by(claim: PreparedClaim, others: Others) -> set[PciAddress]:
    """The cards on which no other claim holds anything."""
    held = {device.gpu for other in others for _, device in _acted_on(other)}
    return {device.gpu for _, device in _acted_on(claim)} - held


def _acted_on(claim: PreparedClaim) -> Iterator[tuple[int, PreparedDevice]]:
    """The devices with their indexes for which anything is done to the card.

    Admin access looks only, and a card of AMD's or Intel's is served as it is: the CDI file is all that they get.
    """
    for index, device in enumerate(claim.devices):
        if not device.admin_access and device.vendor is Vendor.NVIDIA:
            yield index, device
