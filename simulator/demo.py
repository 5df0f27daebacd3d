"""`python -m simulator.demo`: the portal on a cluster of its own, or on one that a kubeconfig names. Needs no service.

The cluster lives in this process, its two node drivers and the portal (web and worker in one) are children. Everything
is on loopback and in one folder that goes at the end; Ctrl-C ends the children by their pids.
"""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from dra.errors import DraError
from simulator.children import CHECKOUT, Child
from simulator.knobs import PATH
from simulator.scenario import load
from simulator.world import HOST, KUBECTL, SYSTEM, World

PORT: Final = 8000  # where it is free
_READY_SECONDS: Final = 60.0


class DemoError(Exception):
    """The demo can't start or can't go on; the text says why."""


class Portal:
    """The portal as a child, with its database and log in `folder`."""

    def __init__(self, folder: Path, kubeconfig: Path, simulator: Path | None) -> None:
        """`simulator` is the kubeconfig of the simulator's administrator, where there is one: it makes a demo."""
        self._log = folder / "portal.log"
        self._port = PORT if _is_free(PORT) else _any_port()
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PORTICO_", "DJANGO_"))},
            "PYTHONPATH": str(CHECKOUT),
            "PORTICO_SECRET_KEY": secrets.token_urlsafe(32),
            "PORTICO_KUBECONFIG": str(kubeconfig),
            "PORTICO_PROBE_NAMESPACE": SYSTEM,
            "PORTICO_DATABASE_URL": f"sqlite:///{folder / 'portico.sqlite3'}",
            "PORTICO_DEMO": str(simulator or ""),
            "PORTICO_WATCH_SECONDS": "10",  # who stops the cluster wants to see what the portal says then
            "PORTICO_SILENT_SECONDS": "45",
        }
        self._child: Child | None = None

    @property
    def url(self) -> str:
        """Where people find it."""
        return f"http://{HOST}:{self._port}"

    def manage(self, *arguments: str) -> str:
        """What a management command prints; DemoError with its own words where it fails."""
        done = subprocess.run(  # noqa: S603  # our own program
            [sys.executable, str(CHECKOUT / "manage.py"), *arguments],
            env=self._environment | {"PORTICO_LOG_LEVEL": "WARNING"},
            cwd=CHECKOUT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise DemoError(f"manage.py {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = ["portal.embedded", "--host", HOST, "--port", str(self._port)]
        self._child = Child("the portal", command, self._log, self._environment)
        deadline = time.monotonic() + _READY_SECONDS
        while not self._answers():
            if (why := self.fault()) or time.monotonic() > deadline:
                raise DemoError(why or f"the portal does not answer:\n{self._child.last_words()}")
            time.sleep(0.1)

    def fault(self) -> str:
        """The end of its log where it ended by itself; empty while it runs."""
        return self._child.fault() if self._child else ""

    def stop(self) -> None:
        """End it."""
        if self._child:
            self._child.stop()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=5) as answer:  # noqa: S310  # our own address
                return bool(answer.status == 200)
        except OSError:
            return False


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until a signal; 1 where it can't start or go on."""
    parser = argparse.ArgumentParser(prog="python -m simulator.demo", description="The portal with a cluster.")
    parser.add_argument("--scenario", default="article", help="a file of simulator/scenarios/clusters, without .toml")
    parser.add_argument("--seed", type=int, default=1, help="of the dice that actors throw")
    half = parser.add_mutually_exclusive_group()
    half.add_argument("--kubeconfig", type=Path, help="a cluster of your own instead; nothing is simulated then")
    half.add_argument("--no-portal", action="store_true", help="the cluster alone, for other programs")
    flags = parser.parse_args(arguments)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: stop.set())
    try:
        with ExitStack() as stack:
            _run(stack, flags, stop)
    except (DemoError, DraError, OSError) as error:
        say(f"could not go on: {error}")
        return 1
    say("stopped")
    return 0


def _run(stack: ExitStack, flags: argparse.Namespace, stop: threading.Event) -> None:
    """Start cluster and portal, say where they are, and wait; each ends with the stack."""
    # Short, since unix sockets lie in it: macOS' own folder for such is too long for them.
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="portico-", dir="/tmp")))
    world = None if flags.kubeconfig else _world(stack, folder, flags)
    portal = None if flags.no_portal else _portal(stack, folder, world, flags.kubeconfig)
    if world is not None:
        say(f"kubectl --kubeconfig {world.kubeconfig(KUBECTL)}; the actors' time: {world.url}{PATH}")
    parts = [part for part in (portal, world) if part is not None]
    say(f"ready: {parts[0].url}   (Ctrl-C stops everything)")
    while not stop.wait(0.5):
        while world and world.complaints:
            say(f"the cluster refused its people: {world.complaints.popleft()}")
        if why := next((why for part in parts if (why := part.fault())), ""):
            raise DemoError(why)


def _world(stack: ExitStack, folder: Path, flags: argparse.Namespace) -> World:
    scenario, objects = load(flags.scenario)
    say(f"starting a cluster: {scenario.title} …")
    world = World(scenario, objects, folder, seed=flags.seed)
    stack.callback(world.stop)
    world.start()
    return world


def _portal(stack: ExitStack, folder: Path, world: World | None, kubeconfig: Path) -> Portal:
    if world is None:
        portal = Portal(folder, _own(kubeconfig), None)
    else:
        portal = Portal(folder, world.kubeconfig("portal"), world.kubeconfig())
    say("making the portal's tables and people …")
    portal.manage("migrate", "--verbosity=0")
    people = portal.manage("seeddemo").rstrip()
    stack.callback(portal.stop)
    portal.start()
    say(f"people, by name and password:\n{people}")
    return portal


def _own(kubeconfig: Path) -> Path:
    if not kubeconfig.is_file():
        raise DemoError(f"there is no kubeconfig {kubeconfig}")
    return kubeconfig.absolute()


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) != 0


def _any_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def say(text: str) -> None:
    """One line of progress."""
    print(f"portico: {text}", file=sys.stderr, flush=True)  # noqa: T201  # a program's own words


if __name__ == "__main__":
    raise SystemExit(main())
