"""What will be done for a plan's devices, as the checkpoint announces it before anything is done.

Looks at the hardware, since undo must know what was there before, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from nodedriver.facts import ComputeMode, Vendor
from nodedriver.holding import PreparedClaim, PreparedDevice, sharers
from nodedriver.plan import PlannedDevice
from nodedriver.ports import GpuError, Gpus, Vfio
from nodedriver.steps import Others
from nodedriver.vfiodevice import vfio_uuid

type CdiName = Callable[[str, str], str]  # of a device and its device request


@dataclass(frozen=True, slots=True)
class Silicon:
    """What is looked at: the cards, and which of them virtual machines have."""

    gpus: Gpus
    vfio: Vfio


def entry_of(planned: PlannedDevice, cdi_name: CdiName) -> PreparedDevice:
    """The entry of one device, without what the hardware has to say."""
    return PreparedDevice(
        device_request=planned.device_request,
        request=planned.request,
        pool=planned.pool,
        device=planned.record.name,
        type=planned.record.type,
        vendor=planned.record.vendor,
        share_id=planned.share_id,
        share=planned.share,
        slots=planned.slots,
        slot_count=planned.record.slots,
        admin_access=planned.admin_access,
        gpu=planned.record.gpu,
        placement=planned.record.placement,
        mps=planned.mps,
        interval=planned.interval,
        vfio=planned.vfio,
        uuid=planned.record.uuid,
        cdi_device_id=cdi_name(planned.record.name, planned.device_request),
    )


def announce(device: PreparedDevice, others: Others, silicon: Silicon) -> PreparedDevice:
    """The whole entry. GpuError where its card does not answer."""
    if device.vendor is not Vendor.NVIDIA:
        return device
    if device.vfio:
        return _with_binding(device, silicon)
    if device.placement:
        return _with_instance(device, others, silicon.gpus)
    return _with_card(device, others, silicon.gpus)


def _with_binding(device: PreparedDevice, silicon: Silicon) -> PreparedDevice:
    """NVML does not see a card that a VFIO driver has, so its UUID is made of its address.

    A card that such a driver has already was given to it by an administrator, and keeps it.
    """
    bound = silicon.vfio.has(device.gpu)
    if device.admin_access and not bound:
        raise GpuError(
            f"{device.device} is not bound to VFIO at the moment, and admin access binds nothing: ask for admin access "
            "to a device that a resource claim holds"
        )
    named = replace(device, uuid=vfio_uuid(device.gpu))
    return named if bound else replace(named, bound=True, persistence=silicon.gpus.persistence(device.gpu))


def _with_instance(device: PreparedDevice, others: Others, gpus: Gpus) -> PreparedDevice:
    """An instance that exists, and that no claim of ours made, was made by an administrator and will stay."""
    if device.placement is None or device.admin_access:
        return _seen(device, gpus)
    existing = gpus.find_mig(device.gpu, device.placement)
    made = existing is None or any(sharer.made_instance for sharer in sharers(device, others))
    return replace(device, made_instance=made)


def _seen(device: PreparedDevice, gpus: Gpus) -> PreparedDevice:
    """Admin access shows what is there and makes nothing."""
    existing = gpus.find_mig(device.gpu, device.placement) if device.placement else None
    if existing is None or existing.uuid is None:
        raise GpuError(
            f"{device.device} does not exist at the moment, and admin access makes no MIG instance: "
            "ask for admin access to a device that a resource claim holds"
        )
    return replace(device, uuid=existing.uuid)


def _with_card(device: PreparedDevice, others: Others, gpus: Gpus) -> PreparedDevice:
    """A whole card under MPS runs in EXCLUSIVE_PROCESS, so that a client that avoids the daemon fails."""
    gpu = gpus.state_of(device.gpu)
    ours = any(sharer.exclusive_process for sharer in sharers(device, others))
    changes = device.mps is not None and (ours or gpu.compute_mode is not ComputeMode.EXCLUSIVE_PROCESS)
    return replace(device, uuid=gpu.uuid, exclusive_process=changes)


def is_there(claim: PreparedClaim, silicon: Silicon) -> bool:
    """Whether the MIG instances that were given out still exist, and VFIO drivers still have their cards: all later
    steps can be repeated, these not.
    """
    return all(_has_instance(device, silicon.gpus) and _is_bound(device, silicon.vfio) for device in claim.devices)


def _is_bound(device: PreparedDevice, vfio: Vfio) -> bool:
    return device.vfio is None or device.admin_access or vfio.has(device.gpu)


def _has_instance(device: PreparedDevice, gpus: Gpus) -> bool:
    if device.placement is None:
        return True
    existing = gpus.find_mig(device.gpu, device.placement)
    return existing is not None and existing.uuid == device.uuid
