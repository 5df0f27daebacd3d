"""Every card of the node, those that NVML does not see among them: what it said of them before, or what sysfs says.

What NVML says is kept in a file, so that a card that a virtual machine has is published as ever after a restart of the
driver. A card that an administrator bound to VFIO serves virtual machines only, and stays bound.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import msgspec
import structlog

from dra.mig.profiles import MODELS
from nodedriver import sysfs
from nodedriver.facts import CardFacts, ComputeMode, GpuFacts, GpuUUID, MigModeChange, PciAddress
from nodedriver.files import write_atomically
from nodedriver.surroundings import surroundings
from nodedriver.vfio import iommu
from nodedriver.vfio.iommu import Roots

_log = structlog.get_logger()
_VENDOR_ID = "0x10de"  # NVIDIA
_DISPLAY = "0x03"  # base class of display controllers
_DECODER = msgspec.json.Decoder(tuple[GpuFacts, ...])


class SeenCards(Protocol):
    """What is asked of NVML about cards that may be away."""

    def is_away(self, gpu: PciAddress) -> bool:
        """Whether NVML can't see it, since another driver has it or none."""

    def present(self, known: GpuFacts) -> GpuFacts:
        """The card in its MIG mode of now. GpuError where it does not answer."""


def all_cards(seen: Iterable[GpuFacts], path: Path, roots: Roots) -> tuple[GpuFacts, ...]:
    """The cards that NVML sees and those that VFIO drivers have, by PCI address, with what passing each through takes.

    `path` keeps what NVML said.
    """
    here = {gpu.pci_address: gpu for gpu in seen}
    known = {gpu.pci_address: gpu for gpu in _read(path)} | {each: _lasting(gpu) for each, gpu in here.items()}
    _keep(path, known)
    away = {each: _away(known.get(each), each, roots.sys) for each in _passed_through(roots.sys)}
    every = away | here
    return tuple(replace(every[each], vfio=iommu.facts(roots, each)) for each in sorted(every))


def as_served(cards: Iterable[GpuFacts], held: Collection[PciAddress], roots: Roots) -> tuple[GpuFacts, ...]:
    """The same, knowing which cards an administrator bound to VFIO: all such but the `held` ones, which claims have."""
    return tuple(
        replace(gpu, only_vfio=gpu.pci_address not in held and iommu.is_passed_through(roots.sys, gpu.pci_address))
        for gpu in cards
    )


def as_now(gpus: SeenCards, sys_root: Path, known: CardFacts) -> CardFacts:
    """The card as it is known, with what claims change of it: its kernel driver, MIG mode and instances of now."""
    if not isinstance(known, GpuFacts):
        return known
    gpu = known.pci_address
    near = replace(known.surroundings, kernel_driver=sysfs.driver(sys_root, gpu) or "")
    known = replace(known, surroundings=near)
    return _lasting(known) if gpus.is_away(gpu) else gpus.present(known)


def _away(known: GpuFacts | None, gpu: PciAddress, sys_root: Path) -> GpuFacts:
    """A card that a VFIO driver has, as it is known; what stands around it is told as before, so that slices stay."""
    if known is None:
        return _from_sysfs(gpu, sys_root)
    driver = surroundings(sys_root, gpu).kernel_driver
    return replace(known, surroundings=replace(known.surroundings, kernel_driver=driver))


def _lasting(gpu: GpuFacts) -> GpuFacts:
    """What of a card does not change while it is used."""
    return replace(gpu, mig_enabled=False, compute_mode=ComputeMode.DEFAULT, instances=())


def _passed_through(sys_root: Path) -> Iterator[PciAddress]:
    """NVIDIA's cards that VFIO drivers have; SR-IOV functions are no cards."""
    folder = sys_root / "bus/pci/devices"
    for address in sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else ():
        device = iommu.device_folder(sys_root, address)
        is_card = iommu.read(sys_root, address, "vendor") == _VENDOR_ID
        is_card = is_card and iommu.read(sys_root, address, "class").startswith(_DISPLAY)
        if is_card and not (device / "physfn").exists() and iommu.is_passed_through(sys_root, address):
            yield PciAddress(address)


def _from_sysfs(address: PciAddress, sys_root: Path) -> GpuFacts:
    """A card that NVML never saw: its model by PCI id, its memory by the model, else by its BARs."""
    device_id = iommu.read(sys_root, address, "device")
    number = int(device_id, 16) << 16 | 0x10DE
    model = next((each for each in MODELS if number in each.pci_device_ids), None)
    bars = iommu.addressable_memory(iommu.read(sys_root, address, "resource"))
    return GpuFacts(
        pci_address=address,
        uuid=GpuUUID(""),
        minor=-1,
        product_name=model.product_names[0] if model else f"NVIDIA {device_id}",
        brand="Unknown",
        architecture=model.architecture if model else "Unknown",
        compute_capability=model.compute_capability if model else (0, 0),
        driver_version="",
        cuda_driver_version=(0, 0),
        memory=model.total_memory_mib * 2**20 if model and model.total_memory_mib else bars,
        numa_node=sysfs.numa_node(sys_root, address),
        pcie_root=sysfs.pcie_root(sys_root, address),
        mig_mode_change=MigModeChange.IMPOSSIBLE,
        mig_enabled=False,
        compute_mode=ComputeMode.DEFAULT,
        profiles=(),
        instances=(),
        surroundings=surroundings(sys_root, address),
    )


def _read(path: Path) -> Iterable[GpuFacts]:
    """What is kept; a file that can't be read counts as none, since NVML and sysfs say most of it anew."""
    try:
        return _DECODER.decode(path.read_bytes())
    except FileNotFoundError:
        return ()
    except (OSError, msgspec.MsgspecError) as error:
        _log.warning("kept facts of the cards not read", path=str(path), error=str(error))
        return ()


def _keep(path: Path, known: dict[PciAddress, GpuFacts]) -> None:
    text = msgspec.json.encode(tuple(known[address] for address in sorted(known)))
    try:
        if not path.exists() or path.read_bytes() != text:
            write_atomically(path, text)
    except OSError as error:
        _log.warning("facts of the cards not kept", path=str(path), error=str(error))
