"""Stand-in for the nvidia-smi calls that a node driver needs: `-c`, `compute-policy --set-timeslice`, `--gpu-reset`.

There is no NVML call for the time slice and the reset. Everything else that nvidia-smi can do is refused, so that
nothing comes to depend on text made for people.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from simulator.silicon import faults, rules
from simulator.silicon.hardware import Gpu, Injection, NvmlReturn
from simulator.silicon.rules import Refused
from simulator.silicon.state import State
from simulator.silicon.tree import Tree

RESET = "nvidia-smi --gpu-reset"  # by which an injection names it
_COMPUTE_MODES = {"0": 0, "DEFAULT": 0, "2": 2, "PROHIBITED": 2, "3": 3, "EXCLUSIVE_PROCESS": 3}
_NOT_FOUND = 6  # nvidia-smi's exit status for a device that is not there
_OTHERWISE = 255


def main() -> int:
    """Run as the program; returns its exit status."""
    parser = _parser()
    arguments = parser.parse_args()
    if arguments.reset:
        return _reset(arguments.id)
    if arguments.compute_mode is not None:
        mode = _COMPUTE_MODES[arguments.compute_mode]
        return _change(arguments.id, lambda gpu: rules.set_compute_mode(gpu, mode), "Set compute mode")
    if arguments.command != "compute-policy":
        parser.error("this stand-in knows -c, --gpu-reset and compute-policy --set-timeslice")
    wanted = arguments.timeslice
    return _change(arguments.policy_id, lambda gpu: replace(gpu, timeslice=wanted), "Successfully updated timeslice")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="nvidia-smi")
    parser.add_argument("-i", dest="id")
    parser.add_argument("-c", dest="compute_mode", choices=sorted(_COMPUTE_MODES))
    parser.add_argument("--gpu-reset", dest="reset", action="store_true")
    commands = parser.add_subparsers(dest="command")
    policy = commands.add_parser("compute-policy")
    policy.add_argument("-i", dest="policy_id")
    policy.add_argument("--set-timeslice", dest="timeslice", type=int, choices=range(4), required=True)
    return parser


def _change(name: str | None, step: Callable[[Gpu], Gpu], words: str) -> int:
    """Apply `step` to the named card, or to all when none is named."""
    state = _state()
    chosen = [gpu for gpu in state.read().gpus if name in (None, gpu.uuid, str(gpu.index), gpu.pci_address)]
    if not chosen:
        sys.stderr.write(f"No devices were found for {name}\n")
        return _NOT_FOUND
    for gpu in chosen:
        state.change_gpu(gpu.pci_address, lambda found: (step(found), None))
        sys.stdout.write(f"{words} for GPU 0000{gpu.pci_address.upper()}.\n")
    return 0


def _reset(name: str | None) -> int:
    """Reset the cards, unless a process holds one: by a context on it, or by its device node that it has open."""
    fault = _state().change(lambda silicon: faults.taken(silicon, RESET, name or "")) or Injection(function=RESET)
    time.sleep(fault.before_ms / 1000)
    try:
        done = _change(name, lambda gpu: _reset_unless_open(gpu, fault.code), "Successfully reset")
    except Refused as refusal:
        busy = refusal.code == NvmlReturn.IN_USE
        why = "is currently in use by another process" if busy else f"could not be reset ({refusal.code})"
        sys.stderr.write(f"GPU {name} {why}.\n")
        return _OTHERWISE
    time.sleep(fault.after_ms / 1000)
    return done


def _reset_unless_open(gpu: Gpu, code: int) -> Gpu:
    if code:
        raise Refused(code)
    node = Tree(_state().path.parent).gpu_node(gpu.minor).stat()
    if any(_is_node(link, node) for link in Path("/proc").glob("[0-9]*/fd/*")):
        raise Refused(NvmlReturn.IN_USE)
    return rules.reset(gpu)


def _is_node(link: Path, node: os.stat_result) -> bool:
    try:
        return os.path.samestat(link.stat(), node)
    except OSError:
        return False  # the process or its file went away, or is another user's


def _state() -> State:
    return State(Path(os.environ["SILICON_STATE"]))


if __name__ == "__main__":
    sys.exit(main())
