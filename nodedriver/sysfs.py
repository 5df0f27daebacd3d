"""Where a PCI device sits, as sysfs tells: NUMA node and PCIe root; and which driver has it. Reads only, under a root
that is a setting.

Rules: k8s.io/dynamic-resource-allocation/deviceattribute (`pci_linux.go`) and KEP-6072, so that `matchAttribute` works
across drivers.
"""

from __future__ import annotations

import re
from pathlib import Path

from nodedriver.facts import PciAddress

NVIDIA = "nvidia"  # NVIDIA's driver in sysfs


def driver(sys_root: Path, address: str) -> str | None:
    """The driver that has the device, "" where none has; None where sysfs shows no such device."""
    try:
        text = (_device(sys_root, address) / "uevent").read_text()
    except OSError:
        return None
    found = re.search(r"^DRIVER=(.+)$", text, re.MULTILINE)
    return found[1] if found else ""


def numa_node(sys_root: Path, address: PciAddress) -> int | None:
    """The NUMA node, or None where the kernel knows none (it says -1) or shows no such device."""
    try:
        node = int((_device(sys_root, address) / "numa_node").read_text())
    except FileNotFoundError:
        return None
    return node if node >= 0 else None


def pcie_root(sys_root: Path, address: PciAddress) -> str | None:
    """The root complex, such as `pci0000:64`: the first part of the device's real path below `devices`; else None."""
    devices = sys_root.resolve() / "devices"
    device = _device(sys_root, address).resolve()
    if not device.is_relative_to(devices):
        return None
    root = device.relative_to(devices).parts[0]
    return root if root.startswith("pci") else None


def _device(sys_root: Path, address: str) -> Path:
    return sys_root / "bus/pci/devices" / address
