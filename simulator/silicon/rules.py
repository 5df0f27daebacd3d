"""What MIG hardware allows: placements, engines, order of destruction and mode changes, with NVML's answers.

Pure: a card and a wish give a new card, or `Refused` with the code of nvmlReturn_t. Nothing here knows files, ctypes
or processes other than as values. Facts: MIG User Guide r620 and the table in `dra.mig.profiles`.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace

from dra.mig.profiles import Engines, MigModel, MigProfile, ModeChange, model_of_product
from simulator.silicon.hardware import ComputeInstance, ComputeMode, Gpu, GpuInstance, NvmlReturn


class Refused(Exception):  # noqa: N818 - an answer of the hardware, not an error of this program
    """The hardware said no. `code` is what NVML returns."""

    def __init__(self, code: int) -> None:
        super().__init__(f"NVML return code {code}")
        self.code = code


@dataclass(frozen=True, slots=True)
class ComputeProfile:
    """A compute instance profile inside one GPU instance profile; id and NVML index are equal (nvidia-smi -lcip)."""

    id: int
    slices: int
    starts: tuple[int, ...]
    multiprocessors: int


# Compute slices of a CI -> its profile id; and where it may start inside GPU instances of so many compute slices
# (MIG User Guide, "Compute Instance Profiles").
_COMPUTE_IDS = {1: 0, 2: 1, 3: 2, 4: 3, 7: 4}
_COMPUTE_STARTS: dict[int, dict[int, tuple[int, ...]]] = {
    1: {1: (0,)},
    2: {1: (0, 1), 2: (0,)},
    3: {1: (0, 1, 2), 2: (0,), 3: (0,)},
    4: {1: (0, 1, 2, 3), 2: (0, 2), 4: (0,)},
    7: {1: (0, 1, 2, 3, 4, 5, 6), 2: (0, 2, 4), 3: (0, 4), 4: (0,), 7: (0,)},
}


def mig_model(gpu: Gpu) -> MigModel:
    """The MIG table of this card; NOT_SUPPORTED for a card without MIG."""
    model = model_of_product(gpu.product)
    if model is None:
        raise Refused(NvmlReturn.NOT_SUPPORTED)
    return model


def profile_by_index(gpu: Gpu, index: int) -> MigProfile:
    """The GPU instance profile of NVML's profile index; NOT_SUPPORTED when this card lacks it."""
    for profile in mig_model(gpu).profiles:
        if profile.index == index:
            return profile
    raise Refused(NvmlReturn.NOT_SUPPORTED)


def profile_by_id(gpu: Gpu, profile_id: int) -> MigProfile:
    """The GPU instance profile of that id; INVALID_ARGUMENT when this card lacks it."""
    for profile in mig_model(gpu).profiles:
        if profile.id == profile_id:
            return profile
    raise Refused(NvmlReturn.INVALID_ARGUMENT)


def profile_memory_mib(gpu: Gpu, profile: MigProfile) -> int:
    """Memory of the profile; where the table knows none, its share of the card by memory slices."""
    if profile.memory_mib is not None:
        return profile.memory_mib
    return gpu.total_memory_mib * profile.memory_slices // mig_model(gpu).memory_slices


def profile_engines(profile: MigProfile) -> Engines:
    """Engines of the profile; zeros where the table knows none."""
    return profile.engines or Engines(0, 0, 0, 0, 0)


def compute_profiles(profile: MigProfile) -> tuple[ComputeProfile, ...]:
    """The compute instance profiles that fit into a GPU instance of this profile, smallest first."""
    return tuple(
        ComputeProfile(
            id=_COMPUTE_IDS[slices],
            slices=slices,
            starts=starts,
            multiprocessors=(profile.multiprocessors or 0) * slices // profile.compute_slices,
        )
        for slices, starts in _COMPUTE_STARTS[profile.compute_slices].items()
    )


def compute_profile(profile: MigProfile, profile_id: int) -> ComputeProfile:
    """The compute instance profile of that id; NOT_SUPPORTED when it does not fit into this GPU instance."""
    for candidate in compute_profiles(profile):
        if candidate.id == profile_id:
            return candidate
    raise Refused(NvmlReturn.NOT_SUPPORTED)


