"""A card in sysfs: its folder under sys/devices, the links from sys/bus/pci, its bridge and its driver; and its entry
in /proc.

Format: Documentation/ABI/testing/sysfs-bus-pci of Linux. Knows no state: `sysfs.py` says when what is bound.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from simulator.silicon.hardware import MIB, Gpu

NVIDIA = "nvidia"
_VFIO_MAJOR, _VFIO_DEVICE_MAJOR = 241, 511  # given out when the modules are loaded; they differ by machine
_BRIDGE = {"vendor": "0x8086", "device": "0x352a", "class": "0x060400", "numa_node": "-1"}
# IORESOURCE_MEM | IORESOURCE_MEM_64 | IORESOURCE_PREFETCH | IORESOURCE_SIZEALIGN
_BAR_FLAGS = 0x14220C
_CPUS_PER_NODE = 56


def write_device(sys_root: Path, gpu: Gpu) -> None:
    """Write one card and the bridge it sits behind: devices/<root>/<bridge>/<card>, as `readlink` shows it."""
    bridge_address = f"{gpu.pcie_root.removeprefix('pci')}:00.0"
    bridge = sys_root / "devices" / gpu.pcie_root / bridge_address
    _write_files(bridge, _BRIDGE)
    _link(sys_root / "bus/pci/devices" / bridge_address, bridge)
    add_function(sys_root, gpu, gpu.pci_address, _files(gpu), NVIDIA)


def add_function(sys_root: Path, gpu: Gpu, address: str, files: dict[str, str], driver: str) -> None:
    """Write a PCI function that sits beside the card and in its IOMMU group; the card itself is one."""
    folder = sys_root / "devices" / gpu.pcie_root / f"{gpu.pcie_root.removeprefix('pci')}:00.0" / address
    _write_files(folder, files)
    _link(sys_root / "bus/pci/devices" / address, folder)
    _link(folder / "iommu_group", sys_root / "kernel/iommu_groups" / str(gpu.index))
    _link(sys_root / "kernel/iommu_groups" / str(gpu.index) / "devices" / address, folder)
    load_module(sys_root, driver)
    bind(sys_root, address, driver)


def load_module(sys_root: Path, driver: str) -> None:
    """Make the driver's folder, with the files that bind and unbind."""
    folder = sys_root / "bus/pci/drivers" / driver
    folder.mkdir(parents=True, exist_ok=True)
    for file in (folder / "bind", folder / "unbind", sys_root / "bus/pci/drivers_probe"):
        file.touch()


def load_vfio(sys_root: Path) -> None:
    """Load vfio-pci and vfio_iommu_type1, with the interfaces of both kinds."""
    load_module(sys_root, "vfio-pci")
    _write_files(sys_root / "module/vfio_iommu_type1/parameters", {"allow_unsafe_interrupts": "N"})
    _write_files(sys_root / "class/misc/vfio", {"dev": "10:196"})
    _write_files(sys_root / "class/misc/iommu", {"dev": "10:122"})


def driver_of(sys_root: Path, address: str) -> str:
    """Who has the function; "" for nobody, or no such function."""
    link = sys_root / "bus/pci/devices" / address / "driver"
    return link.readlink().name if link.is_symlink() else ""


def override_of(sys_root: Path, address: str) -> str:
    """The only driver that may have the function; "" for any."""
    lines = (sys_root / "bus/pci/devices" / address / "driver_override").read_text().splitlines()
    return "" if lines[-1] == "(null)" else lines[-1]


def bind(sys_root: Path, address: str, driver: str) -> None:
    """Give the function to the driver; with a VFIO driver come its nodes."""
    folder = (sys_root / "bus/pci/devices" / address).resolve()
    _link(folder / "driver", sys_root / "bus/pci/drivers" / driver)
    _link(sys_root / "bus/pci/drivers" / driver / address, folder)
    _write_files(folder, {"uevent": f"DRIVER={driver}\nPCI_SLOT_NAME={address}"})
    if "vfio" in driver:
        group = (folder / "iommu_group").resolve().name
        _write_files(sys_root / "class/vfio" / group, {"dev": f"{_VFIO_MAJOR}:{group}"})
        _write_files(sys_root / "class/vfio-dev" / f"vfio{group}", {"dev": f"{_VFIO_DEVICE_MAJOR}:{group}"})
        (folder / "vfio-dev" / f"vfio{group}").mkdir(parents=True)


def unbind(sys_root: Path, address: str) -> None:
    """Take the function from its driver."""
    folder = (sys_root / "bus/pci/devices" / address).resolve()
    (sys_root / "bus/pci/drivers" / driver_of(sys_root, address) / address).unlink()
    (folder / "driver").unlink()
    _write_files(folder, {"uevent": f"PCI_SLOT_NAME={address}"})
    shutil.rmtree(folder / "vfio-dev", ignore_errors=True)


def tell_in_proc(proc_root: Path, gpu: Gpu, driver_version: str | None) -> None:
    """What NVIDIA's driver says of a card in /proc; nothing (None) of one that it does not have."""
    folder = proc_root / "driver/nvidia/gpus" / gpu.pci_address
    if driver_version is None:
        shutil.rmtree(folder, ignore_errors=True)
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "information").write_text(_information(gpu, driver_version))


def _information(gpu: Gpu, driver_version: str) -> str:
    return (
        f"Model: \t\t {gpu.product}\nIRQ:   \t\t 18\nGPU UUID: \t {gpu.uuid}\nVideo BIOS: \t 96.00.74.00.01\n"
        f"Bus Type: \t PCIe\nDMA Size: \t 52 bits\nDMA Mask: \t 0xfffffffffffff\nBus Location: \t {gpu.pci_address}\n"
        f"Device Minor: \t {gpu.minor}\nGPU Firmware: \t {driver_version}\nGPU Excluded:\t No\n"
    )


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
