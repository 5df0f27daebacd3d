"""The node driver's two processes on one node of the simulator: the production programs on stand-in silicon."""

from __future__ import annotations

import os
from pathlib import Path

from simulator.children import Child
from simulator.silicon.fleet import initialise


class NodeDriver:
    """Driver and MPS supervisor of one node, with their folders under `folder`."""

    def __init__(self, folder: Path, node: str, driver_name: str, kubeconfig: Path) -> None:
        self._folder, self._node = folder, node
        self._flags = ["--driver-name", driver_name, "--node-name", node, "--kubeconfig", str(kubeconfig)]
        self._children: list[Child] = []

    @property
    def registry(self) -> Path:
        """Where the kubelet looks for plugins."""
        return self._folder / "k" / "plugins_registry"

    def start(self, machine: str) -> None:
        """Make the machine and start the supervisor, then the driver."""
        self._folder.mkdir(parents=True)
        initialise(self._folder / "m", machine, seed=self._node)
        folders = ["--kubelet-dir", str(self._folder / "k"), "--cdi-dir", str(self._folder / "cdi")]
        for program in ("mpsd", "driver"):
            command = ["simulator.node", "--root", str(self._folder / "m"), program, *self._flags, *folders]
            log = self._folder / f"{program}.log"
            self._children.append(Child(f"{program} of {self._node}", command, log, os.environ))

    def ended(self) -> str:
        """Which program ended by itself, with its last words; empty while both run."""
        return next((why for child in self._children if (why := child.fault())), "")

    def stop(self) -> None:
        """End both, the driver first."""
        while self._children:
            self._children.pop().stop()
