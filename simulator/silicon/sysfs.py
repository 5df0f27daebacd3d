"""What the kernel does about writes to sysfs' bind and unbind, and who has which card open.

The files are plain ones: what was written to them counts from the moment that anyone in a process with `answer` opens
a `uevent` below sys/bus/pci next, since nobody can know earlier. Files only grow; how far they were read stands in the
state, so that no write is lost. A card that is held is not unbound; one whose `unbind` is a pipe (`hang`) blocks the
writer, as the kernel does.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from dataclasses import replace
from pathlib import Path

from simulator.silicon import pci
from simulator.silicon.hardware import ComputeMode, Gpu, Silicon
from simulator.silicon.state import State, alone, with_gpu
from simulator.silicon.tree import Tree

_trees: dict[str, Tree] = {}
_busy = threading.local()


def answer(tree: Tree) -> None:
    """Do from now on what is written below the tree's sys/bus/pci. There is no way back: audit hooks stay."""
    if not _trees:
        sys.addaudithook(_look)
    _trees[f"{tree.sys}/bus/pci/"] = tree


def settle(tree: Tree) -> None:
    """Do what was written and not done yet, and show who has which card open."""
    _show_holders(tree)
    state = State(tree.state)
    if _unread(tree, state.read()):
        state.change(lambda silicon: (_done(tree, silicon), None))


def hang(tree: Tree, driver: str = "nvidia") -> None:
    """Let every write to that driver's `unbind` block, until `relent`."""
    file = _unbind_file(tree, driver)
    file.rename(file.with_name(".unbind"))
    os.mkfifo(file)


def relent(tree: Tree, driver: str = "nvidia") -> None:
    """Let unbinding work again; what waits in the kernel goes on, and does what it was asked to."""
    file = _unbind_file(tree, driver)
    kept = file.with_name(".unbind")
    reader = os.open(file, os.O_RDONLY | os.O_NONBLOCK)  # whoever waits to open it goes on
    os.set_blocking(reader, True)
    with os.fdopen(reader, "rb") as pipe, kept.open("ab") as target:
        target.write(pipe.read())
    kept.rename(file)


def _look(event: str, arguments: tuple[object, ...]) -> None:
    path = arguments[0] if event == "open" else None
    if not isinstance(path, str) or not path.endswith("/uevent") or getattr(_busy, "settling", False):
        return
    tree = next((tree for start, tree in _trees.items() if path.startswith(start)), None)
    if tree is not None and (tree.sys / "bus/pci/drivers/vfio-pci").exists():
        _busy.settling = True
        try:
            settle(tree)
        finally:
            _busy.settling = False


def _show_holders(tree: Tree) -> None:
    """Let the tree's /proc say what the real one says of the tree's device nodes: who has which open.

    One at a time, and only what changed is written: nobody who reads meanwhile misses a holder that stays.
    """
    with alone(tree.root / "holders.lock"):
        found = {pid: nodes for pid in _pids(Path("/proc")) if (nodes := _open_nodes(pid, f"{tree.dev}/"))}
        for pid in _pids(tree.proc) - found.keys() - {1}:
            shutil.rmtree(tree.proc / str(pid), ignore_errors=True)
        for pid, nodes in found.items():
            _show_holder(tree.proc / str(pid), _name(pid), nodes)


def _show_holder(folder: Path, name: str, nodes: dict[str, str]) -> None:
    (folder / "fd").mkdir(parents=True, exist_ok=True)
    (folder / "comm").write_text(name)
    shown = {link.name: str(link.readlink()) for link in (folder / "fd").iterdir()}
    for number, _ in shown.items() - nodes.items():
        (folder / "fd" / number).unlink()
    for number, node in nodes.items() - shown.items():
        (folder / "fd" / number).symlink_to(node)


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:  # it ended just now
        return ""


def _pids(proc: Path) -> set[int]:
    return {int(entry.name) for entry in proc.iterdir() if entry.name.isdecimal()}


