"""MIG through the real pynvml: one test a rule of the MIG User Guide and of nvml.h."""

from __future__ import annotations

import ctypes
from typing import Any

import pynvml
import pytest

from simulator.silicon.hardware import Injection
from tests.simulator.machines import Machine, refused_with

type Placement = tuple[int, int, int]

# Profile ids of the 8-slice family, and what `nvidia-smi mig -lgip` and -lgipp show for an H100 80GB:
# id -> index, placements as start:size, maximum, MiB, multiprocessors.
H100 = {
    19: (0, "0:1 1:1 2:1 3:1 4:1 5:1 6:1", 7, 9984, 16),
    20: (7, "0:1 1:1 2:1 3:1 4:1 5:1 6:1", 1, 9984, 16),
    15: (9, "0:2 2:2 4:2 6:2", 4, 20096, 26),
    14: (1, "0:2 2:2 4:2", 3, 20096, 32),
    9: (2, "0:4 4:4", 2, 40448, 60),
    5: (3, "0:4", 1, 40448, 64),
    0: (4, "0:8", 1, 81152, 132),
}


def placements(card: Any, profile_id: int) -> str:
    count = ctypes.c_uint()
    pynvml.nvmlDeviceGetGpuInstancePossiblePlacements(card, profile_id, None, ctypes.byref(count))
    array = (pynvml.c_nvmlGpuInstancePlacement_t * count.value)()
    pynvml.nvmlDeviceGetGpuInstancePossiblePlacements(card, profile_id, array, ctypes.byref(count))
    return " ".join(f"{p.start}:{p.size}" for p in array)


def instances(card: Any, profile_id: int) -> list[int]:
    count = ctypes.c_uint()
    array = (pynvml.c_nvmlGpuInstance_t * 7)()
    pynvml.nvmlDeviceGetGpuInstances(card, profile_id, array, ctypes.byref(count))
    return [pynvml.nvmlGpuInstanceGetInfo(array[i]).id for i in range(count.value)]


@pytest.fixture
def card(machine: Machine) -> Any:
    """The first H100, in MIG mode."""
    assert pynvml.nvmlDeviceSetMigMode(machine.handle(), 1) == pynvml.NVML_SUCCESS
    return machine.handle()


@pytest.mark.parametrize("profile_id", H100)
def test_profiles_and_placements_are_those_of_an_h100(machine: Machine, profile_id: int) -> None:
    index, where, most, mib, multiprocessors = H100[profile_id]
    info = pynvml.nvmlDeviceGetGpuInstanceProfileInfo(machine.handle(), index)
    assert (info.id, info.instanceCount, info.memorySizeMB) == (profile_id, most, mib)
    assert info.multiprocessorCount == multiprocessors
    assert placements(machine.handle(), profile_id) == where


def test_profiles_are_found_by_walking_all_indexes(machine: Machine) -> None:
    found = {}
    for index in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
        try:
            info = pynvml.nvmlDeviceGetGpuInstanceProfileInfo(machine.handle(), index)
        except pynvml.NVMLError_NotSupported:
            continue
        found[info.id] = info.name
    assert found.keys() == H100.keys()
    assert found[9] == "MIG 3g.40gb"
    with refused_with(pynvml.NVML_ERROR_INVALID_ARGUMENT):
        pynvml.nvmlDeviceGetGpuInstanceProfileInfo(machine.handle(), pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT)


def test_create_with_mig_off(machine: Machine) -> None:
    with refused_with(pynvml.NVML_ERROR_NOT_SUPPORTED):
        machine.create(9, 0, 4)


def test_hopper_switches_at_once_and_back_when_empty(machine: Machine) -> None:
    assert pynvml.nvmlDeviceGetMigMode(machine.handle()) == [0, 0]
    assert pynvml.nvmlDeviceSetMigMode(machine.handle(), 1) == pynvml.NVML_SUCCESS
    assert pynvml.nvmlDeviceGetMigMode(machine.handle()) == [1, 1]
    assert pynvml.nvmlDeviceSetMigMode(machine.handle(), 0) == pynvml.NVML_SUCCESS
    assert pynvml.nvmlDeviceGetMigMode(machine.handle()) == [0, 0]


