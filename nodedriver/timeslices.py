"""The time slice of a whole card, by nvidia-smi: NVML has no call for it. Fulfils `nodedriver.ports.TimeSlices`.

`nvidia-smi compute-policy --set-timeslice` takes 0 default, 1 short, 2 medium, 3 long.
"""

from __future__ import annotations

from pathlib import Path

from nodedriver.facts import PciAddress
from nodedriver.gpuconfig import Interval
from nodedriver.nvidiasmi import SmiCall, run_nvidia_smi

_NUMBERS = {Interval.DEFAULT: 0, Interval.SHORT: 1, Interval.MEDIUM: 2, Interval.LONG: 3}
_SECONDS = 10.0  # nvidia-smi looks at every card first: 5.4 s were seen on a node of eight with MIG


class NvidiaSmi:
    """The program below the driver root."""

    def __init__(self, driver_root: Path) -> None:
        self._driver_root = driver_root

    def set(self, gpu: PciAddress, interval: Interval) -> None:
        """Give the card's processes time slices of that length; GpuError where nvidia-smi is absent or says no."""
        arguments = ("compute-policy", "-i", gpu, "--set-timeslice", str(_NUMBERS[interval]))
        run_nvidia_smi(
            self._driver_root, SmiCall(gpu, f"its time slice can't be set to {interval}", arguments, _SECONDS)
        )
