"""NVML's functions on whole cards: finding them, what they are, their modes and their processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from simulator.silicon import pointers, rules
from simulator.silicon.handles import MigDeviceKey, Session, by_index, by_pci_bus_id, by_uuid
from simulator.silicon.hardware import MIB, Gpu, NvmlReturn, Process, ProcessKind
from simulator.silicon.rules import Refused

_BRAND_NVIDIA = 14
_MEMORY_V2 = 0x02000028
_ADDRESSING_MODE_V1 = 0x01000008
_RECOVERY_ACTION = 230  # NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
_NO_INSTANCE = 0xFFFFFFFF
_TOPOLOGY_NODE = 40  # NVML_TOPOLOGY_NODE: same NUMA node, different host bridges
_TOPOLOGY_SYSTEM = 50


def _count(session: Session, count: Any) -> None:
    pointers.put(count, len(session.cards()))


def _handle_by_index(session: Session, index: Any, device: Any) -> None:
    _put_gpu(session, device, by_index(index), NvmlReturn.INVALID_ARGUMENT)


def _handle_by_uuid(session: Session, uuid: Any, device: Any) -> None:
    wanted = pointers.text(uuid)
    for gpu in session.cards():
        for gi in gpu.gpu_instances:
            for ci in gi.compute_instances:
                if ci.uuid == wanted:
                    pointers.put_handle(device, session.handle(MigDeviceKey(gpu.pci_address, gi.created, ci.created)))
                    return
    _put_gpu(session, device, by_uuid(uuid), NvmlReturn.NOT_FOUND)


def _handle_by_pci_bus_id(session: Session, bus_id: Any, device: Any) -> None:
    _put_gpu(session, device, by_pci_bus_id(bus_id), NvmlReturn.NOT_FOUND)


def _put_gpu(session: Session, device: Any, wanted: Callable[[Gpu], bool], otherwise: NvmlReturn) -> None:
    gpu = next((gpu for gpu in session.cards() if wanted(gpu)), None)
    if gpu is None:
        raise Refused(otherwise)
    pointers.put_handle(device, session.gpu_handle(gpu.pci_address))


def _name(session: Session, device: Any, buffer: Any, length: Any) -> None:
    key = session.key(device)
    if isinstance(key, MigDeviceKey):
        gpu, gi, _ = session.compute_instance(key)
        name = f"{gpu.product} MIG {rules.profile_by_id(gpu, gi.profile_id).name}"
    else:
        name = session.gpu(device).product
    pointers.put_text(buffer, length, name)


def _uuid(session: Session, device: Any, buffer: Any, length: Any) -> None:
    key = session.key(device)
    uuid = session.compute_instance(key)[2].uuid if isinstance(key, MigDeviceKey) else session.gpu(device).uuid
    pointers.put_text(buffer, length, uuid)


def _serial(session: Session, device: Any, buffer: Any, length: Any) -> None:
    pointers.put_text(buffer, length, session.gpu(device).serial)


def _index(session: Session, device: Any, index: Any) -> None:
    pointers.put(index, session.gpu(device).index)


def _minor_number(session: Session, device: Any, minor: Any) -> None:
    pointers.put(minor, session.gpu(device).minor)


def _module_id(session: Session, device: Any, module: Any) -> None:
    pointers.put(module, session.gpu(device).index + 1)


def _pci_info(session: Session, device: Any, info: Any) -> None:
    gpu = session.gpu(device)
    domain, bus, slot = gpu.pci_address.split(":")
    pointers.put_fields(
        info,
        busIdLegacy=gpu.pci_address.upper().encode(),
        busId=f"0000{gpu.pci_address}".upper().encode(),
        domain=int(domain, 16),
        bus=int(bus, 16),
        device=int(slot.split(".")[0], 16),
        pciDeviceId=gpu.pci_device_id,
        pciSubSystemId=gpu.pci_device_id,
    )


def _memory(session: Session, device: Any) -> tuple[int, int, int]:
    """Total, reserved and used bytes of a card or MIG device."""
    key = session.key(device)
    if isinstance(key, MigDeviceKey):
        gpu, gi, _ = session.compute_instance(key)
        return gi.memory_mib * MIB, 0, sum(p.memory_bytes for p in session.processes(gpu) if p.gpu_instance == gi.id)
    gpu = session.gpu(device)
    used = sum(p.memory_bytes for p in session.processes(gpu))
    return gpu.total_memory_mib * MIB, gpu.reserved_memory_mib * MIB, used


def _memory_info(session: Session, device: Any, info: Any) -> None:
    total, reserved, used = _memory(session, device)
    pointers.put_fields(info, total=total, used=used + reserved, free=total - reserved - used)


def _memory_info_v2(session: Session, device: Any, info: Any) -> None:
    pointers.check_version(info, _MEMORY_V2)
    total, reserved, used = _memory(session, device)
    pointers.put_fields(info, total=total, reserved=reserved, used=used, free=total - reserved - used)


def _brand(session: Session, device: Any, brand: Any) -> None:
    session.gpu(device)
    pointers.put(brand, _BRAND_NVIDIA)


def _architecture(session: Session, device: Any, architecture: Any) -> None:
    pointers.put(architecture, session.gpu(device).architecture)


def _compute_capability(session: Session, device: Any, major: Any, minor: Any) -> None:
    capability = session.gpu(device).compute_capability
    pointers.put(major, capability[0])
    pointers.put(minor, capability[1])


def _addressing_mode(session: Session, device: Any, mode: Any) -> None:
    session.gpu(device)
    pointers.check_version(mode, _ADDRESSING_MODE_V1)
    pointers.put_fields(mode, value=0)


def _virtualization_mode(session: Session, device: Any, mode: Any) -> None:
    session.gpu(device)
    pointers.put(mode, 0)


def _topology_common_ancestor(session: Session, one: Any, other: Any, level: Any) -> None:
    same_node = session.gpu(one).numa_node == session.gpu(other).numa_node
    pointers.put(level, _TOPOLOGY_NODE if same_node else _TOPOLOGY_SYSTEM)


def _pcie_generation(session: Session, device: Any, generation: Any) -> None:
    session.gpu(device)
    pointers.put(generation, 5)


def _pcie_width(session: Session, device: Any, width: Any) -> None:
    session.gpu(device)
    pointers.put(width, 16)


def _persistence_mode(session: Session, device: Any, mode: Any) -> None:
    pointers.put(mode, session.gpu(device).persistence)


def _set_persistence_mode(session: Session, device: Any, mode: Any) -> None:
    wanted = bool(pointers.number(mode))
    address = session.gpu(device).pci_address
    session.state.change_gpu(address, lambda gpu: (replace(gpu, persistence=wanted), None))


def _compute_mode(session: Session, device: Any, mode: Any) -> None:
    pointers.put(mode, _not_mig_gpu(session, device).compute_mode)


def _set_compute_mode(session: Session, device: Any, mode: Any) -> None:
    wanted = pointers.number(mode)
    address = _not_mig_gpu(session, device).pci_address
    session.state.change_gpu(address, lambda gpu: (rules.set_compute_mode(gpu, wanted), None))


def _not_mig_gpu(session: Session, device: Any) -> Gpu:
    """The card; NOT_SUPPORTED for a MIG device, which has no compute mode."""
    if isinstance(session.key(device), MigDeviceKey):
        raise Refused(NvmlReturn.NOT_SUPPORTED)
    return session.gpu(device)


def _processes(*kinds: ProcessKind) -> Callable[[Session, Any, Any, Any], None]:
    def call(session: Session, device: Any, count: Any, infos: Any) -> None:
        _put_processes(count, infos, [p for p in _processes_on(session, device) if p.kind in kinds])

    return call


def _processes_on(session: Session, device: Any) -> tuple[Process, ...]:
    key = session.key(device)
    if not isinstance(key, MigDeviceKey):
        return session.processes(session.gpu(device))
    gpu, gi, ci = session.compute_instance(key)
    return tuple(p for p in session.processes(gpu) if (p.gpu_instance, p.compute_instance) == (gi.id, ci.id))


def _put_processes(count: Any, infos: Any, processes: list[Process]) -> None:
    room = pointers.target(count).value
    pointers.put(count, len(processes))
    if len(processes) > room:
        raise Refused(NvmlReturn.INSUFFICIENT_SIZE)
    for i, process in enumerate(processes):
        slot = pointers.target(infos)[i]
        slot.pid = process.pid
        slot.usedGpuMemory = process.memory_bytes
        slot.gpuInstanceId = _NO_INSTANCE if process.gpu_instance is None else process.gpu_instance
        slot.computeInstanceId = _NO_INSTANCE if process.compute_instance is None else process.compute_instance


def _field_values(session: Session, device: Any, count: Any, values: Any) -> None:
    """Of the many fields only the recovery action is known; the others answer NOT_SUPPORTED, each for itself."""
    gpu = session.gpu(device)
    for value in list(pointers.target(values))[: pointers.number(count)]:
        known = value.fieldId == _RECOVERY_ACTION
        value.nvmlReturn = NvmlReturn.SUCCESS if known else NvmlReturn.NOT_SUPPORTED
        value.value.uiVal = gpu.recovery_action if known else 0


FUNCTIONS: dict[str, Callable[..., None]] = {
    "nvmlDeviceGetFieldValues": _field_values,
    "nvmlDeviceGetCount_v2": _count,
    "nvmlDeviceGetHandleByIndex_v2": _handle_by_index,
    "nvmlDeviceGetHandleByUUID": _handle_by_uuid,
    "nvmlDeviceGetHandleByPciBusId_v2": _handle_by_pci_bus_id,
    "nvmlDeviceGetName": _name,
    "nvmlDeviceGetUUID": _uuid,
    "nvmlDeviceGetSerial": _serial,
    "nvmlDeviceGetIndex": _index,
    "nvmlDeviceGetMinorNumber": _minor_number,
    "nvmlDeviceGetModuleId": _module_id,
    "nvmlDeviceGetPciInfo_v3": _pci_info,
    "nvmlDeviceGetMemoryInfo": _memory_info,
    "nvmlDeviceGetMemoryInfo_v2": _memory_info_v2,
    "nvmlDeviceGetBrand": _brand,
    "nvmlDeviceGetArchitecture": _architecture,
    "nvmlDeviceGetCudaComputeCapability": _compute_capability,
    "nvmlDeviceGetAddressingMode": _addressing_mode,
    "nvmlDeviceGetVirtualizationMode": _virtualization_mode,
    "nvmlDeviceGetTopologyCommonAncestor": _topology_common_ancestor,
    "nvmlDeviceGetCurrPcieLinkGeneration": _pcie_generation,
    "nvmlDeviceGetMaxPcieLinkGeneration": _pcie_generation,
    "nvmlDeviceGetCurrPcieLinkWidth": _pcie_width,
    "nvmlDeviceGetPersistenceMode": _persistence_mode,
    "nvmlDeviceSetPersistenceMode": _set_persistence_mode,
    "nvmlDeviceGetComputeMode": _compute_mode,
    "nvmlDeviceSetComputeMode": _set_compute_mode,
    "nvmlDeviceGetComputeRunningProcesses_v3": _processes(ProcessKind.COMPUTE, ProcessKind.MPS_SERVER),
    "nvmlDeviceGetMPSComputeRunningProcesses_v3": _processes(ProcessKind.MPS_CLIENT),
    "nvmlDeviceGetGraphicsRunningProcesses_v3": _processes(ProcessKind.GRAPHICS),
}