def free_starts(gpu: Gpu, profile: MigProfile) -> tuple[int, ...]:
    """Where an instance of this profile can be made now, in memory slices; empty when anything it needs is used up."""
    others = [profile_by_id(gpu, instance.profile_id) for instance in gpu.gpu_instances]
    if sum(other.id == profile.id for other in others) >= profile.max_instances:
        return ()
    if sum(other.compute_slices for other in others) + profile.compute_slices > mig_model(gpu).compute_slices:
        return ()
    if _engines_left(gpu, others, profile) < 1:
        return ()
    taken = {n for instance in gpu.gpu_instances for n in range(instance.start, instance.start + instance.size)}
    return tuple(s for s in profile.starts if taken.isdisjoint(range(s, s + profile.memory_slices)))


def remaining_capacity(gpu: Gpu, profile: MigProfile) -> int:
    """How many more instances of this profile fit beside those that exist."""
    starts = free_starts(gpu, profile)
    if not starts:
        return 0
    others = [profile_by_id(gpu, instance.profile_id) for instance in gpu.gpu_instances]
    slices_left = mig_model(gpu).compute_slices - sum(other.compute_slices for other in others)
    return min(
        len(starts),
        profile.max_instances - sum(other.id == profile.id for other in others),
        slices_left // profile.compute_slices,
        _engines_left(gpu, others, profile),
    )


