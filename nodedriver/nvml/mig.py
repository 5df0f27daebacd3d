"""MIG on one card: its mode, the GPU instances that are there, making and removing one.

GPU instances are listed per profile and never by a walk of MIG device handles: that walk takes seconds under load and
shows no instance without a compute instance. Compute instances always fill their GPU instance.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pynvml

from nodedriver.cardmodes import CardMode, without_reset
from nodedriver.facts import GpuFacts, MigInstanceFacts, MigModeChange, MigPlacement, MigUUID
from nodedriver.nvml.calls import ABSENT, GONE, Card, Handle, NvmlError, NvmlModeRefusedError
from nodedriver.ports import CardUse, GpuError, ModeAnswer

_ANSWERS = {
    pynvml.NVML_SUCCESS: ModeAnswer.DONE,
    pynvml.NVML_ERROR_RESET_REQUIRED: ModeAnswer.RESET_REQUIRED,
    pynvml.NVML_ERROR_IN_USE: ModeAnswer.IN_USE,
}


def is_enabled(card: Card) -> bool:
    """Whether MIG mode is on; a card that has none says off."""
    mode = card.ask_unless(ABSENT, pynvml.nvmlDeviceGetMigMode, card.handle)
    return bool(mode) and mode[0] == pynvml.NVML_DEVICE_MIG_ENABLE


def has_mode(card: Card) -> bool:
    """Whether the card has a MIG mode. Old drivers tell of profiles and placements only while it is on."""
    return card.ask_unless(ABSENT, pynvml.nvmlDeviceGetMigMode, card.handle) is not None


def mode_change(card: Card) -> MigModeChange:
    """Ampere needs a reset, newer cards switch when idle, a vGPU guest can't (MIG User Guide, "Enable MIG Mode")."""
    virtualization = card.ask_unless(ABSENT, pynvml.nvmlDeviceGetVirtualizationMode, card.handle)
    if virtualization == pynvml.NVML_GPU_VIRTUALIZATION_MODE_VGPU:
        return MigModeChange.IMPOSSIBLE
    architecture = int(card.ask(pynvml.nvmlDeviceGetArchitecture, card.handle))
    return MigModeChange.WHEN_IDLE if architecture >= pynvml.NVML_DEVICE_ARCH_HOPPER else MigModeChange.NEEDS_RESET


def set_mode(card: Card, *, enabled: bool) -> None:
    """Switch MIG mode now. A wish that NVML only keeps pending is taken back and is an error, which names who holds
    the card.
    """
    wanted = "on" if enabled else "off"
    before, after = _mode(enabled=not enabled), _mode(enabled=enabled)
    if not without_reset(before, after, mode_change(card)):
        raise GpuError(
            f"GPU {card.address}: MIG mode can't be switched {wanted} without a reset. When nothing uses the card, "
            f"run nvidia-smi -i {card.address} -mig {int(enabled)} and nvidia-smi -i {card.address} --gpu-reset."
        )
    # The status is a value that the call returns, not an error that it raises.
    status = int(card.ask(pynvml.nvmlDeviceSetMigMode, card.handle, int(enabled)))
    if status != pynvml.NVML_SUCCESS:
        card.ask(pynvml.nvmlDeviceSetMigMode, card.handle, int(not enabled))
        refused = NvmlModeRefusedError if status in _ANSWERS else NvmlError
        raise refused(f"GPU {card.address}", f"nvmlDeviceSetMigMode({wanted})", status, _why(card, status))


def present(card: Card, known: GpuFacts) -> GpuFacts:
    """The card as it is known, with its MIG mode and instances of now."""
    here = tuple(instance_facts(card, instance) for instance in instances(card))
    return replace(known, mig_enabled=is_enabled(card), instances=here)


def use_of(card: Card) -> CardUse:
    """MIG mode now and after the next reset, and the processes that NVML names."""
    mode = card.ask_unless(ABSENT, pynvml.nvmlDeviceGetMigMode, card.handle) or (0, 0)
    current, pending = (each == pynvml.NVML_DEVICE_MIG_ENABLE for each in mode)
    count = sum(1 for _ in instances(card))
    minor = int(card.ask(pynvml.nvmlDeviceGetMinorNumber, card.handle))
    return CardUse(minor=minor, mig_enabled=current, mig_pending=pending, processes=_holders(card), instances=count)


