"""The node's processes as /proc shows them: who has which card open, and how kubelet and runtime were started.

Reads only. A process may end while it is looked at: what can't be read of it is left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dra.names import ClaimUID
from nodedriver.marks import marked_with

_CARD = re.compile(r"/dev/nvidia(\d+)")
_POD = re.compile(r"pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})")  # the kubelet's cgroups, either driver
# NVIDIA's services, which keep nobody from a card: a reset works while they run, since they are not among the clients
# that NVIDIA's GPU Operator stops for a mode change, and HGX boards need the fabric manager for it. Names as
# /proc/pid/comm cuts them.
SERVICES = ("nvidia-persiste", "nv-fabricmanage")
_OURS = ("nvidia-cuda-mps", *SERVICES)  # MPS is no stranger either, though a card is not reset under it


@dataclass(frozen=True, slots=True)
class Process:
    """One process; `command` is its argument vector."""

    pid: int
    name: str
    command: tuple[str, ...]
    folder: Path

    @property
    def pod(self) -> str:
        """The uid of the pod that it belongs to, "" outside of pods."""
        match = _POD.search(_read(self.folder / "cgroup"))
        return match[1].replace("_", "-") if match else ""

    @property
    def claims(self) -> frozenset[ClaimUID]:
        """The claims that its environment is marked with."""
        return marked_with(_read(self.folder / "environ").encode())

    @property
    def is_ours(self) -> bool:
        """Whether it is the driver, its supervisor, or a part of NVIDIA's driver."""
        return self.name.startswith(_OURS) or any(part.startswith("nodedriver.") for part in self.command)

    def option(self, *names: str) -> str:
        """The value of a command line option, as `--config x` or `--config=x`; "" where it was not given."""
        for name in names:
            for part, following in zip(self.command, (*self.command[1:], ""), strict=True):
                if part == name:
                    return following
                if part.startswith(f"{name}="):
                    return part.removeprefix(f"{name}=")
        return ""

    def minors(self) -> frozenset[int]:
        """The device minors of the cards that it has open."""
        try:
            links = os.listdir(self.folder / "fd")  # noqa: PTH208 - names alone, of many processes
        except OSError:
            return frozenset()
        targets = (_target(f"{self.folder}/fd/{link}") for link in links)
        return frozenset(int(match[1]) for target in targets if (match := _CARD.fullmatch(target)))


def processes(proc_root: Path) -> Iterator[Process]:
    """Every process of the node, by pid."""
    for folder in sorted(proc_root.glob("[0-9]*"), key=lambda path: int(path.name) if path.name.isdigit() else 0):
        command = _read(folder / "cmdline").rstrip("\0")
        yield Process(
            pid=int(folder.name) if folder.name.isdigit() else 0,
            name=_read(folder / "comm").strip(),
            command=tuple(command.split("\0")) if command else (),
            folder=folder,
        )


def _target(link: str) -> str:
    try:
        return os.readlink(link)  # noqa: PTH115 - of every file of every process: no Path for each
    except OSError:
        return ""


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