def _engines_left(gpu: Gpu, others: list[MigProfile], profile: MigProfile) -> int:
    """How many instances of `profile` the engines beside `others` allow. A card has each profile's maximum of each."""
    known = [p.engines for p in mig_model(gpu).profiles if p.engines]
    counts = []
    for name in ("copy", "decoder", "encoder", "jpeg", "ofa"):
        wanted = getattr(profile_engines(profile), name)
        if wanted == 0:
            continue
        total = max(getattr(engines, name) for engines in known)
        used = sum(getattr(profile_engines(other), name) for other in others)
        counts.append((total - used) // wanted)
    return min(counts, default=profile.max_instances)


def create_gpu_instance(gpu: Gpu, profile_id: int, placement: tuple[int, int] | None) -> tuple[Gpu, GpuInstance]:
    """Make a GPU instance at `placement` (start, size), or at the first free start when that is None."""
    profile = _creatable(gpu, profile_id)
    if placement and (placement[1] != profile.memory_slices or placement[0] not in profile.starts):
        raise Refused(NvmlReturn.INVALID_ARGUMENT)
    starts = free_starts(gpu, profile)
    if placement:
        starts = tuple(start for start in starts if start == placement[0])
    if not starts:
        raise Refused(NvmlReturn.INSUFFICIENT_RESOURCES)
    instance = GpuInstance(
        id=_instance_id(mig_model(gpu), starts[0], profile.memory_slices),
        profile_id=profile.id,
        start=starts[0],
        size=profile.memory_slices,
        memory_mib=profile_memory_mib(gpu, profile),
        created=gpu.created,
    )
    return replace(gpu, created=gpu.created + 1, gpu_instances=(*gpu.gpu_instances, instance)), instance


def _creatable(gpu: Gpu, profile_id: int) -> MigProfile:
    if not gpu.mig_current:
        raise Refused(NvmlReturn.NOT_SUPPORTED)
    return profile_by_id(gpu, profile_id)


def _instance_id(model: MigModel, start: int, size: int) -> int:
    """The id that NVIDIA's driver gives: nodes of the halving tree, counted from the whole card (0) down to 1g."""
    return model.memory_slices // size - 1 + start // size


def destroy_gpu_instance(gpu: Gpu, created: int) -> Gpu:
    """Remove the GPU instance. IN_USE while it holds a compute instance, NOT_FOUND when it is gone already."""
    instance = _gpu_instance(gpu, created)
    if instance.compute_instances:
        raise Refused(NvmlReturn.IN_USE)
    return replace(gpu, gpu_instances=tuple(i for i in gpu.gpu_instances if i is not instance))


def _gpu_instance(gpu: Gpu, created: int) -> GpuInstance:
    for instance in gpu.gpu_instances:
        if instance.created == created:
            return instance
    raise Refused(NvmlReturn.NOT_FOUND)


def free_compute_starts(instance: GpuInstance, profile: ComputeProfile) -> tuple[int, ...]:
    """Where a compute instance of this profile can be made now, in compute slices of the GPU instance."""
    taken = {n for ci in instance.compute_instances for n in range(ci.start, ci.start + ci.size)}
    return tuple(s for s in profile.starts if taken.isdisjoint(range(s, s + profile.slices)))


def create_compute_instance(
    gpu: Gpu, gi_created: int, profile_id: int, placement: tuple[int, int] | None
) -> tuple[Gpu, ComputeInstance]:
    """Make a compute instance in a GPU instance, at `placement` or at the first free start. Its UUID is the MIG UUID.

    The UUID depends on the card and the two ids only, so that a repeated placement has a repeated UUID: what hardware
    does is not documented, and nothing may rely on UUIDs being new.
    """
    instance = _gpu_instance(gpu, gi_created)
    profile = compute_profile(profile_by_id(gpu, instance.profile_id), profile_id)
    starts = free_compute_starts(instance, profile)
    if placement and (placement[1] != profile.slices or placement[0] not in profile.starts):
        raise Refused(NvmlReturn.INVALID_ARGUMENT)
    if placement:
        starts = tuple(start for start in starts if start == placement[0])
    if not starts:
        raise Refused(NvmlReturn.INSUFFICIENT_RESOURCES)
    ci_id = min(set(range(8)) - {ci.id for ci in instance.compute_instances})
    made = ComputeInstance(
        id=ci_id,
        profile_id=profile.id,
        start=starts[0],
        size=profile.slices,
        uuid=f"MIG-{uuid.uuid5(uuid.UUID(gpu.uuid.removeprefix('GPU-')), f'{instance.id}/{ci_id}')}",
        created=gpu.created,
    )
    grown = replace(instance, compute_instances=(*instance.compute_instances, made))
    return replace(_with_instance(gpu, grown), created=gpu.created + 1), made


def destroy_compute_instance(gpu: Gpu, gi_created: int, ci_created: int) -> Gpu:
    """Remove the compute instance. IN_USE while a process runs on it, NOT_FOUND when it is gone already."""
    instance = _gpu_instance(gpu, gi_created)
    left = tuple(ci for ci in instance.compute_instances if ci.created != ci_created)
    gone = next((ci for ci in instance.compute_instances if ci.created == ci_created), None)
    if gone is None:
        raise Refused(NvmlReturn.NOT_FOUND)
    if any((p.gpu_instance, p.compute_instance) == (instance.id, gone.id) for p in gpu.processes):
        raise Refused(NvmlReturn.IN_USE)
    return _with_instance(gpu, replace(instance, compute_instances=left))


def _with_instance(gpu: Gpu, changed: GpuInstance) -> Gpu:
    instances = tuple(changed if i.created == changed.created else i for i in gpu.gpu_instances)
    return replace(gpu, gpu_instances=instances)


def set_mig_mode(gpu: Gpu, *, enabled: bool) -> tuple[Gpu, NvmlReturn]:
    """Ask for MIG mode; the second value is NVML's activationStatus, which is not an error of the call.

    Hopper and newer switch at once when idle. Ampere, and a card that `resets_to_switch`, keeps the wish pending until
    a reset: RESET_REQUIRED, or IN_USE while a process holds the card. IN_USE is *raised* while GPU instances exist.
    """
    model = mig_model(gpu)
    if gpu.mig_current == enabled:
        return replace(gpu, mig_pending=enabled), NvmlReturn.SUCCESS
    if gpu.gpu_instances:
        raise Refused(NvmlReturn.IN_USE)
    if gpu.processes:
        return replace(gpu, mig_pending=enabled), NvmlReturn.IN_USE
    if model.mode_change is ModeChange.GPU_RESET or gpu.resets_to_switch:
        return replace(gpu, mig_pending=enabled), NvmlReturn.RESET_REQUIRED
    return replace(gpu, mig_current=enabled, mig_pending=enabled, renewed=gpu.renewed + 1), NvmlReturn.SUCCESS


def reset(gpu: Gpu) -> Gpu:
    """A GPU reset: instances are gone, the pending MIG mode becomes current. IN_USE while a process holds the card."""
    if gpu.processes:
        raise Refused(NvmlReturn.IN_USE)
    return replace(
        gpu,
        gpu_instances=(),
        mig_current=gpu.mig_pending,
        timeslice=0,
        compute_mode=ComputeMode.DEFAULT,
        recovery_action=0,
        renewed=gpu.renewed + 1,
    )


def set_compute_mode(gpu: Gpu, mode: int) -> Gpu:
    """Set the compute mode; INVALID_ARGUMENT for a value that NVML no longer has."""
    if mode not in set(ComputeMode):
        raise Refused(NvmlReturn.INVALID_ARGUMENT)
    return replace(gpu, compute_mode=ComputeMode(mode))
