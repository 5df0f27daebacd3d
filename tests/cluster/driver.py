"""The production node driver and its MPS supervisor on stand-in silicon, as processes beside the real kubelet.

Both run as what they are on a node: `mpsd` without rights in the cluster, the driver under the chart's ServiceAccount
with a token bound to its node.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from simulator.silicon.state import State
from simulator.silicon.tree import Tree
from tests.cluster.chart import ServiceAccounts
from tests.cluster.node import Node
from tests.cluster.processes import Program
from tests.cluster.started import Started
from tests.cluster.waiting import wait_until

CHECKOUT = Path(__file__).parents[2]
READY_SECONDS = 60.0
_REGISTERED = "driver registered with the kubelet"
SLICES = "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName%3D"


class NodeDriver(Started):
    """The driver of one node. `state` is the silicon it stands on, `tree` its files."""

    def __init__(
        self, node: Node, accounts: ServiceAccounts, name: str, scenario: str = "h100x8", **settings: str
    ) -> None:
        """`settings` are environment variables of the driver."""
        self.node = node
        self.name = name
        self.tree = Tree(node.folder / f"silicon-{name}")
        self.state = State(self.tree.state)
        self.plugin_dir = node.plugins / name
        self._accounts = accounts
        self._scenario = scenario
        self._settings = settings
        self._programs: dict[str, Program] = {}
        self._pods = 0

    def start(self) -> None:
        """The supervisor, then the driver."""
        self.run("mpsd")
        self.run("driver")

    def stop(self) -> None:
        """End both, the driver first."""
        while self._programs:
            self._programs.popitem()[1].stop()

    @property
    def checkpoint(self) -> Path:
        return self.plugin_dir / "checkpoint.json"

    def run(self, name: str, *more: str) -> None:
        """Start `driver` or `mpsd` (again) and wait until it serves; `more` are flags."""
        program = self.launch(name, *more)
        program.wait_ready(self._published if name == "driver" else self._supervising, READY_SECONDS)

    def launch(self, name: str, *more: str) -> Program:
        """The same without waiting."""
        self._pods += name == "driver"
        shown = f"{name}{self._pods if name == 'driver' else ''}-{self.name}-{self.node.name}"
        program = self.node.cluster.processes.start(shown, [*self._command(name), *more], self._environment())
        self._programs[name] = program
        return program

    def program(self, name: str) -> Program:
        """The process of `driver` or `mpsd` that runs now."""
        return self._programs[name]

    def roll_over(self, *more: str) -> None:
        """As an update of the DaemonSet does: the next driver comes, and the one before goes once it is registered."""
        old = self._programs.pop("driver")
        self.run("driver", *more)
        new = self._programs["driver"]
        new.wait_ready(lambda: _REGISTERED in new.log.read_text(), READY_SECONDS)
        old.stop(60)

    def end(self, name: str) -> None:
        """SIGTERM to `driver` or `mpsd`, and wait for its end."""
        self._programs.pop(name).stop(60)

    def kill(self, name: str) -> None:
        """SIGKILL, as the kernel would when memory runs out; nothing is cleaned up."""
        program = self._programs.pop(name)
        os.kill(program.pid, signal.SIGKILL)
        program.process.wait(10)

    def slices(self) -> list[dict[str, Any]]:
        """The slices that this driver has published for its node, in the order of their names."""
        items = self.node.cluster.call("GET", SLICES + self.node.name)["items"]
        return [item for item in items if item["spec"]["driver"] == self.name]

    def cdi_files(self) -> list[Path]:
        """The CDI files that this driver has on its node; other drivers have theirs in the same folder."""
        return sorted(self.node.cdi.glob(f"{self.name}-*"))

    def await_unprepared(self) -> None:
        """Wait until it holds nothing. A pod that ends at once is gone from the API before the kubelet unprepares."""
        wait_until(lambda: not self.cdi_files(), f"the end of the CDI files of {self.name}", 90)

    def mps_control(self, pipe_directory: str, command: str) -> str:
        """What the control daemon of that pipe directory itself answers to a command."""
        control = self.tree.driver / "usr" / "bin" / "nvidia-cuda-mps-control"
        environment = {**self._environment(), "CUDA_MPS_PIPE_DIRECTORY": pipe_directory}
        done = subprocess.run(
            [control], input=f"{command}\n", env=environment, capture_output=True, text=True, check=True, timeout=30
        )
        return done.stdout.strip()

    def await_published(self) -> None:
        """Wait until the pool is complete."""
        wait_until(self._published, f"a complete pool of {self.name} on {self.node.name}")

    def _published(self) -> bool:
        slices = self.slices()
        return bool(slices) and len(slices) == slices[0]["spec"]["pool"]["resourceSliceCount"]

    def _supervising(self) -> bool:
        return (self.plugin_dir / "mps" / "mpsd.sock").exists()

    def _command(self, name: str) -> list[str | Path]:
        user = f"system:serviceaccount:{self._accounts.namespace}:{self._accounts.driver}"
        flags: list[str | Path] = [
            *("--driver-name", self.name, "--node-name", self.node.name, "--cdi-dir", self.node.cdi),
            *("--kubelet-dir", self.node.kubelet_root),
        ]
        if name == "driver":
            self.node.cluster.service_account_kubeconfig(
                self._accounts.namespace, self._accounts.driver, self.node.name
            )
            flags += ["--kubeconfig", self.node.cluster.kubeconfig(user), "--pod-uid", f"pod-{self._pods}"]
        simulator: list[str | Path] = [
            sys.executable,
            "-m",
            "simulator.node",
            "--root",
            self.tree.root,
            "--scenario",
            self._scenario,
        ]
        return [*simulator, name, *flags]

    def _environment(self) -> dict[str, str]:
        return {**os.environ, **self._settings, "PYTHONPATH": str(CHECKOUT)}
