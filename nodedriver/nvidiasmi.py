"""Runs nvidia-smi of the driver root, for the few things that NVML has no call for. Knows nothing of what they are.

Its answer is made for people, so only its exit status is believed. It runs in a child with a deadline; one that the
kernel does not let go of even then is left behind, so that nothing here waits for it.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from nodedriver.deadline import seconds_left
from nodedriver.driverroot import find_program, library_folders
from nodedriver.facts import PciAddress
from nodedriver.ports import GpuError


@dataclass(frozen=True, slots=True)
class SmiCall:
    """One call about a card. `fails` says in words what is not so without it; `seconds` is how long it may take.

    Less where the call of the kubelet or the try that it is part of has less left.
    """

    gpu: PciAddress
    fails: str
    arguments: tuple[str, ...]
    seconds: float


def run_nvidia_smi(driver_root: Path, call: SmiCall) -> None:
    """Do it; GpuError where the program is absent, says no, or does not end in time."""
    program = find_program(driver_root, "nvidia-smi")
    if program is None:
        raise GpuError(
            f"GPU {call.gpu}: {call.fails}, since nvidia-smi is not below the driver root {driver_root}: "
            "install it there, or set the driver root to where it is"
        )
    status, said = _run([str(program), *call.arguments], driver_root, call)
    if status:
        words = " ".join(call.arguments)
        raise GpuError(f"GPU {call.gpu}: nvidia-smi {words} ended with {status}: {said or 'it said nothing'}")


def _run(command: list[str], driver_root: Path, call: SmiCall) -> tuple[int, str]:
    """Exit status, and what it said, in one line of at most 400 characters."""
    libraries = ":".join(map(str, library_folders(driver_root)))
    try:
        child = subprocess.Popen(  # noqa: S603 - the program of the driver root, with words that we made
            command,
            env={"PATH": os.defpath, "LD_LIBRARY_PATH": libraries},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise GpuError(f"GPU {call.gpu}: {call.fails}: {error}") from error
    try:
        out, err = child.communicate(timeout=seconds_left(call.seconds))
    except subprocess.TimeoutExpired as error:
        child.kill()
        raise GpuError(f"GPU {call.gpu}: {call.fails}: {error}") from error
    return child.returncode, " ".join((err or out).split())[:400]
