"""Reading one card: what it is and how it may be partitioned."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pynvml

from nodedriver import sysfs
from nodedriver.facts import ComputeMode, GpuFacts, GpuUUID, MigModeChange, MigPlacement, MigProfileFacts, PciAddress
from nodedriver.nvml import mig
from nodedriver.nvml.calls import ABSENT, Card, Handle, ProfileBook, ask
from nodedriver.ports import CardState
from nodedriver.surroundings import surroundings

_MIB = 2**20
_ARCHITECTURES = {
    2: "Kepler", 3: "Maxwell", 4: "Pascal", 5: "Volta", 6: "Turing", 7: "Ampere", 8: "Ada", 9: "Hopper",
    10: "Blackwell", 13: "Rubin",
}  # fmt: skip
_BRANDS = {
    1: "Quadro", 2: "Tesla", 3: "NVS", 4: "Grid", 5: "GeForce", 6: "Titan", 7: "NvidiaVApps", 8: "NvidiaVPC",
    9: "NvidiaVCS", 10: "NvidiaVWS", 11: "NvidiaCloudGaming", 12: "QuadroRTX", 13: "NvidiaRTX", 14: "Nvidia",
}  # fmt: skip


def card_at(index: int) -> Card:
    """The card of an NVML index. Indexes move when a card leaves; only the PCI address stays."""
    return card_of(ask(f"GPU {index}", pynvml.nvmlDeviceGetHandleByIndex, index))


def card_of(handle: Handle) -> Card:
    """The card of a handle that NVML gave."""
    return Card(address_of(ask("GPU", pynvml.nvmlDeviceGetPciInfo, handle)), handle)


def card_by_address(gpu: PciAddress, book: ProfileBook) -> Card:
    """The card at that address, with what is known of its profiles."""
    return Card(gpu, ask(f"GPU {gpu}", pynvml.nvmlDeviceGetHandleByPciBusId, gpu), book)


def read(card: Card, sys_root: Path) -> GpuFacts:
    """Everything that the driver wants to know of a card."""
    cuda = int(card.ask(pynvml.nvmlSystemGetCudaDriverVersion_v2))
    profiles = tuple(_profiles(card))
    return GpuFacts(
        pci_address=card.address,
        uuid=GpuUUID(card.ask(pynvml.nvmlDeviceGetUUID, card.handle)),
        minor=int(card.ask(pynvml.nvmlDeviceGetMinorNumber, card.handle)),
        product_name=str(card.ask(pynvml.nvmlDeviceGetName, card.handle)),
        brand=_BRANDS.get(card.ask(pynvml.nvmlDeviceGetBrand, card.handle), "Unknown"),
        architecture=_ARCHITECTURES.get(card.ask(pynvml.nvmlDeviceGetArchitecture, card.handle), "Unknown"),
        compute_capability=tuple(card.ask(pynvml.nvmlDeviceGetCudaComputeCapability, card.handle)),
        driver_version=str(card.ask(pynvml.nvmlSystemGetDriverVersion)),
        cuda_driver_version=(cuda // 1000, cuda % 1000 // 10),
        memory=int(card.ask(pynvml.nvmlDeviceGetMemoryInfo, card.handle).total),
        numa_node=sysfs.numa_node(sys_root, card.address),
        pcie_root=sysfs.pcie_root(sys_root, card.address),
        mig_mode_change=mig.mode_change(card) if mig.has_mode(card) else MigModeChange.IMPOSSIBLE,
        mig_enabled=mig.is_enabled(card),
        compute_mode=_compute_mode(card),
        profiles=profiles,
        instances=tuple(mig.instance_facts(card, instance) for instance in mig.instances(card)),
        surroundings=surroundings(sys_root, card.address),
    )


def state(card: Card) -> CardState:
    """What of a card a prepare has to know."""
    return CardState(uuid=GpuUUID(card.ask(pynvml.nvmlDeviceGetUUID, card.handle)), compute_mode=_compute_mode(card))


def set_compute_mode(card: Card, mode: ComputeMode) -> None:
    """Have the card in that mode. Each share of it asks for the same one, and a look costs less than a change."""
    if _compute_mode(card) is not mode:
        card.ask(pynvml.nvmlDeviceSetComputeMode, card.handle, int(mode))


def _compute_mode(card: Card) -> ComputeMode:
    return ComputeMode(card.ask(pynvml.nvmlDeviceGetComputeMode, card.handle))


def address_of(info: Any) -> PciAddress:
    """NVML's `00000000:65:00.0` as sysfs writes it; a domain beyond four digits keeps them all."""
    domain, _, rest = _text(info.busId).lower().partition(":")
    return PciAddress(f"{int(domain, 16):04x}:{rest}")


def _profiles(card: Card) -> Iterator[MigProfileFacts]:
    for info in mig.profile_infos(card):
        yield MigProfileFacts(
            id=info.id,
            name=_text(info.name).removeprefix("MIG "),
            compute_slices=info.sliceCount,
            memory=info.memorySizeMB * _MIB,
            multiprocessors=info.multiprocessorCount,
            copy_engines=info.copyEngineCount,
            decoders=info.decoderCount,
            encoders=info.encoderCount,
            jpeg_engines=info.jpegCount,
            ofa_engines=info.ofaCount,
            max_instances=info.instanceCount,
            placements=tuple(_placements(card, info.id)),
        )


def _placements(card: Card, profile_id: int) -> Iterator[MigPlacement]:
    count = ctypes.c_uint(0)
    possible = pynvml.nvmlDeviceGetGpuInstancePossiblePlacements
    card.ask_unless(ABSENT, possible, card.handle, profile_id, None, ctypes.byref(count))
    places = (pynvml.c_nvmlGpuInstancePlacement_t * count.value)()
    card.ask_unless(ABSENT, possible, card.handle, profile_id, places, ctypes.byref(count))
    for place in places[: count.value]:
        yield MigPlacement(profile_id, place.start, place.size)


def _text(value: Any) -> str:
    """A string of NVML: pynvml gives bytes in structs and str as results, depending on its version."""
    return value.decode() if isinstance(value, bytes) else str(value)
