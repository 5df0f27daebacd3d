"""A supervisor as a real process on stand-in silicon, its clients, and a look at what the cards hold."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from dra.names import ClaimUID
from nodedriver.gpuconfig import MpsLimits
from nodedriver.mps import MpsClient
from nodedriver.ports import MpsDaemonSpec, MpsDaemonStatus, MpsError, MpsShare
from simulator.silicon.fleet import initialise
from simulator.silicon.hardware import MpsDaemon
from simulator.silicon.state import State
from simulator.silicon.tree import Tree

_DEADLINE = 30.0
GIB = 2**30
A, B = ClaimUID("aaaaaaaa-0000-4000-8000-000000000000"), ClaimUID("bbbbbbbb-0000-4000-8000-000000000000")
QUARTER = MpsShare(claim=A, name="claim-a", limits=MpsLimits(thread_percentage=25, memory_limit=20 * GIB))
HALF = MpsShare(claim=B, name="claim-b", limits=MpsLimits(thread_percentage=50, memory_limit=40 * GIB))


def quarter(device: str) -> MpsDaemonSpec:
    """A daemon with one share."""
    limits = QUARTER.limits
    return MpsDaemonSpec(
        device=device,
        thread_percentage=limits.thread_percentage,
        memory_limit=limits.memory_limit,
        shares=(QUARTER,),
    )


def held_to(status: MpsDaemonStatus) -> tuple[float, int | None]:
    """The limits of the clients of a daemon with one share, as it says them, whatever its protocol."""
    (limits,) = status.shares or (status,)
    return limits.thread_percentage, limits.memory_limit


def enforced(daemon: MpsDaemon) -> tuple[float | None, int | None]:
    """The limits that the one server of such a daemon has, as the silicon knows them."""
    (server,) = daemon.servers
    if daemon.protocol == 2:
        return server.active_thread_percentage, server.memory_limits.get(daemon.devices[0])
    (namespace,) = [each for each in server.namespaces if each.name != "default"]
    return namespace.active_thread_percentage, namespace.memory_limit


def offer_namespaces(state: State) -> None:
    """Be a machine whose driver offers MPS protocol 3."""
    state.change(lambda silicon: (replace(silicon, driver_version="615.43.04"), None))


def eventually(condition: Callable[[], bool], what: str) -> None:
    """Wait until the condition holds; fail with `what` after half a minute."""
    deadline = time.monotonic() + _DEADLINE
    while not condition():
        assert time.monotonic() < deadline, f"not within {_DEADLINE} s: {what}"
        time.sleep(0.05)


def put_in_place(program: Path, content: str) -> None:
    """A program in the place of another, which may be run at this moment."""
    new = program.with_suffix(".new")
    new.write_text(content)
    new.chmod(0o755)
    new.replace(program)


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
    """One machine and the supervisor of its node. `folder` must be short: Unix sockets lie below it.

    `protocol`: what the next supervisor is told that new daemons speak.
    """

    def __init__(self, folder: Path, protocol: int = 2) -> None:
        self.protocol = protocol
        self.tree = initialise(folder / "m")
        self.state = State(self.tree.state)
        self.plugin_dir = folder / "p"
        self.mps_dir = self.plugin_dir / "mps"
        self.client = MpsClient(self.mps_dir / "mpsd.sock")
        self.device = self.state.read().gpus[0].uuid
        self.other_device = self.state.read().gpus[1].uuid
        self.log = folder / "mpsd.log"
        self._supervisors: list[subprocess.Popen[bytes]] = []
        if protocol == 3:
            offer_namespaces(self.state)

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
            "--driver-root", str(self.tree.driver), "--sys-root", str(self.tree.sys),
            "--mps-protocol", str(self.protocol),
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

    def control(self, daemon: MpsDaemon, *words: str) -> None:
        """A command of protocol 3 by somebody else than the supervisor."""
        program = self.tree.driver / "usr/bin/nvidia-cuda-mps-control"
        environment = os.environ | {"CUDA_MPS_PIPE_DIRECTORY": daemon.pipe_directory}
        subprocess.run([program, *words], env=environment, check=True)

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
