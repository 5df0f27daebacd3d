"""What sysfs tells around a card: the kernel driver that has it, DRM nodes and the nearest NIC.

Reads only, under a root that is a setting. Formats: Documentation/ABI/testing/sysfs-bus-pci of Linux; classes: PCI Code
and ID Assignment Specification (02: network controller).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nodedriver.facts import CardSurroundings, PciAddress, PcieLink
from nodedriver.sysfs import numa_node

_NETWORK = "0x02"
_NEAREST_FIRST = tuple(PcieLink)
_SWITCH_HOPS = 2  # from a switch's upstream port: its downstream port, then the device


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a PCI device sits: the parts of its real path below `devices`, and its NUMA node."""

    path: tuple[str, ...]
    numa: int | None


def surroundings(sys_root: Path, gpu: PciAddress) -> CardSurroundings:
    """All that sysfs knows around that card; a card that it does not show has nothing around it."""
    card = sys_root / "bus/pci/devices" / gpu
    nic, link = nearest_nic(sys_root, gpu)
    return CardSurroundings(
        kernel_driver=(card / "driver").resolve().name if (card / "driver").exists() else "",
        drm_card=_first(card / "drm", "card"),
        drm_render=_first(card / "drm", "renderD"),
        nearest_nic=nic,
        nearest_nic_link=link,
    )


def nearest_nic(sys_root: Path, gpu: PciAddress) -> tuple[PciAddress | None, PcieLink | None]:
    """The network card with the shortest way to the card, the lowest address among equal ones; None without any."""
    here = _place(sys_root, gpu)
    ways = [(link_between(here.path, there.path, here.numa == there.numa), nic) for nic, there in _nics(sys_root)]
    link, nic = min(ways, key=lambda way: (_NEAREST_FIRST.index(way[0]), way[1]), default=(None, None))
    return nic, link


def link_between(one: tuple[str, ...], other: tuple[str, ...], same_numa: bool) -> PcieLink:  # noqa: FBT001
    """The way between two devices by the parts of their paths, such as (`pci0000:64`, `0000:64:00.0`, …)."""
    common = 0
    while common < min(len(one), len(other)) and one[common] == other[common]:
        common += 1
    if common == 0:
        return PcieLink.SAME_NODE if same_numa else PcieLink.SYSTEM
    if common == 1:
        return PcieLink.HOST_BRIDGE
    farthest = max(len(one), len(other)) - common
    return PcieLink.SAME_SWITCH if farthest <= _SWITCH_HOPS else PcieLink.SWITCHES


def _nics(sys_root: Path) -> Iterator[tuple[PciAddress, _Place]]:
    """Physical network functions; a virtual one (it has a `physfn`) sits where its physical one does."""
    for device in sorted((sys_root / "bus/pci/devices").glob("*")):
        try:
            kind = (device / "class").read_text()
        except OSError:
            continue  # pulled out while we look
        if kind.startswith(_NETWORK) and not (device / "physfn").exists():
            nic = PciAddress(device.name)
            yield nic, _place(sys_root, nic)


def _place(sys_root: Path, address: PciAddress) -> _Place:
    devices = sys_root.resolve() / "devices"
    real = (sys_root / "bus/pci/devices" / address).resolve()
    path = real.relative_to(devices).parts if real.is_relative_to(devices) else ()
    return _Place(path, numa_node(sys_root, address))


def _first(folder: Path, prefix: str) -> str:
    names = sorted((path.name for path in folder.glob(f"{prefix}[0-9]*")), key=lambda name: (len(name), name))
    return names[0] if names else ""
