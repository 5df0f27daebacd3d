"""One real node with two drivers: ours on stand-in silicon, and the peer on Kubernetes' own helper (`peerdriver/`).

Both have a ServiceAccount, sockets in the kubelet's folders and the same CDI folder. Claims are made and allocated by
hand, as the scheduler does. Needs root, as every real node does.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count as numbers_from
from pathlib import Path
from typing import Any

import grpc

from nodedriver.pb.dra.v1 import api_pb2, api_pb2_grpc
from tests.cluster import build
from tests.cluster.chart import apply_roles
from tests.cluster.cluster import Cluster
from tests.cluster.driver import NodeDriver
from tests.cluster.node import Node
from tests.cluster.processes import Program
from tests.cluster.waiting import wait_until

OURS = "gpu.portico.dev"
PEER = "peer.portico.dev"
NAMESPACE = "bench"
CARDS = 8
CLAIMS = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"
REGISTERED_SECONDS = 60.0
_QUIET = 0.25  # of all cores
_QUIET_WAIT = 40.0  # seconds at most


@dataclass(frozen=True, slots=True)
class Side:
    """One driver: its name, its process, and how the kubelet calls it."""

    driver: str
    program: Program
    socket: Path

    def stub(self) -> api_pb2_grpc.DRAPluginStub:
        """A connection of its own; it lives as long as the benchmark."""
        channel = grpc.insecure_channel(f"unix://{self.socket}", options=[("grpc.default_authority", "localhost")])
        grpc.channel_ready_future(channel).result(REGISTERED_SECONDS)
        return api_pb2_grpc.DRAPluginStub(channel)

    def cpu_seconds(self) -> float:
        """Processor time of its process so far."""
        return cpu_seconds(self.program.pid)


@dataclass(frozen=True, slots=True)
class Rig:
    """The node, and both sides, ours first."""

    node: Node
    driver: NodeDriver
    sides: tuple[Side, Side]
    _numbers: Iterator[int] = field(default_factory=numbers_from)  # of claims, for their names

    def claims(self, side: Side, devices: Sequence[str], fields: dict[str, Any] | None = None) -> list[Any]:
        """Claims allocated to these devices of that side, one each, as the kubelet names them in a call."""
        made = [self._claim(side, device, fields or {}) for device in devices]
        return [api_pb2.Claim(namespace=NAMESPACE, name=m["name"], uid=m["uid"]) for m in made]

    def forget_claims(self) -> None:
        """Remove all claims."""
        self.node.cluster.call("DELETE", CLAIMS)

    def _claim(self, side: Side, device: str, fields: dict[str, Any]) -> Any:
        name = f"claim-{next(self._numbers)}"
        spec = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": side.driver}}]}}
        body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}, "spec": spec}
        made = self.node.cluster.call("POST", CLAIMS, body)
        result = {"request": "gpu", "driver": side.driver, "pool": self.node.name, "device": device, **fields}
        terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [self.node.name]}]}]
        allocation = {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": terms}}
        self.node.cluster.call("PUT", f"{CLAIMS}/{name}/status", {**made, "status": {"allocation": allocation}})
        return made["metadata"]


@contextmanager
def started() -> Iterator[Rig]:
    """Cluster, node and both drivers, registered with the kubelet."""
    for module in ("kubernetes", "containerd", "helm", "peerdriver"):
        build.programs(module)
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster())
        accounts = apply_roles(cluster, namespace="portico-system", teams={}, driver_name=OURS, prefix="portico:")
        cluster.make_namespace(NAMESPACE)
        cluster.make_namespace("peer")
        node = stack.enter_context(Node(cluster))
        driver = stack.enter_context(NodeDriver(node, accounts, OURS))
        ours = Side(OURS, driver.program("driver"), wait_until(lambda: _socket(driver.plugin_dir), "our socket"))
        peer = start_peer(node, _devices(CARDS))
        stack.callback(peer.program.stop)
        yield Rig(node, driver, (ours, peer))


def _socket(folder: Path) -> Path | None:
    """The one that this driver's pod has; its name follows from the pod's uid."""
    return next(folder.glob("dra-*.sock"), None)


def start_peer(node: Node, slices: list[dict[str, Any]]) -> Side:
    """The peer on that node, which publishes these slices; it serves, and may not be registered yet."""
    program = launch_peer(node, slices)
    socket = node.plugins / PEER / "dra.sock"
    program.wait_ready(socket.exists, REGISTERED_SECONDS)
    return Side(PEER, program, socket)


def launch_peer(node: Node, slices: list[dict[str, Any]]) -> Program:
    """The same without waiting."""
    kubeconfig = _account(node.cluster)
    content = node.folder / "peer-slices.json"
    content.write_text(json.dumps(slices))
    folder = ("--plugin-dir", node.plugins / PEER, "--registrar-dir", node.plugins_registry, "--cdi-dir", node.cdi)
    return node.cluster.processes.start(
        "peerdriver",
        [
            build.programs("peerdriver") / "peerdriver",
            *("--kubeconfig", kubeconfig, "--driver-name", PEER, "--node-name", node.name, "--slices", content),
            *folder,
        ],
    )


def _account(cluster: Cluster) -> Path:
    """A ServiceAccount, since a token costs the API server what ours costs it, with every right."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "driver", "namespace": "peer"}}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "peer"},
        "roleRef": role,
        "subjects": [{"kind": "ServiceAccount", "name": "driver", "namespace": "peer"}],
    }
    cluster.apply(account, binding)
    return cluster.service_account_kubeconfig("peer", "driver")


def _devices(count: int) -> list[dict[str, Any]]:
    return [{"devices": [{"name": f"gpu-{number}"} for number in range(count)]}]


def resident_mb(pid: int) -> float:
    """Resident memory of a process, in MB (proc(5), VmRSS)."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024 / 1e6


def cpu_seconds(pid: int) -> float:
    """What the scheduler has counted for all threads that a process has now (schedstat)."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def wait_for_quiet() -> float:
    """Wait until the machine is less than a quarter busy for 3 s, or give up; the share that is busy then."""
    deadline = time.monotonic() + _QUIET_WAIT
    while (busy := _busy(3.0)) > _QUIET and time.monotonic() < deadline:
        pass
    return busy


def _busy(seconds: float) -> float:
    """The share of all cores' time that somebody used (proc(5), /proc/stat)."""
    before = _ticks()
    time.sleep(seconds)
    idle, total = (after - b for after, b in zip(_ticks(), before, strict=True))
    return 1 - idle / total


def _ticks() -> tuple[int, int]:
    numbers = [int(word) for word in Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]]
    return numbers[3] + numbers[4], sum(numbers)


def count(name: str, default: int) -> int:
    """How many of something, unless the environment asks for fewer: to see whether a benchmark works."""
    return int(os.environ.get(f"PORTICO_BENCH_{name}", default))