def wish_mode(card: Card, *, enabled: bool) -> ModeAnswer:
    """Ask for MIG mode on or off, also where it then stays pending."""
    status = int(card.ask(pynvml.nvmlDeviceSetMigMode, card.handle, int(enabled)))
    if status not in _ANSWERS:
        raise NvmlError(f"GPU {card.address}", f"nvmlDeviceSetMigMode({int(enabled)})", status, _why(card, status))
    return _ANSWERS[status]


def enter(card: Card) -> None:
    """Be in MIG mode."""
    if not _stays(card, enabled=True):
        set_mode(card, enabled=True)


def leave_if_empty(card: Card) -> None:
    """Be out of MIG mode where no GPU instance is on the card and it can switch when idle; else it stays as it is."""
    if _stays(card, enabled=False) or not without_reset(CardMode.MIG, CardMode.WHOLE, mode_change(card)):
        return
    if next(instances(card), None) is None:
        set_mode(card, enabled=False)


def leave(card: Card) -> None:
    """Be out of MIG mode; GpuError where GPU instances are in its way."""
    if _stays(card, enabled=False):
        return
    count = sum(1 for _ in instances(card))
    if count:
        raise GpuError(
            f"GPU {card.address} can't be used whole: {count} GPU instances are on it. If nobody needs them, remove "
            f"them with nvidia-smi mig -i {card.address} -dci and nvidia-smi mig -i {card.address} -dgi."
        )
    set_mode(card, enabled=False)


def _stays(card: Card, *, enabled: bool) -> bool:
    """Whether the card is in that mode already. A wish for the other one that a driver left when it died in `set_mode`
    is taken back; with a card that needs a reset such a wish may be anybody's.
    """
    mode = card.ask_unless(ABSENT, pynvml.nvmlDeviceGetMigMode, card.handle) or (0, 0)
    current, pending = (each == pynvml.NVML_DEVICE_MIG_ENABLE for each in mode)
    if current is enabled and pending is not enabled and mode_change(card) is MigModeChange.WHEN_IDLE:
        card.ask(pynvml.nvmlDeviceSetMigMode, card.handle, int(enabled))
    return current is enabled


def _mode(*, enabled: bool) -> CardMode:
    return CardMode.MIG if enabled else CardMode.WHOLE


def profile_infos(card: Card) -> Iterator[Any]:
    """NVML's info on every profile that the card has, asked for once."""
    card.book.gpu = card.book.gpu or tuple(_profile_infos(card))
    return iter(card.book.gpu)


def _profile_infos(card: Card) -> Iterator[Any]:
    """The enum grows with NVML, so unknown numbers are no error."""
    for index in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
        info = card.ask_unless(ABSENT, pynvml.nvmlDeviceGetGpuInstanceProfileInfo, card.handle, index)
        if info is not None:
            yield info


def instances(card: Card) -> Iterator[Handle]:
    """Every GPU instance that exists."""
    if not is_enabled(card):
        return
    for profile in profile_infos(card):
        count = ctypes.c_uint(profile.instanceCount)
        found = (pynvml.c_nvmlGpuInstance_t * profile.instanceCount)()
        card.ask(pynvml.nvmlDeviceGetGpuInstances, card.handle, profile.id, found, ctypes.byref(count))
        yield from found[: count.value]


def instance_at(card: Card, placement: MigPlacement) -> Handle | None:
    """The GPU instance at exactly this placement."""
    for instance in instances(card):
        if _placement(card.ask(pynvml.nvmlGpuInstanceGetInfo, instance)) == placement:
            return instance
    return None


def placements(card: Card) -> frozenset[MigPlacement]:
    """Where GPU instances are."""
    return frozenset(_placement(card.ask(pynvml.nvmlGpuInstanceGetInfo, each)) for each in instances(card))


def placements_by_id(card: Card) -> dict[int, MigPlacement]:
    """Where each GPU instance is, by its id."""
    infos = (card.ask(pynvml.nvmlGpuInstanceGetInfo, each) for each in instances(card))
    return {info.id: _placement(info) for info in infos}


def placement_of(card: Card, gpu_instance: int) -> MigPlacement | None:
    """Where the GPU instance of that id is; None for one that is gone."""
    for instance in instances(card):
        info = card.ask(pynvml.nvmlGpuInstanceGetInfo, instance)
        if info.id == gpu_instance:
            return _placement(info)
    return None


def find(card: Card, placement: MigPlacement) -> MigInstanceFacts | None:
    """What is known of the instance at exactly this placement."""
    instance = instance_at(card, placement)
    return instance_facts(card, instance) if instance is not None else None


