"""Cards through the real pynvml: what they are, how they are found, and which misuse NVML refuses."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable

import pynvml
import pytest

from tests.simulator.machines import Machine, refused_with

MIB = 1024 * 1024


@pytest.mark.usefixtures("machine")
def test_system_facts() -> None:
    assert pynvml.nvmlSystemGetDriverVersion() == "580.126.20"
    assert pynvml.nvmlSystemGetCudaDriverVersion_v2() == 13000
    assert pynvml.nvmlSystemGetNVMLVersion() == "13.580.126.20"
    assert pynvml.nvmlDeviceGetCount() == 8


def test_a_card_is_what_the_scenario_says(machine: Machine) -> None:
    card = machine.handle(1)
    assert pynvml.nvmlDeviceGetName(card) == "NVIDIA H100 80GB HBM3"
    assert pynvml.nvmlDeviceGetUUID(card).startswith("GPU-")
    assert pynvml.nvmlDeviceGetMinorNumber(card) == 1
    assert pynvml.nvmlDeviceGetIndex(card) == 1
    assert pynvml.nvmlDeviceGetArchitecture(card) == pynvml.NVML_DEVICE_ARCH_HOPPER
    assert pynvml.nvmlDeviceGetBrand(card) == pynvml.NVML_BRAND_NVIDIA
    assert pynvml.nvmlDeviceGetCudaComputeCapability(card) == (9, 0)
    assert pynvml.nvmlDeviceGetModuleId(card, ctypes.c_uint()) == 2


def test_pci_info_has_nvmls_eight_digit_upper_case_address(machine: Machine) -> None:
    info = pynvml.nvmlDeviceGetPciInfo(machine.handle(4))
    assert info.busId == "00000000:9D:00.0"
    assert (info.domain, info.bus, info.device) == (0, 0x9D, 0)
    assert info.pciDeviceId == 0x233010DE


def test_memory_versions_differ_in_reserved(machine: Machine) -> None:
    card = machine.handle()
    plain = pynvml.nvmlDeviceGetMemoryInfo(card)
    split = pynvml.nvmlDeviceGetMemoryInfo(card, version=pynvml.nvmlMemory_v2)
    assert plain.total == split.total == 81559 * MIB
    assert (plain.used, split.used) == (551 * MIB, 0)
    assert split.reserved == 551 * MIB
    assert plain.free == split.free == (81559 - 551) * MIB


def test_cards_are_found_by_uuid_and_by_either_form_of_pci_address(machine: Machine) -> None:
    for index in range(8):
        card = machine.handle(index)
        uuid = pynvml.nvmlDeviceGetUUID(card)
        bus_id = pynvml.nvmlDeviceGetPciInfo(card).busId
        assert pynvml.nvmlDeviceGetIndex(pynvml.nvmlDeviceGetHandleByUUID(uuid)) == index
        assert pynvml.nvmlDeviceGetIndex(pynvml.nvmlDeviceGetHandleByPciBusId(bus_id)) == index
        assert pynvml.nvmlDeviceGetIndex(pynvml.nvmlDeviceGetHandleByPciBusId(bus_id[4:].lower())) == index


@pytest.mark.usefixtures("machine")
def test_unknown_cards_are_refused() -> None:
    with refused_with(pynvml.NVML_ERROR_INVALID_ARGUMENT):
        pynvml.nvmlDeviceGetHandleByIndex(8)
    with refused_with(pynvml.NVML_ERROR_NOT_FOUND):
        pynvml.nvmlDeviceGetHandleByUUID("GPU-00000000-0000-0000-0000-000000000000")
    with refused_with(pynvml.NVML_ERROR_NOT_FOUND):
        pynvml.nvmlDeviceGetHandleByPciBusId("0000:ff:00.0")


def test_a_handle_is_stale_after_the_last_shutdown(machine: Machine) -> None:
    card = machine.handle()
    pynvml.nvmlShutdown()
    with refused_with(pynvml.NVML_ERROR_UNINITIALIZED):
        pynvml.nvmlDeviceGetName(card)
    pynvml.nvmlInit()
    with refused_with(pynvml.NVML_ERROR_INVALID_ARGUMENT):
        pynvml.nvmlDeviceGetName(card)


@pytest.mark.usefixtures("machine")
def test_initialisation_is_counted() -> None:
    pynvml.nvmlInit()
    pynvml.nvmlShutdown()
    assert pynvml.nvmlDeviceGetCount() == 8


def test_a_wrong_version_word_is_refused(machine: Machine) -> None:
    with refused_with(pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH):
        pynvml.nvmlDeviceGetMemoryInfo(machine.handle(), version=0x03000028)


def test_a_function_that_an_old_driver_lacks(machine: Machine) -> None:
    with refused_with(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND):
        pynvml.nvmlDeviceGetFanSpeed(machine.handle())


@pytest.mark.usefixtures("machine")
def test_error_text_is_nvmls() -> None:
    assert pynvml.nvmlErrorString(pynvml.NVML_ERROR_IN_USE) == "In use by another client"
    assert pynvml.nvmlErrorString(998) == "Unknown Error"


def test_compute_and_persistence_mode_are_kept(machine: Machine) -> None:
    card = machine.handle()
    pynvml.nvmlDeviceSetComputeMode(card, pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS)
    pynvml.nvmlDeviceSetPersistenceMode(card, 0)
    assert pynvml.nvmlDeviceGetComputeMode(card) == pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS
    assert pynvml.nvmlDeviceGetPersistenceMode(card) == 0
    assert pynvml.nvmlDeviceGetComputeMode(machine.handle(1)) == pynvml.NVML_COMPUTEMODE_DEFAULT
    with refused_with(pynvml.NVML_ERROR_INVALID_ARGUMENT):
        pynvml.nvmlDeviceSetComputeMode(card, pynvml.NVML_COMPUTEMODE_EXCLUSIVE_THREAD)


def test_an_event_set_registers_and_times_out(machine: Machine) -> None:
    events = pynvml.nvmlEventSetCreate()
    card = machine.handle()
    pynvml.nvmlDeviceRegisterEvents(card, pynvml.nvmlDeviceGetSupportedEventTypes(card), events)
    begun = time.monotonic()
    with refused_with(pynvml.NVML_ERROR_TIMEOUT):
        pynvml.nvmlEventSetWait_v2(events, 50)
    assert time.monotonic() - begun >= 0.05
    pynvml.nvmlEventSetFree(events)


def test_topology_follows_numa_nodes(machine: Machine) -> None:
    first, second, far = machine.handle(0), machine.handle(3), machine.handle(4)
    assert pynvml.nvmlDeviceGetTopologyCommonAncestor(first, second) == pynvml.NVML_TOPOLOGY_NODE
    assert pynvml.nvmlDeviceGetTopologyCommonAncestor(first, far) == pynvml.NVML_TOPOLOGY_SYSTEM


def test_minors_need_not_follow_the_index(machine_of: Callable[[str], Machine]) -> None:
    mixed = machine_of("mixed")
    assert [pynvml.nvmlDeviceGetMinorNumber(mixed.handle(i)) for i in range(6)] == [4, 3, 1, 0, 5, 2]
    assert pynvml.nvmlDeviceGetName(mixed.handle(4)) == "NVIDIA L40S"
    assert pynvml.nvmlDeviceGetCudaComputeCapability(mixed.handle(4)) == (8, 9)


def test_a_card_without_mig_says_so(machine_of: Callable[[str], Machine]) -> None:
    card = machine_of("mixed").handle(4)
    with refused_with(pynvml.NVML_ERROR_NOT_SUPPORTED):
        pynvml.nvmlDeviceGetMigMode(card)
    with refused_with(pynvml.NVML_ERROR_NOT_SUPPORTED):
        pynvml.nvmlDeviceSetMigMode(card, 1)
    with refused_with(pynvml.NVML_ERROR_NOT_SUPPORTED):
        pynvml.nvmlDeviceGetGpuInstanceProfileInfo(card, 0)
