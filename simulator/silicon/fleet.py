"""Fleets from scenario files: the first state of the cards and the tree of files around them, under one root.

`initialise` is all that others call. Written once: later only the MIG capability files change (`tree.py`). Formats are
those of NVIDIA's kernel driver 580 and of Linux' sysfs; a real driver finds nothing here that it must not read.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

import msgspec

from dra.mig.profiles import model_of_product
from simulator.silicon import pci, plaincards
from simulator.silicon.hardware import Gpu, Silicon
from simulator.silicon.launcher import write_launcher
from simulator.silicon.plaincards import PlainCard
from simulator.silicon.state import State
from simulator.silicon.tree import LIBRARIES, Tree, capability_minor, capability_text

SCENARIOS = Path(__file__).parent.parent / "scenarios"
_RESERVED_MEMORY_MIB = 551

# Majors as in /proc/devices; those of nvidia-caps and nvidia-uvm are given out at module load and differ by machine.
_PROC_DEVICES = """Character devices:
  1 mem
195 nvidia
195 nvidia-modeset
195 nvidiactl
237 nvidia-caps
506 nvidia-uvm

Block devices:
  8 sd
"""

_KERNEL = "6.8.0-45-generic"
_ALIASES = """# Aliases extracted from modules themselves.
alias pci:v000010DEd*sv*sd*bc03sc02i00* nvidia
alias vfio_pci:v000010DEd00002342sv*sd*bc*sc*i* nvgrace_gpu_vfio_pci
alias vfio_pci:v*d*sv*sd*bc*sc*i* vfio_pci
"""
_LIBRARY_NAMES = (
    "libcuda",
    "libcudadebugger",
    "libnvidia-ml",
    "libnvidia-ptxjitcompiler",
    "libnvidia-nvvm",
    "libnvidia-gpucomp",
    "libnvidia-opencl",
    "libnvidia-allocator",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CardGroup:
    """Equal cards of a scenario. The lower fields are for products that the MIG table does not know."""

    product: str
    buses: tuple[str, ...]
    numa_node: int
    minors: tuple[int, ...] = ()
    architecture: int = 0
    compute_capability: tuple[int, int] = (0, 0)
    total_memory_mib: int = 0
    pci_device_id: int = 0
    nvlink: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A machine's GPUs as a file describes them."""

    driver_version: str
    cuda_version: int
    gpus: tuple[CardGroup, ...] = ()
    plain: tuple[PlainCard, ...] = ()


def initialise(root: Path, scenario: str = "h100x8", seed: str = "") -> Tree:
    """Make the state file and the tree of a scenario under `root`, and return where things lie.

    `seed` (a node's name) makes UUIDs and serials differ between machines of one scenario. ValueError names what a
    scenario lacks; FileExistsError when `root` holds a machine already.
    """
    tree = Tree(root)
    if tree.state.exists():
        raise FileExistsError(f"{tree.state} exists: this root holds a machine already.")
    described = load(scenario)
    silicon = build(described, seed or scenario)
    root.mkdir(parents=True, exist_ok=True)
    _write_proc(tree, silicon)
    plaincards.write(tree, described.plain)
    for gpu in silicon.gpus:
        pci.write_device(tree.sys, gpu)
    _write_dev(tree, silicon)
    if silicon.gpus:
        _write_driver_root(tree, silicon)
    State(tree.state).create(silicon)
    return tree


def load(scenario: str) -> Scenario:
    """The scenario of that name in simulator/scenarios; ValueError lists the names that exist."""
    path = SCENARIOS / f"{scenario}.toml"
    if not path.exists():
        names = ", ".join(sorted(p.stem for p in SCENARIOS.glob("*.toml")))
        raise ValueError(f"There is no scenario {scenario!r}; there are {names}.")
    return msgspec.toml.decode(path.read_bytes(), type=Scenario)


def build(scenario: Scenario, seed: str) -> Silicon:
    """The first state: index by PCI order, minors as given or equal to the index."""
    places = [(bus, group, n) for group in scenario.gpus for n, bus in enumerate(group.buses)]
    places.sort(key=lambda place: int(place[0], 16))
    gpus = tuple(_gpu(group, n, index, seed) for index, (_, group, n) in enumerate(places))
    return Silicon(driver_version=scenario.driver_version, cuda_version=scenario.cuda_version, gpus=gpus)


