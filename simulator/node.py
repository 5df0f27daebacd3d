"""`python -m simulator.node --root DIR [--scenario NAME] driver|mpsd <flags>`: the driver on stand-in GPUs.

Makes the machine under DIR when there is none, puts the silicon under pynvml and sysfs, points the driver's roots into
the tree, lets the process die where a test asks for it (`crash`), and then runs production code unchanged:
`nodedriver.mpsd`, or `nodedriver.main` with its subcommand.
"""

from __future__ import annotations

import argparse
import fcntl
import sys
from collections.abc import Sequence
from pathlib import Path

from simulator import crash
from simulator.silicon import nvml, sysfs
from simulator.silicon.fleet import initialise
from simulator.silicon.state import State
from simulator.silicon.tree import Tree


def main(arguments: Sequence[str]) -> int:
    """Run the driver's subcommand on the machine under `--root`; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m simulator.node", allow_abbrev=False)
    parser.add_argument("--root", type=Path, required=True, help="folder of the stand-in machine")
    parser.add_argument("--scenario", default="h100x8", help="which machine to make when the folder has none")
    own, rest = parser.parse_known_args(arguments)
    tree = machine(own.root.absolute(), own.scenario)
    if State(tree.state).read().gpus:  # without a card of NVIDIA's there is no NVML either
        nvml.install(tree.state)
    sysfs.answer(tree)
    crash.install(tree.root)
    # Each program imports its own modules only, as in production: how fast it starts is part of what tests see.
    if rest[:1] == ["mpsd"]:
        from nodedriver.mpsd.__main__ import main as run_mpsd  # noqa: PLC0415

        return run_mpsd([*roots(tree), *rest[1:]])
    from nodedriver.main import main as run_driver  # noqa: PLC0415

    return run_driver([*rest[:1], *roots(tree), *rest[1:]])


def machine(root: Path, scenario: str) -> Tree:
    """The machine under `root`, made by whichever process comes first."""
    root.mkdir(parents=True, exist_ok=True)
    with (root / "machine.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        tree = Tree(root)
        return tree if tree.state.exists() else initialise(root, scenario)


def roots(tree: Tree) -> list[str]:
    """The driver's flags for the tree; they stand before the caller's own, which win."""
    flags = {
        "--proc-root": tree.proc,
        "--sys-root": tree.sys,
        "--dev-root": tree.dev,
        "--driver-root": tree.driver,
    }
    return [word for flag, path in flags.items() for word in (flag, str(path))]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
