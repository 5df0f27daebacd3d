"""The node driver's two processes on one node of the simulator: the production programs on stand-in silicon.

Each is a child in a session of its own, so that Ctrl-C reaches them only through `stop`, which ends them by their pid.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from simulator.silicon.fleet import initialise

_CHECKOUT: Final = Path(__file__).parents[1]
_END_SECONDS: Final = 15.0
_LAST_LINES: Final = 20  # of a log


class NodeDriver:
    """Driver and MPS supervisor of one node, with their folders under `folder`."""

    def __init__(self, folder: Path, node: str, driver_name: str, kubeconfig: Path) -> None:
        self._folder, self._node = folder, node
        self._flags = ["--driver-name", driver_name, "--node-name", node, "--kubeconfig", str(kubeconfig)]
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def registry(self) -> Path:
        """Where the kubelet looks for plugins."""
        return self._folder / "k" / "plugins_registry"

    def start(self, machine: str) -> None:
        """Make the machine and start the supervisor, then the driver."""
        self._folder.mkdir(parents=True)
        initialise(self._folder / "m", machine, seed=self._node)
        self._run("mpsd")
        self._run("driver")

    def _run(self, program: str) -> None:
        folders = ["--kubelet-dir", str(self._folder / "k"), "--cdi-dir", str(self._folder / "cdi")]
        command = [sys.executable, "-m", "simulator.node", "--root", str(self._folder / "m"), program]
        with (self._folder / f"{program}.log").open("ab") as log:
            process = subprocess.Popen(  # noqa: S603  # our own module
                [*command, *self._flags, *folders],
                env={**os.environ, "PYTHONPATH": str(_CHECKOUT)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._processes[program] = process

    def ended(self) -> str:
        """Which program ended by itself, with its last words; empty while both run."""
        for program, process in self._processes.items():
            if (code := process.poll()) is not None:
                lines = (self._folder / f"{program}.log").read_text(errors="replace").splitlines()
                return "\n".join([f"{program} of {self._node} ended with {code}:", *lines[-_LAST_LINES:]])
        return ""

    def stop(self) -> None:
        """End both, the driver first."""
        while self._processes:
            end(self._processes.popitem()[1])


def end(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM, some seconds, SIGKILL."""
    process.terminate()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
