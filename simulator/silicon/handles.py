"""One process's NVML session: how often it was initialised, and what its opaque handles mean.

A handle is a number that only this process knows; it names a card, an instance or a MIG device, and is looked up in the
present state at every use, so that a handle to something destroyed is refused as NVML refuses it. While a session lasts
the process has the cards' device nodes open, as with NVML: others see by that who holds a card.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from simulator.silicon import pointers
from simulator.silicon.hardware import ComputeInstance, Gpu, GpuInstance, NvmlReturn, Process
from simulator.silicon.pci import NVIDIA
from simulator.silicon.rules import Refused
from simulator.silicon.state import State
from simulator.silicon.tree import Tree


@dataclass(frozen=True, slots=True)
class GpuKey:
    """A whole card, as it is between two changes of its MIG mode or resets."""

    pci_address: str
    renewed: int


@dataclass(frozen=True, slots=True)
class GpuInstanceKey:
    """A GPU instance, by its creation number."""

    pci_address: str
    created: int


@dataclass(frozen=True, slots=True)
class ComputeInstanceKey:
    """A compute instance, by the creation numbers of its GPU instance and itself."""

    pci_address: str
    gi_created: int
    created: int


@dataclass(frozen=True, slots=True)
class MigDeviceKey:
    """A MIG device: a compute instance seen as an nvmlDevice_t."""

    pci_address: str
    gi_created: int
    created: int


type Key = GpuKey | GpuInstanceKey | ComputeInstanceKey | MigDeviceKey


def by_index(index: Any) -> Callable[[Gpu], bool]:
    """Whether a card has that index."""
    wanted = pointers.number(index)
    return lambda gpu: gpu.index == wanted


def by_uuid(uuid: Any) -> Callable[[Gpu], bool]:
    """Whether a card has that UUID."""
    wanted = pointers.text(uuid)
    return lambda gpu: gpu.uuid == wanted


def by_pci_bus_id(bus_id: Any) -> Callable[[Gpu], bool]:
    """Whether a card has that address, with a domain of four digits or eight."""
    domain, _, rest = pointers.text(bus_id).lower().partition(":")
    wanted = f"{domain[-4:]}:{rest}"
    return lambda gpu: gpu.pci_address == wanted


# The functions that name a card by something else than a handle.
_BY_WORDS: dict[str, Callable[[Any], Callable[[Gpu], bool]]] = {
    "nvmlDeviceGetHandleByIndex_v2": by_index,
    "nvmlDeviceGetHandleByUUID": by_uuid,
    "nvmlDeviceGetHandleByPciBusId_v2": by_pci_bus_id,
}

_FIRST_HANDLE = 0x7F0000001000
_HANDLE_STEP = 0x40


class Session:
    """Handles and reference count of one process. Threads may call at the same time."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.references = 0
        self.begun = 0  # how often the count rose from zero
        self._keys: dict[int, Key] = {}
        self._handles: dict[Key, int] = {}
        self._given = 0
        self._open_nodes: list[int] = []
        self._lock = threading.Lock()
        self._numbered: tuple[tuple[Gpu, ...], tuple[Gpu, ...]] = (), ()  # cards as they are, and as NVML sees them
        self.registered: dict[str, int] = {}  # event types by card, of the one event set
        self.told = 0  # number of the last event that the set was told of

    def init(self) -> None:
        """Count up; the first opens the cards' device nodes."""
        with self._lock:
            self.references += 1
            if self.references == 1:
                self.begun += 1
                self._open_nodes = _open_nodes(self.state)

    def shutdown(self) -> None:
        """Count down; the last makes every handle stale, the event set too, and closes the device nodes."""
        with self._lock:
            self.references -= 1
            if self.references == 0:
                self._keys.clear()
                self._handles.clear()
                self.registered.clear()
                while self._open_nodes:
                    os.close(self._open_nodes.pop())

    def cards(self) -> tuple[Gpu, ...]:
        """What NVML sees: the cards that NVIDIA's driver has, numbered without a gap. Dead processes may be on them
        (see `processes`).
        """
        gpus = self.state.as_written().gpus
        known, cards = self._numbered
        if known is not gpus:
            seen = (gpu for gpu in gpus if gpu.driver == NVIDIA)
            cards = tuple(replace(gpu, index=index) for index, gpu in enumerate(seen))
            self._numbered = gpus, cards
        return cards

    def handle(self, key: Key) -> int:
        """The handle of a thing: the same each time within a session."""
        with self._lock:
            if key not in self._handles:
                handle = _FIRST_HANDLE + self._given * _HANDLE_STEP
                self._given += 1
                self._handles[key] = handle
                self._keys[handle] = key
            return self._handles[key]

    def key(self, handle: Any) -> Key:
        """What a handle names; INVALID_ARGUMENT when this session never gave it."""
        found = self._keys.get(pointers.handle_value(handle))
        if found is None:
            raise Refused(NvmlReturn.INVALID_ARGUMENT)
        return found

    def card_named(self, function: str, args: tuple[Any, ...]) -> str:
        """The PCI address of the card that a call is about; "" when it is about none, or about an unknown one."""
        if function in _BY_WORDS and args:
            wanted = _BY_WORDS[function](args[0])
            return next((gpu.pci_address for gpu in self.cards() if wanted(gpu)), "")
        key = self._keys.get(pointers.handle_value(args[0])) if args and pointers.is_handle(args[0]) else None
        return key.pci_address if key else ""

    def gpu(self, handle: Any) -> Gpu:
        """The card behind an nvmlDevice_t; INVALID_ARGUMENT for a MIG device handle and for a stale one."""
        key = self.key(handle)
        if not isinstance(key, GpuKey):
            raise Refused(NvmlReturn.INVALID_ARGUMENT)
        gpu = self.gpu_at(key.pci_address)
        if gpu.renewed != key.renewed:
            raise Refused(NvmlReturn.INVALID_ARGUMENT)
        return gpu

    def gpu_handle(self, pci_address: str) -> int:
        """The handle that a card has now."""
        (renewed,) = (gpu.renewed for gpu in self.state.as_written().gpus if gpu.pci_address == pci_address)
        return self.handle(GpuKey(pci_address, renewed))

    def gpu_at(self, pci_address: str) -> Gpu:
        for gpu in self.cards():
            if gpu.pci_address == pci_address:
                if gpu.lost:
                    raise Refused(NvmlReturn.GPU_IS_LOST)
                return gpu
        raise Refused(NvmlReturn.INVALID_ARGUMENT)

    def processes(self, gpu: Gpu) -> tuple[Process, ...]:
        """Those on the card that live. Only who asks for them pays for a look at each."""
        (found,) = (each.processes for each in self.state.read().gpus if each.pci_address == gpu.pci_address)
        return found

    def gpu_instance_key(self, handle: Any) -> GpuInstanceKey:
        key = self.key(handle)
        if not isinstance(key, GpuInstanceKey):
            raise Refused(NvmlReturn.INVALID_ARGUMENT)
        return key

    def compute_instance_key(self, handle: Any) -> ComputeInstanceKey:
        key = self.key(handle)
        if not isinstance(key, ComputeInstanceKey):
            raise Refused(NvmlReturn.INVALID_ARGUMENT)
        return key

    def mig_device_key(self, handle: Any) -> MigDeviceKey:
        key = self.key(handle)
        if not isinstance(key, MigDeviceKey):
            raise Refused(NvmlReturn.INVALID_ARGUMENT)
        return key

    def gpu_instance(self, handle: Any) -> tuple[Gpu, GpuInstance]:
        """The GPU instance behind a handle; INVALID_ARGUMENT when it was destroyed."""
        key = self.gpu_instance_key(handle)
        gpu = self.gpu_at(key.pci_address)
        return gpu, _created(gpu.gpu_instances, key.created)

    def compute_instance(self, key: ComputeInstanceKey | MigDeviceKey) -> tuple[Gpu, GpuInstance, ComputeInstance]:
        """The compute instance that a key names; INVALID_ARGUMENT when it was destroyed."""
        gpu = self.gpu_at(key.pci_address)
        gi = _created(gpu.gpu_instances, key.gi_created)
        return gpu, gi, _created(gi.compute_instances, key.created)


def _open_nodes(state: State) -> list[int]:
    nodes = [Tree(state.path.parent).gpu_node(gpu.minor) for gpu in state.read().gpus if gpu.driver == NVIDIA]
    return [os.open(node, os.O_RDONLY) for node in nodes if node.exists()]


def _created[T: (GpuInstance, ComputeInstance)](instances: tuple[T, ...], created: int) -> T:
    for instance in instances:
        if instance.created == created:
            return instance
    raise Refused(NvmlReturn.INVALID_ARGUMENT)
