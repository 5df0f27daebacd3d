"""NVML's MIG functions on cards and GPU instances: mode, profiles, placements, create, list, destroy, MIG devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dra.mig.profiles import MigProfile
from simulator.silicon import pointers, rules
from simulator.silicon.handles import GpuInstanceKey, MigDeviceKey, Session
from simulator.silicon.hardware import Gpu, NvmlReturn
from simulator.silicon.rules import Refused

_PROFILE_INFO_V2 = 0x02000098
_PROFILE_COUNT = 18  # NVML_GPU_INSTANCE_PROFILE_COUNT of nvml.h 13.5


def _mig_mode(session: Session, device: Any, current: Any, pending: Any) -> None:
    gpu = session.gpu(device)
    rules.mig_model(gpu)
    pointers.put(current, gpu.mig_current)
    pointers.put(pending, gpu.mig_pending)


def _set_mig_mode(session: Session, device: Any, mode: Any, activation_status: Any) -> None:
    wanted = pointers.number(mode)
    if wanted not in (0, 1):
        raise Refused(NvmlReturn.INVALID_ARGUMENT)
    address = session.gpu(device).pci_address
    status = session.state.change_gpu(address, lambda gpu: rules.set_mig_mode(gpu, enabled=bool(wanted)))
    pointers.put(activation_status, status)


def _profile_info(session: Session, device: Any, index: Any, info: Any) -> None:
    gpu = _telling(session, device)
    _put_profile(gpu, _profile_at(gpu, pointers.number(index)), info)


def _profile_info_v(session: Session, device: Any, index: Any, info: Any) -> None:
    gpu = _telling(session, device)
    profile = _profile_at(gpu, pointers.number(index))
    _put_profile_v2(gpu, profile, info)


def _profile_info_by_id_v(session: Session, device: Any, profile_id: Any, info: Any) -> None:
    gpu = _telling(session, device)
    _put_profile_v2(gpu, rules.profile_by_id(gpu, pointers.number(profile_id)), info)


def _telling(session: Session, device: Any) -> Gpu:
    """The card; NOT_SUPPORTED where the driver asks for MIG mode first (nvml.h before R470)."""
    gpu = session.gpu(device)
    if gpu.profiles_need_mig_mode and not gpu.mig_current:
        raise Refused(NvmlReturn.NOT_SUPPORTED)
    return gpu


def _profile_at(gpu: Gpu, index: int) -> MigProfile:
    """The profile of an index: beyond the enum INVALID_ARGUMENT, not of this card NOT_SUPPORTED."""
    if not 0 <= index < _PROFILE_COUNT:
        raise Refused(NvmlReturn.INVALID_ARGUMENT)
    return rules.profile_by_index(gpu, index)


def _put_profile_v2(gpu: Gpu, profile: MigProfile, info: Any) -> None:
    pointers.check_version(info, _PROFILE_INFO_V2)
    _put_profile(gpu, profile, info)
    pointers.put_fields(info, name=f"MIG {profile.name}".encode())


def _put_profile(gpu: Gpu, profile: MigProfile, info: Any) -> None:
    engines = rules.profile_engines(profile)
    pointers.put_fields(
        info,
        id=profile.id,
        isP2pSupported=0,
        sliceCount=profile.compute_slices,
        instanceCount=profile.max_instances,
        multiprocessorCount=profile.multiprocessors or 0,
        copyEngineCount=engines.copy,
        decoderCount=engines.decoder,
        encoderCount=engines.encoder,
        jpegCount=engines.jpeg,
        ofaCount=engines.ofa,
        memorySizeMB=rules.profile_memory_mib(gpu, profile),
    )


def _remaining_capacity(session: Session, device: Any, profile_id: Any, count: Any) -> None:
    gpu = session.gpu(device)
    if not gpu.mig_current:
        raise Refused(NvmlReturn.NOT_SUPPORTED)
    pointers.put(count, rules.remaining_capacity(gpu, rules.profile_by_id(gpu, pointers.number(profile_id))))


def _possible_placements(session: Session, device: Any, profile_id: Any, placements: Any, count: Any) -> None:
    """Works with MIG mode off but for old drivers, and lists every legal placement, taken or not (nvml.h)."""
    profile = rules.profile_by_id(_telling(session, device), pointers.number(profile_id))
    pointers.put(count, len(profile.starts))
    if placements is None:
        return
    for i, start in enumerate(profile.starts):
        slot = pointers.target(placements)[i]
        slot.start, slot.size = start, profile.memory_slices


def _create(session: Session, device: Any, profile_id: Any, instance: Any) -> None:
    _make(session, device, (pointers.number(profile_id), None), instance)


def _create_with_placement(session: Session, device: Any, profile_id: Any, placement: Any, instance: Any) -> None:
    where = pointers.target(placement)
    _make(session, device, (pointers.number(profile_id), (where.start, where.size)), instance)


def _make(session: Session, device: Any, wish: tuple[int, tuple[int, int] | None], instance: Any) -> None:
    address = session.gpu(device).pci_address
    made = session.state.change_gpu(address, lambda gpu: rules.create_gpu_instance(gpu, *wish))
    pointers.put_handle(instance, session.handle(GpuInstanceKey(address, made.created)))


def _instances(session: Session, device: Any, profile_id: Any, instances: Any, count: Any) -> None:
    """All GPU instances of one profile. The caller's array holds as many as the profile's instanceCount (nvml.h)."""
    gpu = _with_mig(session, device)
    profile = rules.profile_by_id(gpu, pointers.number(profile_id))
    keys = [GpuInstanceKey(gpu.pci_address, i.created) for i in gpu.gpu_instances if i.profile_id == profile.id]
    pointers.put(count, len(keys))
    if keys:
        pointers.put_handles(instances, [session.handle(key) for key in keys])


def _instance_by_id(session: Session, device: Any, instance_id: Any, instance: Any) -> None:
    gpu = _with_mig(session, device)
    wanted = pointers.number(instance_id)
    for found in gpu.gpu_instances:
        if found.id == wanted:
            pointers.put_handle(instance, session.handle(GpuInstanceKey(gpu.pci_address, found.created)))
            return
    raise Refused(NvmlReturn.NOT_FOUND)


def _with_mig(session: Session, device: Any) -> Gpu:
    """The card; NOT_SUPPORTED while its MIG mode is off."""
    gpu = session.gpu(device)
    if not gpu.mig_current:
        raise Refused(NvmlReturn.NOT_SUPPORTED)
    return gpu


def _instance_info(session: Session, instance: Any, info: Any) -> None:
    gpu, found = session.gpu_instance(instance)
    struct = pointers.target(info)
    pointers.put_handle_field(info, "device", session.gpu_handle(gpu.pci_address))
    struct.id, struct.profileId = found.id, found.profile_id
    struct.placement.start, struct.placement.size = found.start, found.size


def _destroy(session: Session, instance: Any) -> None:
    key = session.gpu_instance_key(instance)
    session.state.change_gpu(key.pci_address, lambda gpu: (rules.destroy_gpu_instance(gpu, key.created), None))


def _max_mig_device_count(session: Session, device: Any, count: Any) -> None:
    gpu = session.gpu(device)
    pointers.put(count, rules.mig_model(gpu).compute_slices if gpu.mig_current else 0)


def _mig_device_by_index(session: Session, device: Any, index: Any, mig_device: Any) -> None:
    """MIG devices sit in slots by their first slice, so that there are holes, which are NOT_FOUND."""
    gpu = session.gpu(device)
    wanted = pointers.number(index)
    for gi in gpu.gpu_instances:
        for ci in gi.compute_instances:
            if gi.start + ci.start == wanted:
                pointers.put_handle(mig_device, session.handle(MigDeviceKey(gpu.pci_address, gi.created, ci.created)))
                return
    raise Refused(NvmlReturn.NOT_FOUND)


def _parent(session: Session, mig_device: Any, device: Any) -> None:
    key = session.mig_device_key(mig_device)
    pointers.put_handle(device, session.gpu_handle(key.pci_address))


def _is_mig_device(session: Session, device: Any, answer: Any) -> None:
    pointers.put(answer, isinstance(session.key(device), MigDeviceKey))


def _gpu_instance_id(session: Session, mig_device: Any, instance_id: Any) -> None:
    pointers.put(instance_id, session.compute_instance(session.mig_device_key(mig_device))[1].id)


def _compute_instance_id(session: Session, mig_device: Any, instance_id: Any) -> None:
    pointers.put(instance_id, session.compute_instance(session.mig_device_key(mig_device))[2].id)


FUNCTIONS: dict[str, Callable[..., None]] = {
    "nvmlDeviceGetMigMode": _mig_mode,
    "nvmlDeviceSetMigMode": _set_mig_mode,
    "nvmlDeviceGetGpuInstanceProfileInfo": _profile_info,
    "nvmlDeviceGetGpuInstanceProfileInfoV": _profile_info_v,
    "nvmlDeviceGetGpuInstanceProfileInfoByIdV": _profile_info_by_id_v,
    "nvmlDeviceGetGpuInstanceRemainingCapacity": _remaining_capacity,
    "nvmlDeviceGetGpuInstancePossiblePlacements_v2": _possible_placements,
    "nvmlDeviceCreateGpuInstance": _create,
    "nvmlDeviceCreateGpuInstanceWithPlacement": _create_with_placement,
    "nvmlDeviceGetGpuInstances": _instances,
    "nvmlDeviceGetGpuInstanceById": _instance_by_id,
    "nvmlGpuInstanceGetInfo": _instance_info,
    "nvmlGpuInstanceDestroy": _destroy,
    "nvmlDeviceGetMaxMigDeviceCount": _max_mig_device_count,
    "nvmlDeviceGetMigDeviceHandleByIndex": _mig_device_by_index,
    "nvmlDeviceGetDeviceHandleFromMigDeviceHandle": _parent,
    "nvmlDeviceIsMigDeviceHandle": _is_mig_device,
    "nvmlDeviceGetGpuInstanceId": _gpu_instance_id,
    "nvmlDeviceGetComputeInstanceId": _compute_instance_id,
}
