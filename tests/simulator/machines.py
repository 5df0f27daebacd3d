"""A stand-in machine for tests, and two-word ways to act on its cards through the real pynvml."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass, replace
from typing import Any

import pynvml
import pytest

from simulator.silicon.hardware import Gpu, Process, ProcessKind
from simulator.silicon.state import State, start_time
from simulator.silicon.tree import Tree


@dataclass(frozen=True, slots=True)
class Machine:
    """A tree with its state. NVML is initialised on it in this process."""

    tree: Tree
    state: State

    def gpu(self, index: int = 0) -> Gpu:
        return self.state.read().gpus[index]

    def handle(self, index: int = 0) -> Any:
        return pynvml.nvmlDeviceGetHandleByIndex(index)

    def create(self, profile_id: int, start: int, size: int, index: int = 0) -> Any:
        """Create a GPU instance at a placement and return its handle."""
        placement = pynvml.c_nvmlGpuInstancePlacement_t(start=start, size=size)
        return pynvml.nvmlDeviceCreateGpuInstanceWithPlacement(self.handle(index), profile_id, ctypes.byref(placement))

    def hold(self, index: int = 0) -> Process:
        """Put a living process, this one, on a card, with 5 bytes of memory."""
        pid = os.getpid()
        process = Process(pid=pid, started=start_time(pid) or 0, uid=0, kind=ProcessKind.COMPUTE, memory_bytes=5)
        self.state.change_gpu(self.gpu(index).pci_address, lambda gpu: (replace(gpu, processes=(process,)), None))
        return process


def refused_with(*codes: int) -> pytest.RaisesExc[Exception]:
    """The body must raise pynvml's error of one of these return codes."""
    return pytest.raises(pynvml.NVMLError, check=lambda e: e.value in codes)