def test_a_change_of_mode_ends_the_cards_handles(machine: Machine) -> None:
    before, other = machine.handle(), machine.handle(1)
    pynvml.nvmlDeviceSetMigMode(before, 0)  # no change
    pynvml.nvmlDeviceSetMigMode(before, 1)
    with refused_with(pynvml.NVML_ERROR_INVALID_ARGUMENT):
        pynvml.nvmlDeviceGetName(before)
    assert pynvml.nvmlDeviceGetIndex(machine.handle()) == 0
    assert pynvml.nvmlDeviceGetIndex(other) == 1


def test_mode_change_is_refused_while_a_gpu_instance_exists(machine: Machine, card: Any) -> None:
    gpu_instance = machine.create(19, 6, 1)
    with refused_with(pynvml.NVML_ERROR_IN_USE):
        pynvml.nvmlDeviceSetMigMode(card, 0)
    pynvml.nvmlGpuInstanceDestroy(gpu_instance)
    assert pynvml.nvmlDeviceSetMigMode(card, 0) == pynvml.NVML_SUCCESS


def test_mode_change_waits_for_processes(machine: Machine) -> None:
    machine.hold()
    assert pynvml.nvmlDeviceSetMigMode(machine.handle(), 1) == pynvml.NVML_ERROR_IN_USE
    assert pynvml.nvmlDeviceGetMigMode(machine.handle()) == [0, 1]


def test_ampere_keeps_the_mode_pending(ampere: Machine) -> None:
    card = ampere.handle()
    assert pynvml.nvmlDeviceSetMigMode(card, 1) == pynvml.NVML_ERROR_RESET_REQUIRED
    assert pynvml.nvmlDeviceGetMigMode(card) == [0, 1]
    with refused_with(pynvml.NVML_ERROR_NOT_SUPPORTED):
        ampere.create(9, 0, 4)


def test_ampere_is_in_use_while_a_process_holds_it(ampere: Machine) -> None:
    ampere.hold()
    assert pynvml.nvmlDeviceSetMigMode(ampere.handle(), 1) == pynvml.NVML_ERROR_IN_USE


@pytest.mark.parametrize(
    ("present", "wish"),
    [
        pytest.param([(9, 0, 4)], (9, 0, 4), id="the same placement"),
        pytest.param([(9, 0, 4)], (19, 3, 1), id="inside another"),
        pytest.param([(0, 0, 8)], (19, 6, 1), id="the whole card is taken"),
        pytest.param([(19, 6, 1)], (15, 6, 2), id="a double 1g over a 1g"),
        pytest.param([(9, 4, 4)], (19, 6, 1), id="slice 6 belongs to 3g@4"),
        pytest.param([(20, 0, 1)], (20, 1, 1), id="one +me on a card"),
        pytest.param([(0, 0, 8)], (20, 1, 1), id="the OFA engine is gone with 7g"),
    ],
)
@pytest.mark.usefixtures("card")
def test_conflicts_are_insufficient_resources(machine: Machine, present: list[Placement], wish: Placement) -> None:
    for placement in present:
        machine.create(*placement)
    with refused_with(pynvml.NVML_ERROR_INSUFFICIENT_RESOURCES):
        machine.create(*wish)


@pytest.mark.parametrize(
    "layout",
    [
        [(19, n, 1) for n in range(7)],
        [(5, 0, 4), (9, 4, 4)],
        [(9, 0, 4), (9, 4, 4)],
        [(14, 0, 2), (14, 2, 2), (14, 4, 2), (19, 6, 1)],
        [(14, 0, 2), (14, 2, 2), (14, 4, 2), (15, 6, 2)],
        [(9, 4, 4), (20, 0, 1), (19, 1, 1), (15, 2, 2)],
    ],
)
@pytest.mark.usefixtures("card")
def test_legal_layouts(machine: Machine, layout: list[Placement]) -> None:
    for placement in layout:
        machine.create(*placement)
    assert [(i.profile_id, i.start, i.size) for i in machine.gpu().gpu_instances] == layout


@pytest.mark.parametrize("wish", [(9, 2, 4), (19, 7, 1), (9, 0, 2), (99, 0, 1)])
@pytest.mark.usefixtures("card")
def test_impossible_placements_are_invalid(machine: Machine, wish: Placement) -> None:
    with refused_with(pynvml.NVML_ERROR_INVALID_ARGUMENT):
        machine.create(*wish)


