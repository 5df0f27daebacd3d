"""What will be done for a plan's devices, as the checkpoint announces it before anything is done.

Looks at the hardware, since undo must know what was there before, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from nodedriver.facts import ComputeMode, Vendor
from nodedriver.holding import PreparedClaim, PreparedDevice, sharers
from nodedriver.plan import PlannedDevice
from nodedriver.ports import GpuError, Gpus
from nodedriver.steps import Others

type CdiName = Callable[[str, str], str]  # of a device and its device request


def announce(planned: PlannedDevice, others: Others, gpus: Gpus, cdi_name: CdiName) -> PreparedDevice:
    """The entry of one device. GpuError where its card does not answer."""
    device = PreparedDevice(
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
        cdi_device_id=cdi_name(planned.record.name, planned.device_request),
    )
    if device.vendor is not Vendor.NVIDIA:
        return replace(device, uuid=planned.record.uuid)
    return _with_instance(device, others, gpus) if device.placement else _with_card(device, others, gpus)


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


def is_there(claim: PreparedClaim, gpus: Gpus) -> bool:
    """Whether the MIG instances that were given out still exist: all later steps can be repeated, this one not."""
    return all(_has_instance(device, gpus) for device in claim.devices)


def _has_instance(device: PreparedDevice, gpus: Gpus) -> bool:
    if device.placement is None:
        return True
    existing = gpus.find_mig(device.gpu, device.placement)
    return existing is not None and existing.uuid == device.uuid
