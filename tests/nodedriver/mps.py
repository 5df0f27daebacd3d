"""A supervisor as a real process on stand-in silicon, its clients, and a look at what the cards hold."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from nodedriver.mps import MpsClient
from nodedriver.ports import MpsError
from simulator.silicon.fleet import initialise
from simulator.silicon.hardware import MpsDaemon
from simulator.silicon.state import State
from simulator.silicon.tree import Tree

_DEADLINE = 30.0


def eventually(condition: Callable[[], bool], what: str) -> None:
    """Wait until the condition holds; fail with `what` after half a minute."""
    deadline = time.monotonic() + _DEADLINE
    while not condition():
        assert time.monotonic() < deadline, f"not within {_DEADLINE} s: {what}"
        time.sleep(0.05)


@contextmanager
def cuda(tree: Tree, size: str, **environment: str) -> Iterator[dict[str, Any]]:
    """A CUDA program that allocates and holds memory; gives its one answer."""
    command = [sys.executable, "-m", "simulator.silicon.cuda", "alloc", size, "--hold"]
    env = os.environ | {"SILICON_STATE": str(tree.state)} | environment
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE)
    try:
        assert process.stdout
        yield {"pid": process.pid} | json.loads(process.stdout.readline())
    finally:
        process.terminate()
        process.wait()
        if process.stdout:
            process.stdout.close()


class MpsBench:
    """One machine and the supervisor of its node. `folder` must be short: Unix sockets lie below it."""

    def __init__(self, folder: Path) -> None:
        self.tree = initialise(folder / "m")
        self.state = State(self.tree.state)
        self.plugin_dir = folder / "p"
        self.mps_dir = self.plugin_dir / "mps"
        self.client = MpsClient(self.mps_dir / "mpsd.sock")
        self.device = self.state.read().gpus[0].uuid
        self.other_device = self.state.read().gpus[1].uuid
        self.log = folder / "mpsd.log"
        self._supervisors: list[subprocess.Popen[bytes]] = []

    def start(self) -> subprocess.Popen[bytes]:
        """Start a supervisor and wait until it answers."""
        process = self.launch()
        eventually(lambda: self.answers() or process.poll() is not None, "the supervisor answers")
        assert process.poll() is None, self.log.read_text()
        return process

    def launch(self) -> subprocess.Popen[bytes]:
        """Start a supervisor."""
        arguments = [
            "--node-name", "node-1", "--plugin-dir", str(self.plugin_dir),
            "--driver-root", str(self.tree.driver),
        ]  # fmt: skip
        with self.log.open("ab") as log:
            process = subprocess.Popen([sys.executable, "-m", "nodedriver.mpsd", *arguments], stdout=log, stderr=log)
        self._supervisors.append(process)
        return process

    def answers(self) -> bool:
        try:
            self.client.list()
        except MpsError:
            return False
        return True

    def daemons(self) -> tuple[MpsDaemon, ...]:
        """The control daemons that run, as the silicon knows them."""
        return self.state.read().mps_daemons

    def cuda(self, size: str, **environment: str) -> AbstractContextManager[dict[str, Any]]:
        """A CUDA program on this machine."""
        return cuda(self.tree, size, **environment)

    def stop(self) -> None:
        """End the supervisors, and daemons that a killed one left."""
        for process in self._supervisors:
            process.terminate()
            process.wait(_DEADLINE)
        if self.daemons():
            self.start().terminate()
            self._supervisors[-1].wait(_DEADLINE)
