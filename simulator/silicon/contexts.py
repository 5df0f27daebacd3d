"""CUDA contexts on the cards: who may open a device, how much memory a context may hold, with CUDA's answers.

Pure, like `rules.py`: the hardware and a wish give new hardware, or `CudaRefused`. A device is a whole card or a MIG
device, named by its UUID. Codes are those of CUresult (cuda.h); compute modes are those of nvidia-smi -c.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum

from simulator.silicon import rules
from simulator.silicon.hardware import (
    MIB,
    ComputeInstance,
    ComputeMode,
    Gpu,
    GpuInstance,
    Process,
    ProcessKind,
    Silicon,
)


class CudaResult(IntEnum):
    """CUresult: the codes that the stand-in answers."""

    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_DEVICE_UNAVAILABLE = 46
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_MPS_CONNECTION_FAILED = 805
    CUDA_ERROR_MPS_SERVER_NOT_READY = 807
    CUDA_ERROR_MPS_MAX_CLIENTS_REACHED = 808


class CudaRefused(Exception):  # noqa: N818 - an answer of the hardware, not an error of this program
    """CUDA said no: a result, and in words why, with the numbers."""

    def __init__(self, result: CudaResult, why: str) -> None:
        super().__init__(f"{result.name}: {why}")
        self.result = result
        self.why = why


@dataclass(frozen=True, slots=True)
class Device:
    """What CUDA calls a device: a card, or a MIG device on it."""

    gpu: Gpu
    instances: tuple[GpuInstance, ComputeInstance] | None

    @property
    def memory_bytes(self) -> int:
        """What contexts on it can hold together."""
        if self.instances is None:
            return (self.gpu.total_memory_mib - self.gpu.reserved_memory_mib) * MIB
        return self.instances[0].memory_mib * MIB

    @property
    def processes(self) -> tuple[Process, ...]:
        if self.instances is None:
            return self.gpu.processes
        ids = (self.instances[0].id, self.instances[1].id)
        return tuple(p for p in self.gpu.processes if (p.gpu_instance, p.compute_instance) == ids)


def find_device(silicon: Silicon, uuid: str) -> Device:
    """The device of that UUID. A card in MIG mode is no CUDA device itself."""
    for gpu in silicon.gpus:
        if gpu.uuid == uuid and not gpu.mig_current:
            return Device(gpu, None)
        for gi in gpu.gpu_instances:
            for ci in gi.compute_instances:
                if ci.uuid == uuid:
                    return Device(gpu, (gi, ci))
    raise CudaRefused(CudaResult.CUDA_ERROR_NO_DEVICE, f"there is no CUDA device {uuid}")


def client_limit(silicon: Silicon, device: Device) -> int:
    """Most MPS client contexts on a device: 48, 60 from CUDA 13.1, on a MIG device in proportion to its slices."""
    most = 60 if silicon.cuda_version >= 13010 else 48
    if device.instances is None:
        return most
    return most * device.instances[1].size // rules.mig_model(device.gpu).compute_slices


def open_context(silicon: Silicon, uuid: str, process: Process) -> Silicon:
    """Give the process a context on the device, under its compute mode; an MPS client comes in by its server."""
    device = find_device(silicon, uuid)
    if process.kind is ProcessKind.MPS_CLIENT:
        _check_client_count(silicon, device)
    elif device.instances is None:
        _check_compute_mode(device.gpu, process)
    gi, ci = device.instances or (None, None)
    placed = replace(process, gpu_instance=gi.id if gi else None, compute_instance=ci.id if ci else None)
    return _with_processes(silicon, device.gpu, (*device.gpu.processes, placed))


def _check_client_count(silicon: Silicon, device: Device) -> None:
    most = client_limit(silicon, device)
    if sum(p.kind is ProcessKind.MPS_CLIENT for p in device.processes) >= most:
        raise CudaRefused(
            CudaResult.CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, f"the MPS server has its {most} clients already"
        )


def _check_compute_mode(gpu: Gpu, process: Process) -> None:
    if gpu.compute_mode is ComputeMode.PROHIBITED:
        raise CudaRefused(CudaResult.CUDA_ERROR_DEVICE_UNAVAILABLE, "the card's compute mode is PROHIBITED")
    others = sorted({p.pid for p in gpu.processes if p.pid != process.pid})
    if gpu.compute_mode is ComputeMode.EXCLUSIVE_PROCESS and others:
        raise CudaRefused(
            CudaResult.CUDA_ERROR_DEVICE_UNAVAILABLE,
            f"the card's compute mode is EXCLUSIVE_PROCESS and process {others[0]} has it",
        )


def allocate(silicon: Silicon, uuid: str, process: Process, size: int) -> Silicon:
    """Give a context `size` more bytes, within its own limit and what is left on the device."""
    device = find_device(silicon, uuid)
    holder = next(p for p in device.processes if _same_context(p, process))
    wanted = holder.memory_bytes + size
    if holder.memory_limit_bytes is not None and wanted > holder.memory_limit_bytes:
        raise CudaRefused(
            CudaResult.CUDA_ERROR_OUT_OF_MEMORY, f"{wanted} bytes asked for, limit {holder.memory_limit_bytes} bytes"
        )
    free = device.memory_bytes - sum(p.memory_bytes for p in device.processes)
    if size > free:
        raise CudaRefused(CudaResult.CUDA_ERROR_OUT_OF_MEMORY, f"{size} bytes asked for, {free} bytes free")
    grown = replace(holder, memory_bytes=wanted)
    return _with_processes(silicon, device.gpu, tuple(grown if p is holder else p for p in device.gpu.processes))


def close_contexts(silicon: Silicon, gone: Callable[[Process], bool]) -> Silicon:
    """Take away the contexts, and their memory, of processes that are gone."""
    gpus = tuple(replace(gpu, processes=tuple(p for p in gpu.processes if not gone(p))) for gpu in silicon.gpus)
    return replace(silicon, gpus=gpus)


def _same_context(one: Process, other: Process) -> bool:
    return (one.pid, one.context) == (other.pid, other.context)


def _with_processes(silicon: Silicon, gpu: Gpu, processes: tuple[Process, ...]) -> Silicon:
    changed = replace(gpu, processes=processes)
    return replace(silicon, gpus=tuple(changed if g.uuid == gpu.uuid else g for g in silicon.gpus))
