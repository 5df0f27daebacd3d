"""NVML's functions on compute instances, and what a MIG device consists of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dra.mig.profiles import MigProfile
from simulator.silicon import pointers, rules
from simulator.silicon.handles import ComputeInstanceKey, GpuInstanceKey, GpuKey, MigDeviceKey, Session
from simulator.silicon.hardware import NvmlReturn
from simulator.silicon.rules import ComputeProfile, Refused

_PROFILE_INFO_V2 = 0x02000088
_PROFILE_COUNT = 9  # NVML_COMPUTE_INSTANCE_PROFILE_COUNT


def _profile_info(session: Session, instance: Any, index: Any, engine_profile: Any, info: Any) -> None:
    profile, compute = _profiles(session, instance, index, engine_profile)
    _put_profile(profile, compute, info)


def _profile_info_v(session: Session, instance: Any, index: Any, engine_profile: Any, info: Any) -> None:
    profile, compute = _profiles(session, instance, index, engine_profile)
    pointers.check_version(info, _PROFILE_INFO_V2)
    _put_profile(profile, compute, info)
    whole = compute.slices == profile.compute_slices
    name = profile.name if whole else f"{compute.slices}c.{profile.name}"
    pointers.put_fields(info, name=f"MIG {name}".encode())


def _profiles(session: Session, instance: Any, index: Any, engine_profile: Any) -> tuple[MigProfile, ComputeProfile]:
    """The two profiles; INVALID_ARGUMENT beyond the enums, NOT_SUPPORTED when this GPU instance is too small."""
    if not 0 <= pointers.number(index) < _PROFILE_COUNT or pointers.number(engine_profile) != 0:
        raise Refused(NvmlReturn.INVALID_ARGUMENT)
    gpu, found = session.gpu_instance(instance)
    profile = rules.profile_by_id(gpu, found.profile_id)
    return profile, rules.compute_profile(profile, pointers.number(index))


def _put_profile(profile: MigProfile, compute: ComputeProfile, info: Any) -> None:
    engines = rules.profile_engines(profile)
    pointers.put_fields(
        info,
        id=compute.id,
        sliceCount=compute.slices,
        instanceCount=len(compute.starts),
        multiprocessorCount=compute.multiprocessors,
        sharedCopyEngineCount=engines.copy,
        sharedDecoderCount=engines.decoder,
        sharedEncoderCount=engines.encoder,
        sharedJpegCount=engines.jpeg,
        sharedOfaCount=engines.ofa,
    )


def _remaining_capacity(session: Session, instance: Any, profile_id: Any, count: Any) -> None:
    gpu, found = session.gpu_instance(instance)
    compute = rules.compute_profile(rules.profile_by_id(gpu, found.profile_id), pointers.number(profile_id))
    pointers.put(count, len(rules.free_compute_starts(found, compute)))


def _possible_placements(session: Session, instance: Any, profile_id: Any, placements: Any, count: Any) -> None:
    gpu, found = session.gpu_instance(instance)
    compute = rules.compute_profile(rules.profile_by_id(gpu, found.profile_id), pointers.number(profile_id))
    pointers.put(count, len(compute.starts))
    if placements is None:
        return
    for i, start in enumerate(compute.starts):
        slot = pointers.target(placements)[i]
        slot.start, slot.size = start, compute.slices


def _create(session: Session, instance: Any, profile_id: Any, made: Any) -> None:
    _make(session, instance, (pointers.number(profile_id), None), made)


def _create_with_placement(session: Session, instance: Any, profile_id: Any, placement: Any, made: Any) -> None:
    where = pointers.target(placement)
    _make(session, instance, (pointers.number(profile_id), (where.start, where.size)), made)


def _make(session: Session, instance: Any, wish: tuple[int, tuple[int, int] | None], made: Any) -> None:
    key = session.gpu_instance_key(instance)
    compute = session.state.change_gpu(
        key.pci_address, lambda gpu: rules.create_compute_instance(gpu, key.created, *wish)
    )
    pointers.put_handle(made, session.handle(ComputeInstanceKey(key.pci_address, key.created, compute.created)))


def _instances(session: Session, instance: Any, profile_id: Any, array: Any, count: Any) -> None:
    gpu, found = session.gpu_instance(instance)
    wanted = pointers.number(profile_id)
    keys = [
        ComputeInstanceKey(gpu.pci_address, found.created, ci.created)
        for ci in found.compute_instances
        if ci.profile_id == wanted
    ]
    pointers.put(count, len(keys))
    if keys:
        pointers.put_handles(array, [session.handle(key) for key in keys])


def _instance_by_id(session: Session, instance: Any, compute_id: Any, made: Any) -> None:
    gpu, found = session.gpu_instance(instance)
    wanted = pointers.number(compute_id)
    for ci in found.compute_instances:
        if ci.id == wanted:
            pointers.put_handle(made, session.handle(ComputeInstanceKey(gpu.pci_address, found.created, ci.created)))
            return
    raise Refused(NvmlReturn.NOT_FOUND)


def _instance_info(session: Session, instance: Any, info: Any) -> None:
    key = session.compute_instance_key(instance)
    gpu, gi, ci = session.compute_instance(key)
    device = MigDeviceKey(gpu.pci_address, gi.created, ci.created)
    struct = pointers.target(info)
    pointers.put_handle_field(info, "device", session.handle(device))
    pointers.put_handle_field(info, "gpuInstance", session.handle(GpuInstanceKey(gpu.pci_address, gi.created)))
    struct.id, struct.profileId = ci.id, ci.profile_id
    struct.placement.start, struct.placement.size = ci.start, ci.size


def _destroy(session: Session, instance: Any) -> None:
    key = session.compute_instance_key(instance)
    session.state.change_gpu(
        key.pci_address, lambda gpu: (rules.destroy_compute_instance(gpu, key.gi_created, key.created), None)
    )


def _attributes(session: Session, device: Any, attributes: Any) -> None:
    """Of MIG devices only (nvml.h): a whole card's handle is INVALID_ARGUMENT."""
    if isinstance(session.key(device), GpuKey):
        raise Refused(NvmlReturn.INVALID_ARGUMENT)
    gpu, gi, ci = session.compute_instance(session.mig_device_key(device))
    profile = rules.profile_by_id(gpu, gi.profile_id)
    engines = rules.profile_engines(profile)
    pointers.put_fields(
        attributes,
        multiprocessorCount=rules.compute_profile(profile, ci.profile_id).multiprocessors,
        sharedCopyEngineCount=engines.copy,
        sharedDecoderCount=engines.decoder,
        sharedEncoderCount=engines.encoder,
        sharedJpegCount=engines.jpeg,
        sharedOfaCount=engines.ofa,
        gpuInstanceSliceCount=profile.compute_slices,
        computeInstanceSliceCount=ci.size,
        memorySizeMB=gi.memory_mib,
    )


FUNCTIONS: dict[str, Callable[..., None]] = {
    "nvmlGpuInstanceGetComputeInstanceProfileInfo": _profile_info,
    "nvmlGpuInstanceGetComputeInstanceProfileInfoV": _profile_info_v,
    "nvmlGpuInstanceGetComputeInstanceRemainingCapacity": _remaining_capacity,
    "nvmlGpuInstanceGetComputeInstancePossiblePlacements": _possible_placements,
    "nvmlGpuInstanceCreateComputeInstance": _create,
    "nvmlGpuInstanceCreateComputeInstanceWithPlacement": _create_with_placement,
    "nvmlGpuInstanceGetComputeInstances": _instances,
    "nvmlGpuInstanceGetComputeInstanceById": _instance_by_id,
    "nvmlComputeInstanceGetInfo_v2": _instance_info,
    "nvmlComputeInstanceDestroy": _destroy,
    "nvmlDeviceGetAttributes_v2": _attributes,
}
