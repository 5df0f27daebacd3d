"""What sysfs and modules.alias say of passing a card through: its IOMMU group, who is in it, which driver has whom.

Reads only, under roots that are settings. Linux, Documentation/driver-api/vfio.rst: all devices of a group go to one
virtual machine together, bridges apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from nodedriver import sysfs
from nodedriver.config import Config
from nodedriver.facts import PciAddress, VfioFacts
from nodedriver.vfio.modules import best_module, driver_names, how_to_load, is_vfio

_BRIDGES = ("0x0600", "0x0604")  # host and PCI-to-PCI bridges; a bridge of another kind has memory of its own to guard
_TYPE1 = "vfio_iommu_type1"  # serves the interface of groups
_MEMORY_64BIT = 0x200 | 0x100000  # IORESOURCE_MEM and IORESOURCE_MEM_64 of Linux' ioport.h


@dataclass(frozen=True, slots=True)
class Roots:
    """The node's /sys and /proc."""

    sys: Path
    proc: Path

    @classmethod
    def of(cls, config: Config) -> Self:
        """Where the settings say that they are."""
        return cls(config.sys_root, config.proc_root)


def device_folder(sys_root: Path, address: str) -> Path:
    """A PCI device in sysfs."""
    return sys_root / "bus/pci/devices" / address


def drivers_folder(sys_root: Path) -> Path:
    """The PCI drivers that are loaded."""
    return sys_root / "bus/pci/drivers"


def is_passed_through(sys_root: Path, address: str) -> bool:
    """Whether a VFIO driver has the device."""
    return is_vfio(sysfs.driver(sys_root, address))


def group_of(sys_root: Path, address: str) -> str | None:
    """The number of its IOMMU group; None where the IOMMU is off."""
    link = device_folder(sys_root, address) / "iommu_group"
    return link.resolve().name if link.is_symlink() else None


def members(sys_root: Path, address: PciAddress) -> tuple[str, ...]:
    """The card first, then what must move with it: the other functions of its group, bridges apart."""
    group = group_of(sys_root, address)
    if group is None:
        return (address,)
    folder = sys_root / "kernel/iommu_groups" / group / "devices"
    others = sorted(each.name for each in folder.iterdir() if each.name != address)
    return (address, *(other for other in others if not read(sys_root, other, "class").startswith(_BRIDGES)))


def module_driver(roots: Roots, address: str) -> str | None:
    """The name of the loaded driver that passes this card through; None where its module is not loaded."""
    module = best_module(read(roots.sys, address, "modalias"), _aliases(roots.proc))
    return next((name for name in driver_names(module) if (drivers_folder(roots.sys) / name).is_dir()), None)


def modules_missing(roots: Roots, address: str) -> tuple[str, ...]:
    """What has to be loaded before this card can be passed through: the module that takes it, and one by which a
    program maps its memory (Documentation/driver-api/vfio.rst, "IOMMUFD and vfio_iommu_type1").
    """
    module = best_module(read(roots.sys, address, "modalias"), _aliases(roots.proc))
    mapped = has_iommufd(roots.sys) or (roots.sys / "module" / _TYPE1).is_dir()
    return (*(() if module_driver(roots, address) else (module,)), *(() if mapped else (_TYPE1,)))


def why_not(roots: Roots, address: PciAddress) -> str:
    """Why this card can't be passed through, and what to do; "" where it can."""
    group = group_of(roots.sys, address)
    if group is None:
        return "it is in no IOMMU group: switch the IOMMU on in the firmware and on the kernel's command line"
    strangers = [other for other in members(roots.sys, address) if _slot(other) != _slot(address)]
    if strangers:
        return (
            f"its IOMMU group {group} also holds {', '.join(strangers)}: use a PCIe slot with a group of its own (ACS)"
        )
    if missing := modules_missing(roots, address):
        return f"the kernel has not loaded {' and '.join(missing)}: {how_to_load(missing)}"
    return ""


def facts(roots: Roots, address: PciAddress) -> VfioFacts | None:
    """What is published of passing it through; None where that can't be had."""
    if why_not(roots, address):
        return None
    return VfioFacts(
        vendor_id=read(roots.sys, address, "vendor"),
        device_id=read(roots.sys, address, "device"),
        addressable_memory=addressable_memory(read(roots.sys, address, "resource")),
        iommufd=has_iommufd(roots.sys),
    )


def has_iommufd(sys_root: Path) -> bool:
    """Whether the kernel has the iommufd interface and its device node."""
    return (sys_root / "class/misc/iommu").is_dir()


def virtual_functions(sys_root: Path, address: str) -> int:
    """How many SR-IOV functions of the card exist."""
    return int(read(sys_root, address, "sriov_numvfs") or 0)


def addressable_memory(resource: str) -> int:
    """Bytes of the 64-bit memory BARs, rounded up to a power of two. Lines are start, end, flags (sysfs-bus-pci)."""
    total = 0
    for line in resource.splitlines():
        start, end, flags = (int(word, 16) for word in line.split())
        if end and flags & _MEMORY_64BIT == _MEMORY_64BIT:
            total += end - start + 1
    return 1 << (total - 1).bit_length() if total else 0


def _slot(address: str) -> str:
    return address.rpartition(".")[0]


def read(sys_root: Path, address: str, name: str) -> str:
    """The attribute's text; "" where the device has no such attribute."""
    try:
        return (device_folder(sys_root, address) / name).read_text().strip()
    except FileNotFoundError:
        return ""


def _aliases(proc_root: Path) -> str:
    """The node's modules.alias, seen through the root of its first process; "" where that can't be looked into."""
    try:
        release = (proc_root / "sys/kernel/osrelease").read_text().strip()
        return (proc_root / "1/root/lib/modules" / release / "modules.alias").read_text()
    except OSError:
        return ""
