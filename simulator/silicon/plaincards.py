"""Cards of AMD and Intel, as scenario files describe them: PCI devices in sysfs with what their kernel drivers show.

Formats: Documentation/ABI/testing/sysfs-bus-pci and Documentation/gpu/amdgpu of Linux. Nothing of them ever changes, so
they have no state.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from simulator.silicon.tree import Tree

_DRM_MAJOR, _KFD_MAJOR = 226, 234  # the second is given out at module load and differs by machine
_FIRST_RENDER_NODE = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainCard:
    """One PCI function. `files` are further files of its folder in sysfs, `hex_files` such with binary content.

    `drm` is the number of its DRM card, None where no graphics driver has it; `bridge` is false where it sits on the
    root complex itself.
    """

    address: str
    vendor: str
    device: str
    pci_class: str = "0x030000"
    driver: str = ""
    numa_node: int = 0
    drm: int | None = None
    bridge: bool = True
    files: dict[str, str] = field(default_factory=dict)
    hex_files: dict[str, str] = field(default_factory=dict)


def write(tree: Tree, cards: tuple[PlainCard, ...]) -> None:
    """Write all of them, and amdgpu's compute node where it has one."""
    for card in cards:
        _write_card(tree.sys, card)
    if any(card.driver == "amdgpu" for card in cards):
        _text(tree.sys / "class/kfd/kfd/dev", f"{_KFD_MAJOR}:0")


def _write_card(sys_root: Path, card: PlainCard) -> None:
    folder = sys_root / "devices" / _below_root(card) / card.address
    given = {"vendor": card.vendor, "device": card.device, "class": card.pci_class, "numa_node": str(card.numa_node)}
    for name, content in (given | card.files).items():
        _text(folder / name, content)
    for name, digits in card.hex_files.items():
        (folder / name).write_bytes(bytes.fromhex(digits))
    _link(sys_root / "bus/pci/devices" / card.address, folder)
    if card.driver:
        _link(folder / "driver", sys_root / "bus/pci/drivers" / card.driver)
    if card.drm is not None:
        _text(folder / f"drm/card{card.drm}/dev", f"{_DRM_MAJOR}:{card.drm}")
        render = _FIRST_RENDER_NODE + card.drm
        _text(folder / f"drm/renderD{render}/dev", f"{_DRM_MAJOR}:{render}")


def _below_root(card: PlainCard) -> str:
    """Behind a bridge of a root complex of its own, which has the number before its bus; or on the root's own bus."""
    domain, bus, _ = card.address.split(":")
    if not card.bridge:
        return f"pci{domain}:{bus}"
    root = f"{domain}:{int(bus, 16) - 1:02x}"
    return f"pci{root}/{root}:00.0"


def _text(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{content}\n")


def _link(link: Path, to: Path) -> None:
    to.mkdir(parents=True, exist_ok=True)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(os.path.relpath(to, link.parent))
