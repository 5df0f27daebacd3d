"""`make test GPU=1`: the idle NVIDIA GPU of this machine that the contract tests use, or one line that says why none.

A run as a program only looks. A card is idle when it has no process and no GPU instance.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pynvml

from nodedriver.driverroot import find_nvml
from nodedriver.facts import PciAddress
from nodedriver.nvml import Nvml
from nodedriver.ports import GpuError


class NoGpuError(Exception):
    """There is no card that the tests may use. The text says why."""


def open_real() -> Nvml:
    """The driver's door to the real NVML; NoGpuError where there is none."""
    try:
        return Nvml(library=find_nvml(Path("/")), sys_root=Path("/sys"))
    except (GpuError, OSError) as error:
        raise NoGpuError(f"make test GPU=1 needs a machine with an NVIDIA GPU: {error}") from error


def idle(gpus: Nvml) -> PciAddress:
    """The first card that nobody uses; NoGpuError where there is none."""
    found = gpus.facts()
    for facts in found:
        handle = pynvml.nvmlDeviceGetHandleByPciBusId(facts.pci_address)
        if not facts.instances and not pynvml.nvmlDeviceGetComputeRunningProcesses(handle):
            return facts.pci_address
    raise NoGpuError(f"make test GPU=1 needs an idle NVIDIA GPU: each of {len(found)} has a process or a GPU instance")


def main() -> int:
    """0 when there is a card, else 2 and the reason."""
    try:
        gpus = open_real()
        try:
            address = idle(gpus)
        finally:
            gpus.close()
    except NoGpuError as error:
        print(f"portico: {error}", file=sys.stderr)
        return 2
    print(f"portico: the contract with NVML is tested on GPU {address}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
