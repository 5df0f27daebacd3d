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


class NodeDriver:
    """Driver and MPS supervisor of one node, with their folders under `folder`."""

    def __init__(self, folder: Path, node: str, driver_name: str, kubeconfig: Path) -> None:
        self._folder, self._node = folder, node
        self._flags = ["--driver-name", driver_name, "--node-name", node, "--kubeconfig", str(kubeconfig)]
        self._processes: list[subprocess.Popen[bytes]] = []

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
        self._processes.append(process)

    def ended(self) -> str:
        """The log of a program that ended by itself; empty while both run."""
        if all(process.poll() is None for process in self._processes):
            return ""
        return "\n".join(log.read_text(errors="replace")[-2000:] for log in sorted(self._folder.glob("*.log")))

    def stop(self) -> None:
        """End both, the driver first."""
        while self._processes:
            end(self._processes.pop())


def end(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM, some seconds, SIGKILL."""
    process.terminate()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
