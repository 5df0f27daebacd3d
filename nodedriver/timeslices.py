"""The time slice of a whole card, by nvidia-smi: NVML has no call for it. Fulfils `nodedriver.ports.TimeSlices`.

`nvidia-smi compute-policy --set-timeslice` takes 0 default, 1 short, 2 medium, 3 long. Its answer is made for people,
so only its exit status is believed.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from nodedriver.driverroot import find_program, library_folders
from nodedriver.facts import PciAddress
from nodedriver.gpuconfig import Interval
from nodedriver.ports import GpuError

_NUMBERS = {Interval.DEFAULT: 0, Interval.SHORT: 1, Interval.MEDIUM: 2, Interval.LONG: 3}
_SECONDS = 10.0  # nvidia-smi looks at every card first: 5.4 s were seen on a node of eight with MIG


class NvidiaSmi:
    """The program below the driver root."""

    def __init__(self, driver_root: Path) -> None:
        self._driver_root = driver_root

    def set(self, gpu: PciAddress, interval: Interval) -> None:
        """Give the card's processes time slices of that length; GpuError where nvidia-smi is absent or says no."""
        program = find_program(self._driver_root, "nvidia-smi")
        if program is None:
            raise GpuError(
                f"GPU {gpu}: its time slice can't be set to {interval}, since nvidia-smi is not below the driver root "
                f"{self._driver_root}: install it there, or set the driver root to where it is"
            )
        command = [str(program), "compute-policy", "-i", gpu, "--set-timeslice", str(_NUMBERS[interval])]
        environment = {
            "PATH": os.defpath,
            "LD_LIBRARY_PATH": ":".join(map(str, library_folders(self._driver_root))),
        }
        try:
            done = subprocess.run(  # noqa: S603 - the program of the driver root, with words that we made
                command,
                env=environment,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise GpuError(f"GPU {gpu}: its time slice can't be set to {interval}: {error}") from error
        if done.returncode:
            said = " ".join((done.stderr or done.stdout).split())[:400]
            raise GpuError(
                f"GPU {gpu}: nvidia-smi compute-policy --set-timeslice {_NUMBERS[interval]} ended with "
                f"{done.returncode}: {said or 'it said nothing'}"
            )
