"""`python -m simulator --scenario article`: one cluster, until Ctrl-C. It prints the paths of its kubeconfigs."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from dra.errors import DraError
from simulator.scenario import load
from simulator.world import ACCOUNTS, World, WorldError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until a signal; 1 where the cluster can't start or can't go on, 2 for wrong arguments."""
    parser = argparse.ArgumentParser(prog="python -m simulator", description="A small cluster for demos and tests.")
    parser.add_argument("--scenario", default="article", help="a file of simulator/scenarios/clusters, without .toml")
    parser.add_argument("--seed", type=int, default=1, help="of the dice that actors throw")
    flags = parser.parse_args(arguments)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: stop.set())
    with tempfile.TemporaryDirectory(prefix="portico-", dir="/tmp") as folder:  # short, for sockets
        try:
            scenario, objects = load(flags.scenario)
            world = World(scenario, objects, Path(folder), seed=flags.seed)
        except DraError as error:
            say(f"could not start: {error}")
            return 1
        return live(world, stop)


def live(world: World, stop: threading.Event) -> int:
    """Let it live until told to stop or it can't go on."""
    try:
        world.start()
        say(f"API server: {world.url}")
        say(f"kubeconfig: {world.kubeconfig()}")
        for name in ACCOUNTS:
            say(f"kubeconfig of portico-{name}: {world.kubeconfig(name)}")
        while not stop.wait(1.0):
            while world.complaints:
                say(f"refused: {world.complaints.popleft()}")
            if why := world.fault():
                say(f"can't go on: {why}")
                return 1
    except WorldError as error:
        say(f"could not start: {error}")
        return 1
    finally:
        world.stop()
    return 0


def say(text: str) -> None:
    """One line of progress."""
    print(f"simulator: {text}", file=sys.stderr, flush=True)  # noqa: T201  # a program's own words


if __name__ == "__main__":
    raise SystemExit(main())