def ensure(card: Card, placement: MigPlacement) -> MigInstanceFacts:
    """Make the instance at this placement, or complete the one that is there."""
    found = instance_at(card, placement)
    instance = create(card, placement) if found is None else found
    complete(card, instance)
    return instance_facts(card, instance)


def remove(card: Card, placement: MigPlacement) -> None:
    """Remove the instance at exactly this placement; absent counts as done."""
    instance = instance_at(card, placement)
    if instance is not None:
        destroy(card, instance)


def create(card: Card, placement: MigPlacement) -> Handle:
    """Make a GPU instance at this placement; the card is in MIG mode."""
    place = pynvml.c_nvmlGpuInstancePlacement_t(start=placement.start, size=placement.size)
    make = pynvml.nvmlDeviceCreateGpuInstanceWithPlacement
    return card.ask(make, card.handle, placement.profile_id, ctypes.byref(place))


def complete(card: Card, instance: Handle) -> None:
    """Make the compute instance that fills this GPU instance, unless it is there."""
    if _filling(card, instance) is None:
        profile = _filling_profile(card, instance)
        card.ask(pynvml.nvmlGpuInstanceCreateComputeInstance, instance, profile.id)


def destroy(card: Card, instance: Handle) -> None:
    """Remove the compute instance that fills it, then the GPU instance. What is gone already is no error.

    Other compute instances inside are someone else's: with them the GPU instance stays, and NVML's IN_USE is raised.
    """
    inside = _filling(card, instance)
    if inside is not None:
        card.ask_unless(GONE, pynvml.nvmlComputeInstanceDestroy, inside)
    card.ask_unless(GONE, pynvml.nvmlGpuInstanceDestroy, instance)


def instance_facts(card: Card, instance: Handle) -> MigInstanceFacts:
    """What is known of a GPU instance and the compute instance that fills it."""
    info = card.ask(pynvml.nvmlGpuInstanceGetInfo, instance)
    handle = _filling(card, instance)
    inside = card.ask(pynvml.nvmlComputeInstanceGetInfo, handle) if handle is not None else None
    return MigInstanceFacts(
        gpu=card.address,
        placement=_placement(info),
        gpu_instance_id=info.id,
        compute_instance_id=inside.id if inside else None,
        uuid=MigUUID(card.ask(pynvml.nvmlDeviceGetUUID, inside.device)) if inside else None,
    )


def _placement(info: Any) -> MigPlacement:
    return MigPlacement(info.profileId, info.placement.start, info.placement.size)


def _filling_profile(card: Card, instance: Handle) -> Any:
    """The compute instance profile that takes the whole GPU instance: the one with most slices.

    Of equal ones the first counts; later numbers of the enum are variants with other engines. Asked for once.
    """
    whole = int(card.ask(pynvml.nvmlGpuInstanceGetInfo, instance).profileId)
    if whole not in card.book.filling:
        card.book.filling[whole] = _largest_profile(card, instance)
    return card.book.filling[whole]


def _largest_profile(card: Card, instance: Handle) -> Any:
    shared = pynvml.NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED
    numbers = range(pynvml.NVML_COMPUTE_INSTANCE_PROFILE_COUNT)
    ask_info = pynvml.nvmlGpuInstanceGetComputeInstanceProfileInfo
    every = (card.ask_unless(ABSENT, ask_info, instance, number, shared) for number in numbers)
    return max((info for info in every if info is not None), key=lambda info: int(info.sliceCount))


def _filling(card: Card, instance: Handle) -> Handle | None:
    profile = _filling_profile(card, instance)
    count = ctypes.c_uint(profile.instanceCount)
    found = (pynvml.c_nvmlComputeInstance_t * profile.instanceCount)()
    card.ask(pynvml.nvmlGpuInstanceGetComputeInstances, instance, profile.id, found, ctypes.byref(count))
    return found[0] if count.value else None


def _holders(card: Card) -> tuple[int, ...]:
    kinds = (pynvml.nvmlDeviceGetComputeRunningProcesses, pynvml.nvmlDeviceGetGraphicsRunningProcesses)
    return tuple(sorted({process.pid for kind in kinds for process in card.ask(kind, card.handle)}))


def _why(card: Card, status: int) -> str:
    holders = _holders(card)
    who = f"process {', '.join(map(str, holders))}" if holders else "a client that NVML does not name"
    reason = pynvml.nvmlErrorString(status)
    return f"{reason.decode() if isinstance(reason, bytes) else reason}: held by {who}"
