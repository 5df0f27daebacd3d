"""Carries steps out on the hardware, one after another; the only place where a step becomes a deed.

Raises GpuError, MpsError and OSError, and leaves undoing to its caller, who holds the locks of the cards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import structlog

from dra.names import ClaimUID
from nodedriver.announcing import Silicon, announce, entry_of, is_there
from nodedriver.boundary import boundary
from nodedriver.cardmodes import CardMode
from nodedriver.claimspecs import ClaimSpecs
from nodedriver.facts import ComputeMode, GpuFacts, PciAddress
from nodedriver.holding import PreparedClaim, PreparedDevice, neighbours
from nodedriver.plan import PlannedDevice
from nodedriver.ports import GpuError, Gpus, ModeRefusedError, Mps, MpsDaemonStatus, MpsError, TimeSlices, Vfio
from nodedriver.prepared import PreparedClaims
from nodedriver.sharing import daemon_spec
from nodedriver.steps import (
    EndClients,
    EnterMode,
    GiveBack,
    MakeInstance,
    Others,
    RemoveInstance,
    RemoveSpec,
    RunDaemon,
    SetComputeMode,
    SetTimeSlice,
    SettleMode,
    Step,
    StopDaemon,
    WriteSpec,
    steps_of,
    undo_of,
)

type OnCard = EnterMode | SettleMode | GiveBack | RemoveInstance | SetComputeMode | SetTimeSlice
type Save = Callable[[PreparedClaim], None]

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What the steps are done with. `keep_mig_mode`: a card stays in MIG mode when it is empty."""

    gpus: Gpus
    mps: Mps
    time_slices: TimeSlices
    vfio: Vfio
    specs: ClaimSpecs
    keep_mig_mode: bool = False


@dataclass(slots=True)
class _Work:
    """A claim while its steps are done. `save` keeps what undo needs as soon as it is known."""

    claim: PreparedClaim
    save: Save
    daemons: dict[str, MpsDaemonStatus] = field(default_factory=dict)