def _open_nodes(pid: int, dev: str) -> dict[str, str]:
    """The device nodes that a process has open, by the descriptor's number, as a machine of its own would name them."""
    folder = Path(f"/proc/{pid}/fd")
    try:
        links = {number: _target(folder / number) for number in os.listdir(folder)}  # noqa: PTH208 - names are wanted
    except OSError:
        return {}
    return {number: f"/dev/{link.removeprefix(dev)}" for number, link in links.items() if link.startswith(dev)}


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except FileNotFoundError:  # closed just now; the others are as open as before
        return ""


def _unbind_file(tree: Tree, driver: str) -> Path:
    return tree.sys / "bus/pci/drivers" / driver / "unbind"


def _unread(tree: Tree, silicon: Silicon) -> list[tuple[str, str]]:
    """Each file that was written to, and the new text in it; what unbinds comes first.

    But it is read last: whoever is seen to bind has been seen to unbind before.
    """
    bus = tree.sys / "bus/pci"
    files = [bus / "drivers_probe", *sorted(bus.glob("drivers/*/bind")), *sorted(bus.glob("drivers/*/unbind"))]
    names = [file.relative_to(bus).as_posix() for file in files if file.is_file()]
    found = [(name, (bus / name).read_text()[silicon.sysfs_read.get(name, 0) :]) for name in names]
    return [(name, text) for name, text in reversed(found) if text]


def _done(tree: Tree, silicon: Silicon) -> Silicon:
    for name, text in _unread(tree, silicon):
        read = silicon.sysfs_read.get(name, 0) + len(text)  # others may write meanwhile
        silicon = replace(silicon, sysfs_read={**silicon.sysfs_read, name: read})
        for address in text.split():
            silicon = _do(tree, silicon, name, address)
    return silicon


def _do(tree: Tree, silicon: Silicon, name: str, address: str) -> Silicon:
    """One write. What the kernel would refuse changes nothing."""
    current = pci.driver_of(tree.sys, address)
    override = pci.override_of(tree.sys, address)
    gpu = next((gpu for gpu in silicon.gpus if gpu.pci_address == address), None)
    driver = name.split("/")[1] if "/" in name else override or (pci.NVIDIA if gpu else "")
    if name.endswith("/unbind"):
        if current != driver or (gpu and _is_held(tree, gpu)):
            return silicon
        pci.unbind(tree.sys, address)
        driver = ""
    else:
        if current or not driver or override not in ("", driver):
            return silicon
        pci.bind(tree.sys, address, driver)
    return with_gpu(silicon, _with_driver(tree, gpu, driver, silicon.driver_version)) if gpu else silicon


def _with_driver(tree: Tree, gpu: Gpu, driver: str, version: str) -> Gpu:
    """A card that was without NVIDIA's driver starts afresh."""
    pci.tell_in_proc(tree.proc, gpu, version if driver == pci.NVIDIA else None)
    for node in _vfio_nodes(tree, gpu):
        node.parent.mkdir(parents=True, exist_ok=True)
        if "vfio" in driver:
            node.touch()
        else:
            node.unlink(missing_ok=True)
    return replace(
        gpu, driver=driver, persistence=False, compute_mode=ComputeMode.DEFAULT, timeslice=0, mig_current=False,
        mig_pending=False, gpu_instances=(), processes=(),
    )  # fmt: skip


def _is_held(tree: Tree, gpu: Gpu) -> bool:
    """By a process, a session of NVML, a virtual machine, or the kernel module itself (persistence mode)."""
    if gpu.driver == pci.NVIDIA:
        return gpu.persistence or bool(gpu.processes) or _is_open(tree, tree.gpu_node(gpu.minor))
    return any(_is_open(tree, node) for node in _vfio_nodes(tree, gpu))


def _vfio_nodes(tree: Tree, gpu: Gpu) -> tuple[Path, Path]:
    return tree.dev / "vfio" / str(gpu.index), tree.dev / "vfio/devices" / f"vfio{gpu.index}"


def _is_open(tree: Tree, node: Path) -> bool:
    name = f"/dev/{node.relative_to(tree.dev)}"
    return any(name in _open_nodes(pid, f"{tree.dev}/").values() for pid in _pids(Path("/proc")))
