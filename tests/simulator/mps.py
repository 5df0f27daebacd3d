"""A running MPS control daemon for tests, started as on a node: by the launchers of the driver root."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from simulator.silicon.hardware import MpsDaemon
from simulator.silicon.state import State
from simulator.silicon.tree import Tree

CHECKOUT = Path(__file__).parents[2]
PATIENCE_SECONDS = 20.0
PYTHON_CLIENT = (sys.executable, "-m", "simulator.silicon.cuda")


def await_true(condition: Callable[[], object], what: str) -> None:
    """Poll until the condition holds; AssertionError naming what did not happen."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen within {PATIENCE_SECONDS:.0f} s"
        time.sleep(0.01)


class Mps(AbstractContextManager["Mps"]):
    """One daemon on a pipe directory of its own. What it starts, it ends."""

    def __init__(self, tree: Tree, devices: str, *options: str) -> None:
        self.tree = tree
        self.state = State(tree.state)
        self._options = options
        self._stack = ExitStack()
        # A Unix socket's path is short; pytest's folders are not.
        self.pipes = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="mps-")))
        self.environment = os.environ | {
            "SILICON_STATE": str(tree.state),
            "PYTHONPATH": str(CHECKOUT),
            "CUDA_MPS_PIPE_DIRECTORY": str(self.pipes),
            "CUDA_MPS_LOG_DIRECTORY": str(self.pipes / "log"),
        }
        self._visible = {"CUDA_VISIBLE_DEVICES": devices}
        self.process: subprocess.Popen[str]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def start(self) -> None:
        """Start the daemon in the foreground and wait until it answers."""
        process = self._popen([self._control(), "-f", *self._options], self.environment | self._visible)
        self.process = process
        pid_file = self.pipes / "nvidia-cuda-mps-control.pid"
        ready = f"{process.pid}\n"
        await_true(
            lambda: process.poll() is not None or (pid_file.exists() and pid_file.read_text() == ready), "a start"
        )
        assert process.poll() is None, process.stderr.read() if process.stderr else ""

    def daemon(self) -> MpsDaemon:
        """This daemon as the state has it."""
        return next(d for d in self.state.read().mps_daemons if d.pid == self.process.pid)

    def command(self, line: str) -> str:
        """A control command that must succeed, straight to the daemon's socket; what it answers."""
        connection = self.connect()
        connection.sendall(json.dumps({"command": line}).encode() + b"\n")
        answer = json.loads(connection.makefile().readline() or '{"output": ""}')
        connection.close()
        output = answer["output"]
        assert isinstance(output, str)
        return output

    def run_command(self, line: str, *words: str) -> subprocess.CompletedProcess[str]:
        """A control command as people give it: on the program's stdin or, by protocol 3, in words."""
        return subprocess.run(
            [self._control(), *words],
            input=f"{line}\n",
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )

    def client(self, size: str, *program: str, **environment: str) -> dict[str, Any]:
        """Run a CUDA program that allocates `size` and ends; its answer, with its exit status."""
        done = subprocess.run(
            [*(program or PYTHON_CLIENT), "alloc", size],
            env=self.environment | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )
        assert done.stdout, done.stderr
        return {**json.loads(done.stdout), "status": done.returncode}

    def holding_client(self, size: str, *program: str, **environment: str) -> subprocess.Popen[str]:
        """Start a CUDA program that keeps `size`, and wait until it has it."""
        command = [*(program or PYTHON_CLIENT), "alloc", size, "--hold"]
        client = self._popen(command, self.environment | environment)
        assert client.stdout is not None
        answer = json.loads(client.stdout.readline())
        assert answer["ok"], answer
        return client

    def connect(self) -> socket.socket:
        """A bare connection to the daemon's socket."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(str(self.pipes / "control"))
        connection.settimeout(PATIENCE_SECONDS)
        return self._stack.enter_context(connection)

    def _control(self) -> str:
        return str(self.tree.driver / "usr/bin/nvidia-cuda-mps-control")

    def _popen(self, command: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._stack.callback(_end, process)
        return process


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.terminate()
        process.wait(PATIENCE_SECONDS)
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
