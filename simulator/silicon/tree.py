"""Where the stand-in's files lie under its root, and the few that follow the state.

`Tree` names the places; `keep_in_step` makes the MIG capability files equal to the instances that exist
(nvidia.ko, /proc/driver/nvidia/capabilities) and refreshes what the stand-in libcuda knows. It compares and repairs, so
that a process killed between state and files harms nothing for longer than until the card's next change.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from simulator.silicon.hardware import Gpu

LIBRARIES = "usr/lib/x86_64-linux-gnu"


@dataclass(frozen=True, slots=True)
class Tree:
    """The places under one root. `proc`, `sys`, `dev` and `driver` are what the driver's root settings point at."""

    root: Path

    @property
    def state(self) -> Path:
        return self.root / "silicon.json"

    @property
    def proc(self) -> Path:
        return self.root / "proc"

    @property
    def sys(self) -> Path:
        return self.root / "sys"

    @property
    def dev(self) -> Path:
        return self.root / "dev"

    @property
    def driver(self) -> Path:
        return self.root / "driver"

    def gpu_node(self, minor: int) -> Path:
        """The device node of a card."""
        return self.dev / f"nvidia{minor}"


def capability_minor(gpu_minor: int, gi: int, ci: int | None = None) -> int:
    """Minor of a capability device: 3 for gpu0/gi0, then each GPU instance and its 8 compute instances in turn."""
    return 3 + (gpu_minor * 15 + gi) * 9 + (0 if ci is None else ci + 1)


def capability_text(minor: int) -> str:
    """An access file of /proc/driver/nvidia/capabilities. Mode 256 is 0400."""
    return f"DeviceFileMinor: {minor}\nDeviceFileMode: 256\nDeviceFileModify: 1\n"


def keep_in_step(root: Path, changed: Iterable[Gpu], text: bytes, driver_version: str) -> None:
    """Make the files that follow the state equal to it: of the cards that changed, and the library's. `text` is the
    state's own file.
    """
    tree = Tree(root)
    capabilities = tree.proc / "driver/nvidia/capabilities"
    for gpu in changed:
        _keep_gpu_in_step(capabilities / f"gpu{gpu.minor}" / "mig", gpu)
    _refresh_library(tree.driver / LIBRARIES / f"libcuda.so.{driver_version}", text)


def _keep_gpu_in_step(folder: Path, gpu: Gpu) -> None:
    wanted = _access_files(gpu)
    top = len(f"{folder}/")
    present = {f"{inside[top:]}/access" for inside, _, files in os.walk(folder) if "access" in files}
    for name in sorted(present - wanted.keys()):
        _remove(folder, Path(name).parent)
    for name, minor in wanted.items():
        if name not in present:
            _write(folder / name, capability_text(minor))


def _remove(folder: Path, instance: Path) -> None:
    """Remove an instance's folder; one that went with its parent is gone already."""
    if (folder / instance).exists():
        shutil.rmtree(folder / instance)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _access_files(gpu: Gpu) -> dict[str, int]:
    files = {}
    for gi in gpu.gpu_instances:
        files[f"gi{gi.id}/access"] = capability_minor(gpu.minor, gi.id)
        for ci in gi.compute_instances:
            files[f"gi{gi.id}/ci{ci.id}/access"] = capability_minor(gpu.minor, gi.id, ci.id)
    return files


def _refresh_library(library: Path, text: bytes) -> None:
    """Write the state into the stand-in libcuda, in place: a container has this very file bind-mounted.

    So a CUDA program in a container sees the cards as they are, and only where the driver gave it the library.
    """
    if not library.exists():
        return
    with library.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(text)
        file.truncate()
