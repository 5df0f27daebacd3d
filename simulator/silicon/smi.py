"""Stand-in for the two nvidia-smi calls that a node driver needs: `-c` and `compute-policy --set-timeslice`.

There is no NVML call for the time slice. Everything else that nvidia-smi can do is refused, so that nothing comes to
depend on text made for people.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from simulator.silicon import rules
from simulator.silicon.hardware import Gpu
from simulator.silicon.state import State

_COMPUTE_MODES = {"0": 0, "DEFAULT": 0, "2": 2, "PROHIBITED": 2, "3": 3, "EXCLUSIVE_PROCESS": 3}
_NOT_FOUND = 6  # nvidia-smi's exit status for a device that is not there


def main() -> int:
    """Run as the program; returns its exit status."""
    parser = _parser()
    arguments = parser.parse_args()
    if arguments.compute_mode is not None:
        mode = _COMPUTE_MODES[arguments.compute_mode]
        return _change(arguments.id, lambda gpu: rules.set_compute_mode(gpu, mode), "Set compute mode")
    if arguments.command != "compute-policy":
        parser.error("this stand-in knows -c and compute-policy --set-timeslice")
    wanted = arguments.timeslice
    return _change(arguments.policy_id, lambda gpu: replace(gpu, timeslice=wanted), "Successfully updated timeslice")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="nvidia-smi")
    parser.add_argument("-i", dest="id")
    parser.add_argument("-c", dest="compute_mode", choices=sorted(_COMPUTE_MODES))
    commands = parser.add_subparsers(dest="command")
    policy = commands.add_parser("compute-policy")
    policy.add_argument("-i", dest="policy_id")
    policy.add_argument("--set-timeslice", dest="timeslice", type=int, choices=range(4), required=True)
    return parser


def _change(name: str | None, step: Callable[[Gpu], Gpu], words: str) -> int:
    """Apply `step` to the named card, or to all when none is named."""
    state = State(Path(os.environ["SILICON_STATE"]))
    chosen = [gpu for gpu in state.read().gpus if name in (None, gpu.uuid, str(gpu.index), gpu.pci_address)]
    if not chosen:
        sys.stderr.write(f"No devices were found for {name}\n")
        return _NOT_FOUND
    for gpu in chosen:
        state.change_gpu(gpu.pci_address, lambda found: (step(found), None))
        sys.stdout.write(f"{words} for GPU 0000{gpu.pci_address.upper()}.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