def test_remaining_capacity(machine: Machine, card: Any) -> None:
    assert pynvml.nvmlDeviceGetGpuInstanceRemainingCapacity(card, 19) == 7
    machine.create(9, 4, 4)
    assert pynvml.nvmlDeviceGetGpuInstanceRemainingCapacity(card, 19) == 4
    assert pynvml.nvmlDeviceGetGpuInstanceRemainingCapacity(card, 9) == 1
    assert pynvml.nvmlDeviceGetGpuInstanceRemainingCapacity(card, 0) == 0


def test_instance_ids_are_those_of_nvidias_driver(machine: Machine, card: Any) -> None:
    machine.create(9, 4, 4)
    machine.create(14, 2, 2)
    machine.create(19, 1, 1)
    assert (instances(card, 9), instances(card, 14), instances(card, 19)) == ([2], [4], [8])
    assert instances(card, 5) == []
    found = pynvml.nvmlGpuInstanceGetInfo(pynvml.nvmlDeviceGetGpuInstanceById(card, 4))
    assert (found.profileId, found.placement.start, found.placement.size) == (14, 2, 2)
    with refused_with(pynvml.NVML_ERROR_NOT_FOUND):
        pynvml.nvmlDeviceGetGpuInstanceById(card, 1)


@pytest.mark.usefixtures("card")
def test_destroy_order_and_second_destroy(machine: Machine) -> None:
    gpu_instance = machine.create(9, 0, 4)
    compute_instance = pynvml.nvmlGpuInstanceCreateComputeInstance(gpu_instance, 2)
    with refused_with(pynvml.NVML_ERROR_IN_USE):
        pynvml.nvmlGpuInstanceDestroy(gpu_instance)
    pynvml.nvmlComputeInstanceDestroy(compute_instance)
    with refused_with(pynvml.NVML_ERROR_NOT_FOUND):
        pynvml.nvmlComputeInstanceDestroy(compute_instance)
    pynvml.nvmlGpuInstanceDestroy(gpu_instance)
    with refused_with(pynvml.NVML_ERROR_NOT_FOUND):
        pynvml.nvmlGpuInstanceDestroy(gpu_instance)
    with refused_with(pynvml.NVML_ERROR_INVALID_ARGUMENT):
        pynvml.nvmlGpuInstanceGetInfo(gpu_instance)


@pytest.mark.usefixtures("card")
def test_an_old_handle_does_not_reach_a_new_instance_at_the_same_place(machine: Machine) -> None:
    old = machine.create(9, 0, 4)
    pynvml.nvmlGpuInstanceDestroy(old)
    machine.create(9, 0, 4)
    with refused_with(pynvml.NVML_ERROR_NOT_FOUND):
        pynvml.nvmlGpuInstanceDestroy(old)


def test_a_mig_device_is_a_device(machine: Machine, card: Any) -> None:
    compute = pynvml.nvmlGpuInstanceCreateComputeInstance(machine.create(9, 4, 4), 2)
    info = pynvml.nvmlComputeInstanceGetInfo(compute)
    device = info.device
    uuid = pynvml.nvmlDeviceGetUUID(device)
    assert uuid.startswith("MIG-")
    assert pynvml.nvmlDeviceGetName(device) == "NVIDIA H100 80GB HBM3 MIG 3g.40gb"
    assert pynvml.nvmlDeviceIsMigDeviceHandle(device).value == 1
    assert pynvml.nvmlDeviceIsMigDeviceHandle(card).value == 0
    assert pynvml.nvmlDeviceGetMemoryInfo(device).total == 40448 * 1024 * 1024
    assert (pynvml.nvmlDeviceGetGpuInstanceId(device), pynvml.nvmlDeviceGetComputeInstanceId(device)) == (2, 0)
    parent = pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device)
    assert pynvml.nvmlDeviceGetUUID(parent) == pynvml.nvmlDeviceGetUUID(card)
    assert pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByUUID(uuid)) == uuid
    attributes = pynvml.nvmlDeviceGetAttributes(device)
    assert (attributes.multiprocessorCount, attributes.memorySizeMB) == (60, 40448)
    assert (attributes.sharedCopyEngineCount, attributes.sharedDecoderCount, attributes.sharedOfaCount) == (3, 3, 0)


