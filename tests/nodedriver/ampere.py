"""A node of A100, whose MIG mode changes by a reset: claims that wait for it, and agents that are in the way."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from msgspec.structs import replace

from dra.objects import ResourceClaim, to_json
from simulator.silicon.hardware import Gpu
from simulator.silicon.tree import Tree
from tests.nodedriver.apiserver import Json
from tests.nodedriver.claims import DRIVER, allocated, given
from tests.nodedriver.machine import CLAIMS, wait_until
from tests.nodedriver.node import SLICES, DriverNode

READY, FAILED = f"{DRIVER}/mode-ready", f"{DRIVER}/mode-failed"
MIG = "gpu-0-mig-3g40gb-4"
TAINT = f"{DRIVER}/maintenance"


def waiting(device: str, name: str, uid: str, share: int = 100) -> ResourceClaim:
    """A claim as the scheduler allocates a device with binding conditions."""
    result = replace(given(device, share), binding_conditions=(READY,), binding_failure_conditions=(FAILED,))
    return allocated(result, name=name, uid=uid)


class AmpereNode(DriverNode):
    """Eight A100 and the driver; nothing needs the MPS supervisor here."""

    def submit(self, claim: ResourceClaim) -> None:
        """Put it into the API server, as the scheduler writes it before it waits."""
        self.store.put(f"{CLAIMS}/{claim.metadata.name}", to_json(claim), "ADDED")

    def withdraw(self, name: str) -> None:
        """Take the allocation away, as the scheduler does with a pod that is deleted."""
        claim = self.store.objects[f"{CLAIMS}/{name}"]
        self.store.put(f"{CLAIMS}/{name}", {**claim, "status": {}}, "MODIFIED")

    def condition(self, name: str, kind: str = READY) -> Json:
        """That condition of the claim's one device; empty while there is none."""
        for device in self.store.objects[f"{CLAIMS}/{name}"].get("status", {}).get("devices", []):
            for condition in device.get("conditions", []):
                if condition["type"] == kind:
                    return dict(condition)
        return {}

    def await_condition(self, name: str, kind: str = READY, status: str = "True") -> Json:
        wait_until(lambda: self.condition(name, kind).get("status") == status, f"{kind}={status} of {name}", 90)
        return self.condition(name, kind)

    def device(self, name: str) -> Json:
        """A device as it is published."""
        devices = [device for each in self.store.under(SLICES) for device in each["spec"].get("devices", [])]
        return next(device for device in devices if device["name"] == name)

    def taints(self, name: str) -> list[Any]:
        """What keeps claims from that device, of the taints of a reset."""
        found = self.device(name).get("taints", [])
        return [taint["value"] for taint in found if (taint["key"], taint["effect"]) == (TAINT, "NoSchedule")]

    def busy(self) -> bool:
        """Whether anything is kept of a card that changes its mode."""
        ledger = self.plugin_dir / "maintenance.json"
        return ledger.exists() and bool(json.loads(ledger.read_bytes())["cards"])

    def modes(self) -> tuple[bool, bool]:
        """MIG mode of the first card now and after its next reset."""
        gpu = self.state.read().gpus[0]
        return gpu.mig_current, gpu.mig_pending

    def agent(self) -> AbstractContextManager[int]:
        """A monitoring agent that has the first card open."""
        return agent(self.tree, self.state.read().gpus[0])


@contextmanager
def agent(tree: Tree, gpu: Gpu) -> Iterator[int]:
    """A monitoring agent: a process that has that card open. Its id, and it ends with the body."""
    with tree.gpu_node(gpu.minor).open() as opened:
        process = subprocess.Popen(["sleep", "2147483647"], stdin=opened)
    link = tree.proc / str(process.pid)
    link.symlink_to(f"/proc/{process.pid}")
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait(10)
        link.unlink()
