"""The reset of a whole card, by nvidia-smi: NVML has no call for it. Fulfils `nodedriver.ports.Resets`.

`nvidia-smi --gpu-reset` refuses while any process has the card open, a monitoring agent or this driver's own NVML
session included, and on cards that are joined by NVLink without a fabric manager.
"""

from __future__ import annotations

from pathlib import Path

from nodedriver.facts import PciAddress
from nodedriver.nvidiasmi import SmiCall, run_nvidia_smi

# A reset takes 5 to 10 s, and this driver's calls to NVML wait meanwhile: those of the kubelet end after 45.
RESET_SECONDS = 40.0


class NvidiaSmiReset:
    """The program below the driver root."""

    def __init__(self, driver_root: Path) -> None:
        self._driver_root = driver_root

    def reset(self, gpu: PciAddress) -> None:
        """Reset the card; GpuError where nvidia-smi is absent, says no or does not end in 40 s."""
        run_nvidia_smi(self._driver_root, SmiCall(gpu, "it can't be reset", ("--gpu-reset", "-i", gpu), RESET_SECONDS))