def test_a_mig_device_is_not_a_whole_card(machine: Machine, card: Any) -> None:
    compute = pynvml.nvmlGpuInstanceCreateComputeInstance(machine.create(9, 4, 4), 2)
    device = pynvml.nvmlComputeInstanceGetInfo(compute).device
    with refused_with(pynvml.NVML_ERROR_INVALID_ARGUMENT):
        pynvml.nvmlDeviceGetMinorNumber(device)
    with refused_with(pynvml.NVML_ERROR_NOT_SUPPORTED):
        pynvml.nvmlDeviceSetComputeMode(device, pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS)
    with refused_with(pynvml.NVML_ERROR_INVALID_ARGUMENT):
        pynvml.nvmlDeviceGetAttributes(card)


def test_mig_slots_have_holes(machine: Machine, card: Any) -> None:
    assert pynvml.nvmlDeviceGetMaxMigDeviceCount(card) == 7
    pynvml.nvmlGpuInstanceCreateComputeInstance(machine.create(9, 4, 4), 2)
    machine.create(9, 0, 4)  # a GPU instance without a compute instance is no MIG device
    for slot in (0, 1, 2, 3, 5, 6):
        with refused_with(pynvml.NVML_ERROR_NOT_FOUND):
            pynvml.nvmlDeviceGetMigDeviceHandleByIndex(card, slot)
    assert pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetMigDeviceHandleByIndex(card, 4)).endswith("3g.40gb")


@pytest.mark.usefixtures("card")
def test_compute_instances_share_a_gpu_instance(machine: Machine) -> None:
    gpu_instance = machine.create(9, 0, 4)
    info = pynvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(gpu_instance, 0, 0)
    assert (info.id, info.sliceCount, info.instanceCount, info.name) == (0, 1, 3, "MIG 1c.3g.40gb")
    for _ in range(3):
        pynvml.nvmlGpuInstanceCreateComputeInstance(gpu_instance, 0)
    assert [(c.id, c.start) for c in machine.gpu().gpu_instances[0].compute_instances] == [(0, 0), (1, 1), (2, 2)]
    assert pynvml.nvmlGpuInstanceGetComputeInstanceRemainingCapacity(gpu_instance, 0) == 0
    with refused_with(pynvml.NVML_ERROR_INSUFFICIENT_RESOURCES):
        pynvml.nvmlGpuInstanceCreateComputeInstance(gpu_instance, 1)
    with refused_with(pynvml.NVML_ERROR_NOT_SUPPORTED):
        pynvml.nvmlGpuInstanceCreateComputeInstance(gpu_instance, 4)


@pytest.mark.usefixtures("card")
def test_capability_files_follow_the_instances(machine: Machine) -> None:
    folder = machine.tree.proc / "driver/nvidia/capabilities/gpu0/mig"
    gpu_instance = machine.create(9, 4, 4)
    compute = pynvml.nvmlGpuInstanceCreateComputeInstance(gpu_instance, 2)
    # gpu0/gi2 in mig-minors: 3 + 2 x 9 = 21, and its first compute instance 22.
    assert (folder / "gi2/access").read_text() == "DeviceFileMinor: 21\nDeviceFileMode: 256\nDeviceFileModify: 1\n"
    assert (folder / "gi2/ci0/access").read_text().startswith("DeviceFileMinor: 22\n")
    pynvml.nvmlComputeInstanceDestroy(compute)
    assert [p.name for p in sorted((folder / "gi2").iterdir())] == ["access"]
    pynvml.nvmlGpuInstanceDestroy(gpu_instance)
    assert list(folder.iterdir()) == []


@pytest.mark.usefixtures("card")
def test_an_injected_fault_meets_one_call(machine: Machine) -> None:
    gpu_instance = machine.create(9, 0, 4)
    machine.state.inject(Injection(function="nvmlGpuInstanceDestroy", code=pynvml.NVML_ERROR_IN_USE))
    with refused_with(pynvml.NVML_ERROR_IN_USE):
        pynvml.nvmlGpuInstanceDestroy(gpu_instance)
    pynvml.nvmlGpuInstanceDestroy(gpu_instance)
    assert machine.gpu().gpu_instances == ()


def test_processes_are_listed(machine: Machine) -> None:
    own_process = machine.hold()
    (seen,) = pynvml.nvmlDeviceGetComputeRunningProcesses(machine.handle())
    assert (seen.pid, seen.usedGpuMemory) == (own_process.pid, 5)
    assert pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3(machine.handle()) == []
    assert pynvml.nvmlDeviceGetComputeRunningProcesses(machine.handle(1)) == []
