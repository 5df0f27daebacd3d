"""Which processes have a device node open, by the links in /proc: who is in the way of unbinding a card.

Looks only. The driver runs with the node's process ids; a process that ends meanwhile holds nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path


def pids_with(proc_root: Path, nodes: Collection[str]) -> set[int]:
    """The processes that have one of these nodes open."""
    pids = {int(entry.name) for entry in proc_root.iterdir() if entry.name.isdecimal()}
    return {pid for pid in pids if not _open(proc_root, pid).isdisjoint(nodes)}


def named(proc_root: Path, pids: Iterable[int]) -> str:
    """The processes as `name (pid)`, in the order of their ids."""
    return ", ".join(f"{_name(proc_root, pid)} ({pid})" for pid in sorted(pids))


def _open(proc_root: Path, pid: int) -> set[str]:
    try:
        return set(_links(proc_root / str(pid) / "fd"))
    except OSError:
        return set()


def _links(folder: Path) -> Iterator[str]:
    for entry in folder.iterdir():
        try:
            yield str(entry.readlink())
        except OSError:
            continue


def _name(proc_root: Path, pid: int) -> str:
    try:
        return (proc_root / str(pid) / "comm").read_text().strip()
    except OSError:
        return "process"
