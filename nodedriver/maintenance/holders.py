"""Who has a card open: the processes that stand in the way of a reset, by their open device nodes in /proc.

NVML names only those that compute or draw; monitoring agents hold the node of a card too (proc(5), /proc/pid/fd).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from nodedriver.doctor.processes import SERVICES

_NODE = re.compile(r"/dev/nvidia([0-9]+)$")


def holders(proc_root: Path, minor: int, known: Iterable[int]) -> tuple[str, ...]:
    """Those of the card of that device minor in words, by process id; `known` are ids that NVML gave.

    This process is none of them: it lets go for a reset.
    """
    found = {*known, *(pid for pid in _processes(proc_root) if minor in _open_cards(proc_root / str(pid)))}
    named = {pid: _name(proc_root / str(pid)) for pid in sorted(found - {os.getpid()})}
    return tuple(f"process {pid} ({name})" for pid, name in named.items() if name not in SERVICES)


def _processes(proc_root: Path) -> Iterator[int]:
    return (int(entry.name) for entry in proc_root.iterdir() if entry.name.isdigit())


def _open_cards(process: Path) -> set[int]:
    """Minors of the cards that it has open. A process that ends meanwhile has none."""
    try:
        links = [str(link.readlink()) for link in (process / "fd").iterdir()]
    except OSError:
        return set()
    return {int(match[1]) for link in links if (match := _NODE.search(link))}


def _name(process: Path) -> str:
    try:
        return (process / "comm").read_text().strip()
    except OSError:
        return "unknown"
