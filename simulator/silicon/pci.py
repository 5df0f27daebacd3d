"""A card in sysfs: its folder under sys/devices, the links from sys/bus/pci, its bridge and its driver.

Format: Documentation/ABI/testing/sysfs-bus-pci of Linux. Knows no state: binding changes these files alone.
"""

from __future__ import annotations

import os
from pathlib import Path

from simulator.silicon.hardware import MIB, Gpu

_BRIDGE = {"vendor": "0x8086", "device": "0x352a", "class": "0x060400", "numa_node": "-1"}
# IORESOURCE_MEM | IORESOURCE_MEM_64 | IORESOURCE_PREFETCH | IORESOURCE_SIZEALIGN
_BAR_FLAGS = 0x14220C
_CPUS_PER_NODE = 56


def write_device(sys_root: Path, gpu: Gpu) -> None:
    """Write one card and the bridge it sits behind: devices/<root>/<bridge>/<card>, as `readlink` shows it."""
    bridge_address = f"{gpu.pcie_root.removeprefix('pci')}:00.0"
    bridge = sys_root / "devices" / gpu.pcie_root / bridge_address
    card = bridge / gpu.pci_address
    _write_files(bridge, _BRIDGE)
    _write_files(card, _files(gpu))
    _link(sys_root / "bus/pci/devices" / bridge_address, bridge)
    _link(sys_root / "bus/pci/devices" / gpu.pci_address, card)
    _link(card / "driver", sys_root / "bus/pci/drivers/nvidia")
    _link(sys_root / "bus/pci/drivers/nvidia" / gpu.pci_address, card)
    _link(card / "iommu_group", sys_root / "kernel/iommu_groups" / str(gpu.index))
    _link(sys_root / "kernel/iommu_groups" / str(gpu.index) / "devices" / gpu.pci_address, card)


def _files(gpu: Gpu) -> dict[str, str]:
    device = gpu.pci_device_id >> 16
    first_cpu = max(gpu.numa_node, 0) * _CPUS_PER_NODE
    return {
        "vendor": "0x10de",
        "device": f"0x{device:04x}",
        "subsystem_vendor": "0x10de",
        "subsystem_device": f"0x{device:04x}",
        "revision": "0xa1",
        "class": "0x030200",
        "numa_node": str(gpu.numa_node),
        "local_cpulist": f"{first_cpu}-{first_cpu + _CPUS_PER_NODE - 1}",
        "current_link_speed": "32.0 GT/s PCIe",
        "max_link_speed": "32.0 GT/s PCIe",
        "current_link_width": "16",
        "max_link_width": "16",
        "modalias": f"pci:v000010DEd{device:08X}sv000010DEsd{device:08X}bc03sc02i00",
        "driver_override": "(null)",
        "sriov_numvfs": "0",
        "sriov_totalvfs": "16",
        "reset_method": "flr bus",
        "resource": _resource(gpu),
    }


def _resource(gpu: Gpu) -> str:
    """Lines of start, end and flags. BAR1 is the card's memory, rounded up to a power of two."""
    size = 1 << (gpu.total_memory_mib * MIB - 1).bit_length()
    start = (gpu.index + 1) << 40
    empty = "0x0000000000000000 0x0000000000000000 0x0000000000000000"
    return f"{empty}\n0x{start:016x} 0x{start + size - 1:016x} 0x{_BAR_FLAGS:016x}\n{empty}"


def _write_files(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(f"{text}\n")


def _link(link: Path, to: Path) -> None:
    """A relative link, as sysfs has them. A folder that it points at is made."""
    to.mkdir(parents=True, exist_ok=True)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(os.path.relpath(to, link.parent))