def _gpu(group: CardGroup, place: int, index: int, seed: str) -> Gpu:
    model = model_of_product(group.product)
    total = (model.total_memory_mib if model else None) or group.total_memory_mib
    if not total:
        raise ValueError(f"Nothing states the memory of {group.product!r}; give total_memory_mib in the scenario.")
    address = f"0000:{group.buses[place]}:00.0"
    return Gpu(
        pci_address=address,
        uuid=f"GPU-{uuid.uuid5(uuid.NAMESPACE_OID, f'{seed}/{address}')}",
        index=index,
        minor=group.minors[place] if group.minors else index,
        serial=str(1650000000000 + uuid.uuid5(uuid.NAMESPACE_OID, f"{seed}/{address}").int % 10**9),
        product=group.product,
        architecture=model.nvml_architecture if model else group.architecture,
        compute_capability=model.compute_capability if model else group.compute_capability,
        total_memory_mib=total,
        reserved_memory_mib=_RESERVED_MEMORY_MIB,
        pci_device_id=model.pci_device_ids[0] if model else group.pci_device_id,
        pcie_root=f"pci0000:{int(group.buses[place], 16) - 1:02x}",
        numa_node=group.numa_node,
        nvlink=group.nvlink,
    )


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _write_proc(tree: Tree, silicon: Silicon) -> None:
    nvidia = tree.proc / "driver/nvidia"
    version = silicon.driver_version
    _write(tree.proc / "devices", _PROC_DEVICES)
    _write(tree.proc / "sys/kernel/random/boot_id", f"{uuid.uuid4()}\n")
    _write(tree.proc / "sys/kernel/osrelease", f"{_KERNEL}\n")
    _write(tree.proc / "1/root/lib/modules" / _KERNEL / "modules.alias", _ALIASES)
    _write(nvidia / "version", f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {version}  Release Build\n")
    _write(nvidia / "params", "ModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 438\n")
    for gpu in silicon.gpus:
        pci.tell_in_proc(tree.proc, gpu, version)
        (nvidia / "capabilities" / f"gpu{gpu.minor}" / "mig").mkdir(parents=True)
    _write(nvidia / "capabilities/mig/config", capability_text(1))
    _write(nvidia / "capabilities/mig/monitor", capability_text(2))
    _write(tree.proc / "driver/nvidia-caps/mig-minors", _mig_minors())


def _mig_minors() -> str:
    """The driver's fixed table, as far as gpu31/gi14/ci7, whatever cards there are."""
    lines = ["config 1", "monitor 2"]
    for gpu in range(32):
        for gi in range(15):
            lines.append(f"gpu{gpu}/gi{gi}/access {capability_minor(gpu, gi)}")
            lines += [f"gpu{gpu}/gi{gi}/ci{ci}/access {capability_minor(gpu, gi, ci)}" for ci in range(8)]
    return "\n".join(lines) + "\n"


def _write_dev(tree: Tree, silicon: Silicon) -> None:
    """Plain files for device nodes: a CDI device node with explicit numbers does not look at the host's node."""
    cards = [f"nvidia{gpu.minor}" for gpu in silicon.gpus]
    for name in ("nvidiactl", "nvidia-modeset", "nvidia-uvm", "nvidia-uvm-tools", *cards):
        _write(tree.dev / name, "")
    for minor in (1, 2):
        _write(tree.dev / "nvidia-caps" / f"nvidia-cap{minor}", "")


def _write_driver_root(tree: Tree, silicon: Silicon) -> None:
    """Libraries as NVIDIA names them (file, soname link, plain link), and the two programs as launchers.

    The MPS program is a client without options or with words (version 3), and then a process for each command: it
    starts without site packages.
    """
    folder = tree.driver / LIBRARIES
    for name in _LIBRARY_NAMES:
        _write(folder / f"{name}.so.{silicon.driver_version}", f"stand-in for {name}\n")
        (folder / f"{name}.so.1").symlink_to(f"{name}.so.{silicon.driver_version}")
    (folder / "libcuda.so").symlink_to("libcuda.so.1")
    client = 'case "${{1-}}" in ""|[!-]*|-q) exec {python} -S -m simulator.silicon.mps_client "$@";; esac\n'
    write_launcher(tree, "nvidia-cuda-mps-control", "simulator.silicon.mps", before=client)
    write_launcher(tree, "nvidia-smi", "simulator.silicon.smi")
