"""Which device nodes a container needs, with the numbers that NVIDIA's kernel modules tell in /proc.

The numbers are read and no node on the host is looked at: those of MIG instances are made by a helper of NVIDIA's, on
demand, and may be missing there.
"""

from __future__ import annotations

import re
from pathlib import Path

from nodedriver.facts import DeviceNode, PciAddress
from nodedriver.ports import GpuError

_NVIDIA_MAJOR = 195  # Documentation/admin-guide/devices.txt of Linux
_CONTROL_MINOR = 255


def driver_version(proc_root: Path) -> str | None:
    """The version of NVIDIA's kernel modules; None where they are not loaded."""
    try:
        text = (proc_root / "driver/nvidia/version").read_text()
    except OSError:
        return None
    found = re.search(r"^NVRM version:.*? (\d+(\.\d+)+)\s", text)
    return found[1] if found else None


def control_nodes(proc_root: Path) -> tuple[DeviceNode, ...]:
    """The nodes that every CUDA process opens, whichever GPU it uses."""
    unified_memory = _major(proc_root, "nvidia-uvm", "load it with nvidia-modprobe -u")
    return (
        DeviceNode("/dev/nvidiactl", _NVIDIA_MAJOR, _CONTROL_MINOR),
        DeviceNode("/dev/nvidia-uvm", unified_memory, 0),
        DeviceNode("/dev/nvidia-uvm-tools", unified_memory, 1),
    )


def gpu_node(minor: int) -> DeviceNode:
    """The node of a GPU; MIG instances on it need it too."""
    return DeviceNode(f"/dev/nvidia{minor}", _NVIDIA_MAJOR, minor)


def gpu_minor(proc_root: Path, gpu: PciAddress) -> int:
    """The number of its node now: it may be another one after the card had another driver."""
    information = proc_root / f"driver/nvidia/gpus/{gpu}/information"
    match = re.search(r"^Device Minor:\s*(\d+)$", _read(information), re.MULTILINE)
    if match is None:
        raise GpuError(f"{information} has no line Device Minor: the NVIDIA driver is of a version that we do not know")
    return int(match[1])


def mig_nodes(proc_root: Path, gpu_minor: int, gpu_instance: int, compute_instance: int) -> tuple[DeviceNode, ...]:
    """The capability nodes of a GPU instance and of the compute instance in it."""
    major = _major(proc_root, "nvidia-caps", "it comes with NVIDIA's driver, 450 or newer")
    instance = proc_root / f"driver/nvidia/capabilities/gpu{gpu_minor}/mig/gi{gpu_instance}"
    minors = (_capability_minor(instance / "access"), _capability_minor(instance / f"ci{compute_instance}/access"))
    return tuple(DeviceNode(f"/dev/nvidia-caps/nvidia-cap{minor}", major, minor) for minor in minors)


def _major(proc_root: Path, name: str, next_step: str) -> int:
    """The major number of a character device (proc(5), /proc/devices)."""
    characters = _read(proc_root / "devices").partition("Block devices:")[0]
    match = re.search(rf"^\s*(\d+) {re.escape(name)}$", characters, re.MULTILINE)
    if match is None:
        raise GpuError(f"{proc_root}/devices has no {name}, so its kernel module is not loaded: {next_step}")
    return int(match[1])


def _capability_minor(access: Path) -> int:
    match = re.search(r"^DeviceFileMinor:\s*(\d+)$", _read(access), re.MULTILINE)
    if match is None:
        raise GpuError(f"{access} has no line DeviceFileMinor: the NVIDIA driver is of a version that we do not know")
    return int(match[1])


def _read(path: Path) -> str:
    try:
        with path.open("rb", buffering=0) as file:  # whole: a text layer would cost each prepare more than reading
            return file.read().decode()
    except OSError as error:
        raise GpuError(f"{path} can't be read: {error.strerror}. See whether NVIDIA's driver is loaded.") from error


def environment_of(proc_root: Path, pid: int) -> bytes:
    """A process's environment as it was started (proc_pid_environ(5)); empty where it is gone or not ours to read."""
    try:
        return (proc_root / str(pid) / "environ").read_bytes()
    except OSError:
        return b""