class Hands:
    """Does what the steps say."""

    def __init__(self, tools: Tools) -> None:
        self._gpus = tools.gpus
        self._mps = tools.mps
        self._time_slices = tools.time_slices
        self._vfio = tools.vfio
        self._specs = tools.specs
        self._keep_mig_mode = tools.keep_mig_mode
        self._mode_refused: Callable[[PciAddress], None] = lambda _gpu: None

    def tell_of_refusals(self, mode_refused: Callable[[PciAddress], None]) -> None:
        """Call that from now on for each card that did not change its mode when it should."""
        self._mode_refused = mode_refused

    def entries(self, uid: ClaimUID, planned: Iterable[PlannedDevice]) -> tuple[PreparedDevice, ...]:
        """These devices as the checkpoint will know them, as far as that does not depend on the hardware."""
        name = partial(self._specs.device_id, uid)
        return tuple(entry_of(device, name) for device in planned)

    def announce(self, claim: PreparedClaim, others: Others) -> PreparedClaim:
        """With what will be done for its devices, for the checkpoint. Looks at the hardware and changes nothing."""
        silicon = Silicon(self._gpus, self._vfio)
        return replace(claim, devices=tuple(announce(device, others, silicon) for device in claim.devices))

    def act(self, claim: PreparedClaim, others: Others, save: Save) -> PreparedClaim:
        """Do all steps and return the claim as it is then. `save` gets what undo needs as soon as it is known."""
        work = _Work(claim, save)
        for step in steps_of(claim, others):
            self._do(step, work)
        return work.claim

    def undo(self, claim: PreparedClaim, others: Others) -> None:
        """Take back what was done for this claim and is not needed by others."""
        work = _Work(claim, lambda _: None)
        for step in undo_of(claim, others):
            self._do(step, work)

    def still_there(self, claim: PreparedClaim) -> bool:
        """Whether the MIG instances that were given out still exist, and virtual machines still have their cards."""
        return is_there(claim, Silicon(self._gpus, self._vfio))

    def all_there(self, claim: PreparedClaim) -> bool:
        """Whether all silicon that was given out is there: the instances, and a daemon for each device under MPS.

        A daemon that fell and is started again is there; one that the supervisor knows nothing of is not.
        """
        wanted = {device.uuid for device in claim.devices if device.mps and not device.admin_access}
        if not self.still_there(claim):
            return False
        return not wanted or wanted <= {report.device for report in self._mps.watch(0, 0).daemons}

    def look_for_unclean(self, claims: Iterable[PreparedClaim]) -> dict[PciAddress, str]:
        """The cards that are not as they would be with these claims alone, and what is on them beside."""
        devices = [device for claim in claims for device in claim.devices if not device.admin_access]
        daemons = self._daemons() - {device.uuid for device in devices}
        found = {
            gpu.pci_address: _unclean(gpu, daemons, [d for d in devices if d.gpu == gpu.pci_address])
            for gpu in self._gpus.facts()
        }
        return {address: what for address, what in found.items() if what}

    def _daemons(self) -> set[str]:
        """The devices that daemons serve. Without the supervisor none can be seen, and no claim has to wait for it."""
        try:
            return {daemon.device for daemon in self._mps.list()}
        except MpsError as error:
            _log.warning("MPS daemons not looked at", reason=str(error))
            return set()

    def _do(self, step: Step, work: _Work) -> None:
        boundary(work.claim.uid, type(step).__name__)
        match step:
            case MakeInstance():
                self._make_instance(step, work)
            case RunDaemon(index, shares):
                uuid = work.claim.devices[index].uuid
                work.daemons[uuid] = self._mps.ensure(daemon_spec(uuid, shares))
            case WriteSpec():
                self._specs.write(work.claim, work.daemons)
            case RemoveSpec():
                self._specs.remove(work.claim.uid)
            case EndClients(uuid):
                self._mps.end_clients(uuid, work.claim.uid)
            case StopDaemon(uuid):
                self._mps.remove(uuid)
            case _:
                self._do_on_card(step)

    def _do_on_card(self, step: OnCard) -> None:
        match step:
            case EnterMode(gpu, CardMode.VFIO):
                self._pass_through(gpu)
            case EnterMode(gpu, mode):
                self._enter(gpu, mode)
            case GiveBack(gpu, persistence):
                self._vfio.give_back(gpu, persistence=persistence)
            case SettleMode(gpu):
                self._settle(gpu)
            case RemoveInstance(gpu, placement):
                self._gpus.remove_mig(gpu, placement)
            case SetComputeMode(gpu, mode):
                self._gpus.set_compute_mode(gpu, mode)
            case SetTimeSlice(gpu, interval):
                self._time_slices.set(gpu, interval)

    def _pass_through(self, gpu: PciAddress) -> None:
        if not self._vfio.has(gpu):
            self._gpus.leave_mig(gpu)
            self._vfio.bind(gpu)

    def _make_instance(self, step: MakeInstance, work: _Work) -> None:
        uuid = self._gpus.create_mig(step.gpu, step.placement).uuid or ""
        devices = list(work.claim.devices)
        if devices[step.index].uuid != uuid:
            devices[step.index] = replace(devices[step.index], uuid=uuid)
            work.claim = replace(work.claim, devices=tuple(devices))
            work.save(work.claim)

    def _enter(self, gpu: PciAddress, mode: CardMode) -> None:
        try:
            (self._gpus.enter_mig if mode is CardMode.MIG else self._gpus.leave_mig)(gpu)
        except ModeRefusedError:
            self._mode_refused(gpu)
            raise

    def _settle(self, gpu: PciAddress) -> None:
        """Out of MIG mode, if the card is empty and policy says so; what still holds it keeps nobody from working."""
        if self._keep_mig_mode:
            return
        try:
            self._gpus.leave_mig_if_empty(gpu)
        except GpuError as error:
            _log.warning("MIG mode left on", gpu=gpu, reason=str(error))


def take_back(uid: ClaimUID, prepared: PreparedClaims, hands: Hands) -> None:
    """Undo all that the checkpoint's entry announces, and forget it. The locks of its cards are held."""
    checkpoint = prepared.read()
    claim = checkpoint.claims.get(uid)
    if claim is not None:
        hands.undo(claim, neighbours(checkpoint, uid, claim.gpus))
        prepared.drop(uid)


def _unclean(gpu: GpuFacts, daemons: set[str], known: Sequence[PreparedDevice]) -> str:
    served = {gpu.uuid, *(instance.uuid for instance in gpu.instances)} & daemons
    strange = [each for each in gpu.instances if each.placement not in {device.placement for device in known}]
    ours = any(device.exclusive_process for device in known)
    found = {
        f"{len(strange)} MIG instances": bool(strange),
        f"compute mode {gpu.compute_mode.name}": gpu.compute_mode is not ComputeMode.DEFAULT and not ours,
        f"{len(served)} MPS daemons": bool(served),
    }
    return ", ".join(what for what, is_so in found.items() if is_so)
