"""The device nodes of AMD's and Intel's cards, with the numbers that sysfs tells (`dev` files: major:minor).

AMD: the card's DRM nodes and /dev/kfd, which all of ROCm goes through and which shows a process only the cards whose
render node its cgroup allows. Intel: the card's DRM nodes.
"""

from __future__ import annotations

import re
from pathlib import Path

from nodedriver.facts import DeviceNode, PciAddress, Vendor
from nodedriver.ports import GpuError
from nodedriver.vendors.files import text

_DRM = re.compile(r"card\d+|renderD\d+")
_NUMBERS = re.compile(r"(\d+):(\d+)")


def plain_nodes(sys_root: Path, card: PciAddress, vendor: Vendor) -> tuple[DeviceNode, ...]:
    """What a container needs of that card. GpuError where its kernel driver shows nothing."""
    folder = sys_root / "bus/pci/devices" / card / "drm"
    drm = [path for path in sorted(folder.glob("*")) if _DRM.fullmatch(path.name)]
    if not drm:
        raise GpuError(
            f"GPU {card} can't be given to a container: {folder} shows no DRM node, so no graphics driver has the "
            "card. See the kernel log (dmesg), load the driver of its vendor, and start the node driver again."
        )
    nodes = [_node(path / "dev", f"/dev/dri/{path.name}") for path in drm]
    kfd = sys_root / "class/kfd/kfd/dev"
    return (_node(kfd, "/dev/kfd"), *nodes) if vendor is Vendor.AMD and kfd.exists() else tuple(nodes)


def _node(file: Path, path: str) -> DeviceNode:
    found = _NUMBERS.fullmatch(text(file) or "")
    if found is None:
        raise GpuError(f"{file} does not tell the numbers of {path} as major:minor. See the kernel log (dmesg).")
    return DeviceNode(path, int(found[1]), int(found[2]))
