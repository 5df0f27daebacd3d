"""The steps of prepare that act on the node, each with its undo: MIG instance, compute mode, MPS daemon, CDI file.

Every step may be repeated and every undo counts "absent" as done, so a call that died in the middle is undone or redone
from its checkpoint entry alone. Callers hold the locks of the cards and pass the other claims on them (`neighbours`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from dra.names import ClaimUID
from nodedriver.checkpoint import PreparedClaim, PreparedDevice
from nodedriver.claimspecs import ClaimSpecs
from nodedriver.facts import ComputeMode, GpuFacts, PciAddress
from nodedriver.gpuconfig import MpsLimits
from nodedriver.plan import PlannedDevice
from nodedriver.ports import GpuError, Gpus, Mps, MpsDaemonStatus
from nodedriver.prepared import limits_of, sharers
from nodedriver.sharing import daemon_spec

type Others = Sequence[PreparedClaim]  # the other claims on the same cards


class Steps:
    """Carries claims out on the hardware. Raises GpuError, MpsError and OSError, and leaves undoing to its caller."""

    def __init__(self, gpus: Gpus, mps: Mps, specs: ClaimSpecs) -> None:
        self._gpus = gpus
        self._mps = mps
        self._specs = specs

    def announce(self, uid: ClaimUID, planned: Iterable[PlannedDevice], others: Others) -> tuple[PreparedDevice, ...]:
        """What will be done for these devices, for the checkpoint. Looks at the hardware and changes nothing."""
        return tuple(self._announced(uid, device, others) for device in planned)

    def act(self, claim: PreparedClaim, others: Others, save: Callable[[PreparedClaim], None]) -> PreparedClaim:
        """Do all steps and return the claim as it is then. `save` gets what undo needs as soon as it is known."""
        claim = self._make_instances(claim, save)
        for device in claim.devices:
            if device.placement is None and not device.admin_access:
                self._gpus.make_whole(device.gpu)
            if device.exclusive_process:
                self._gpus.set_compute_mode(device.gpu, ComputeMode.EXCLUSIVE_PROCESS)
        daemons = {
            d.uuid: self._ensure_daemon(d.uuid, limits_of(sharers(d, (claim, *others)))) for d in claim.devices if d.mps
        }
        self._specs.write(claim, daemons)
        return claim

    def undo(self, claim: PreparedClaim, others: Others) -> None:
        """Take back what was done for this claim and is not needed by others: MPS, MIG, compute mode, CDI file."""
        for device in _acted_on(claim):
            self._undo_daemon(device, others)
        for device in _acted_on(claim):
            if device.placement and device.made_instance and not sharers(device, others):
                self._gpus.remove_mig(device.gpu, device.placement)
        for device in _acted_on(claim):
            if device.exclusive_process and not any(d.exclusive_process for d in sharers(device, others)):
                self._gpus.set_compute_mode(device.gpu, ComputeMode.DEFAULT)
        self._specs.remove(claim.uid)

    def still_there(self, claim: PreparedClaim) -> bool:
        """Whether the MIG instances that were given out still exist: all later steps can be repeated, this one not."""
        return all(self._has_instance(device) for device in claim.devices)

    def look_for_unclean(self) -> dict[PciAddress, str]:
        """The cards that are not as they would be without claims, and what is on them."""
        daemons = {daemon.device for daemon in self._mps.list()}
        found = {gpu.pci_address: _unclean(gpu, daemons) for gpu in self._gpus.facts()}
        return {address: what for address, what in found.items() if what}

    def _announced(self, uid: ClaimUID, planned: PlannedDevice, others: Others) -> PreparedDevice:
        device = PreparedDevice(
            device_request=planned.device_request,
            pool=planned.pool,
            device=planned.record.name,
            share_id=planned.share_id,
            share=planned.share,
            admin_access=planned.admin_access,
            gpu=planned.record.gpu,
            placement=planned.record.placement,
            mps=planned.mps,
            cdi_device_id=self._specs.device_id(uid, planned.record.name, planned.device_request),
        )
        return self._with_instance(device, others) if device.placement else self._with_card(device, others)

    def _with_instance(self, device: PreparedDevice, others: Others) -> PreparedDevice:
        """An instance that exists, and that no claim of ours made, was made by an administrator and will stay."""
        if device.placement is None or device.admin_access:
            return self._seen(device)
        existing = self._gpus.find_mig(device.gpu, device.placement)
        made = existing is None or any(sharer.made_instance for sharer in sharers(device, others))
        return replace(device, made_instance=made)

    def _seen(self, device: PreparedDevice) -> PreparedDevice:
        """Admin access shows what is there and makes nothing."""
        existing = self._gpus.find_mig(device.gpu, device.placement) if device.placement else None
        if existing is None or existing.uuid is None:
            raise GpuError(
                f"{device.device} does not exist at the moment, and admin access makes no MIG instance: "
                "ask for admin access to a device that a resource claim holds"
            )
        return replace(device, uuid=existing.uuid)

    def _with_card(self, device: PreparedDevice, others: Others) -> PreparedDevice:
        """A whole card under MPS runs in EXCLUSIVE_PROCESS, so that a client that avoids the daemon fails."""
        gpu = next((gpu for gpu in self._gpus.facts() if gpu.pci_address == device.gpu), None)
        if gpu is None:
            raise GpuError(f"GPU {device.gpu} of {device.device} does not answer: see the node driver's log and dmesg")
        ours = any(sharer.exclusive_process for sharer in sharers(device, others))
        changes = device.mps is not None and (ours or gpu.compute_mode is not ComputeMode.EXCLUSIVE_PROCESS)
        return replace(device, uuid=gpu.uuid, exclusive_process=changes)

    def _make_instances(self, claim: PreparedClaim, save: Callable[[PreparedClaim], None]) -> PreparedClaim:
        for index, device in enumerate(claim.devices):
            if device.placement is None or device.admin_access:
                continue
            uuid = self._gpus.create_mig(device.gpu, device.placement).uuid or ""
            if uuid != device.uuid:
                devices = (*claim.devices[:index], replace(device, uuid=uuid), *claim.devices[index + 1 :])
                claim = replace(claim, devices=devices)
                save(claim)
        return claim

    def _has_instance(self, device: PreparedDevice) -> bool:
        if device.placement is None:
            return True
        existing = self._gpus.find_mig(device.gpu, device.placement)
        return existing is not None and existing.uuid == device.uuid

    def _ensure_daemon(self, uuid: str, limits: Sequence[MpsLimits]) -> MpsDaemonStatus:
        return self._mps.ensure(daemon_spec(uuid, limits))

    def _undo_daemon(self, device: PreparedDevice, others: Others) -> None:
        if device.mps is None or not device.uuid:
            return
        if left := limits_of(sharers(device, others)):
            self._ensure_daemon(device.uuid, left)
        else:
            self._mps.remove(device.uuid)


def _acted_on(claim: PreparedClaim) -> tuple[PreparedDevice, ...]:
    return tuple(device for device in claim.devices if not device.admin_access)


def _unclean(gpu: GpuFacts, daemons: set[str]) -> str:
    served = {gpu.uuid, *(instance.uuid for instance in gpu.instances)} & daemons
    found = {
        f"{len(gpu.instances)} MIG instances": bool(gpu.instances),
        f"compute mode {gpu.compute_mode.name}": gpu.compute_mode is not ComputeMode.DEFAULT,
        f"{len(served)} MPS daemons": bool(served),
    }
    return ", ".join(what for what, is_so in found.items() if is_so)
