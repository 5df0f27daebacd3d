"""The whole driver as a process on stand-in silicon: real sockets, a kubelet's gRPC calls, SIGKILL and restart."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc

from dra.objects import ResourceClaim, to_json
from nodedriver.pb.dra.v1 import api_pb2, api_pb2_grpc
from simulator.silicon.fleet import initialise
from simulator.silicon.state import State
from tests.nodedriver.apiserver import Json, Store
from tests.nodedriver.claims import DRIVER, NODE
from tests.nodedriver.machine import CHECKOUT, CLAIMS, wait_until, without_counters
from tests.nodedriver.mps import offer_namespaces

SLICES = "/apis/resource.k8s.io/v1/resourceslices"
CALL_SECONDS = 45.0  # what the kubelet waits


class DriverNode:
    """A node of its own under `folder`: kubelet folders, CDI folder, cards, and the two programs."""

    def __init__(self, folder: Path, store: Store, scenario: str = "h100x8") -> None:
        self.folder = folder
        self.store = store
        self.tree = initialise(folder / "machine", scenario)
        self.state = State(self.tree.state)
        self.plugin_dir = folder / "k" / "plugins" / DRIVER
        self.registration_socket = folder / "k" / "plugins_registry" / f"{DRIVER}-reg.sock"
        self.registration_socket.parent.mkdir(parents=True)  # the kubelet's own
        self.cdi_dir = folder / "cdi"
        self._programs: dict[str, subprocess.Popen[bytes]] = {}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, "uid": "node-uid"}}
        store.put(f"/api/v1/nodes/{NODE}", node, "ADDED")

    def start(self, program: str, *more: str) -> None:
        """Start `driver` or `mpsd` and wait until it serves; `more` are flags."""
        flags = ["--node-name", NODE, "--kubelet-dir", str(self.folder / "k"), "--cdi-dir", str(self.cdi_dir)]
        flags += ["--kubeconfig", str(self.folder / "kubeconfig")]
        command = [sys.executable, "-m", "simulator.node", "--root", str(self.tree.root), program, *flags, *more]
        log = (self.folder / f"{program}.log").open("ab")
        process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(CHECKOUT)}, stdout=log, stderr=log)
        log.close()
        self._programs[program] = process
        socket = self.plugin_dir / "mps" / "mpsd.sock" if program == "mpsd" else self.registration_socket
        wait_until(lambda: socket.exists() or process.poll() is not None, f"the socket of {program}", 60)
        assert process.poll() is None, self.log(program)

    def speak_by_namespaces(self) -> None:
        """Start the MPS supervisor again, for daemons of protocol 3, on a machine whose driver offers it."""
        self.terminate("mpsd")
        offer_namespaces(self.state)
        self.start("mpsd", "--mps-protocol", "3")

    def kill(self, program: str = "driver") -> None:
        """SIGKILL: nothing is cleaned up, but the registration socket, so that a new one can be waited for."""
        os.kill(self._programs[program].pid, signal.SIGKILL)
        self.buried(program)

    def buried(self, program: str) -> None:
        """Take notice of a program that ended by SIGKILL."""
        assert self._programs.pop(program).wait(10) == -signal.SIGKILL
        if program == "driver":
            self.registration_socket.unlink()

    def terminate(self, program: str) -> int:
        """SIGTERM, and the exit status."""
        process = self._programs.pop(program)
        process.terminate()
        return process.wait(30)

    def await_end(self, program: str) -> int:
        """The exit status of a program that ends by itself."""
        return self._programs.pop(program).wait(30)

    def close(self) -> None:
        for program in ("driver", "mpsd"):
            if program in self._programs:
                self.terminate(program)

    def log(self, program: str) -> str:
        return (self.folder / f"{program}.log").read_text()

    def allocate(self, claim: ResourceClaim) -> Any:
        """Put the claim into the API server; what the kubelet calls it by."""
        self.store.put(f"{CLAIMS}/{claim.metadata.name}", to_json(claim), "ADDED")
        ref = claim.ref
        return api_pb2.Claim(namespace=ref.namespace, name=ref.name, uid=ref.uid)

    def prepare(self, *claims: Any, seconds: float = CALL_SECONDS) -> dict[str, Any]:
        """What the kubelet's prepare call answers, by uid; grpc.RpcError where there is no answer."""
        request = api_pb2.NodePrepareResourcesRequest(claims=claims)
        with self._channel() as channel:
            answer = api_pb2_grpc.DRAPluginStub(channel).NodePrepareResources(request, timeout=seconds)
        return dict(answer.claims)

    def unprepare(self, *claims: Any) -> dict[str, str]:
        """The errors of the kubelet's unprepare call, by uid."""
        request = api_pb2.NodeUnprepareResourcesRequest(claims=claims)
        with self._channel() as channel:
            answer = api_pb2_grpc.DRAPluginStub(channel).NodeUnprepareResources(request, timeout=CALL_SECONDS)
        return {uid: claim.error for uid, claim in answer.claims.items()}

    def checkpoint(self) -> Json:
        """The claims of the checkpoint, without what differs from one time to the next."""
        document: Json = json.loads((self.plugin_dir / "checkpoint.json").read_bytes())
        for claim in document["claims"].values():
            claim["prepared_at"] = bool(claim["prepared_at"])
            for device in claim["devices"]:
                device["uuid"] = re.sub(r"^MIG-.*", "MIG", device["uuid"])
        claims: Json = document["claims"]
        return claims

    def everything(self) -> dict[str, Any]:
        """Silicon, checkpoint and CDI folder, without random UUIDs, counters and times."""
        silicon = self.state.read()
        daemons = [
            (
                (d.default_active_thread_percentage, *d.default_memory_limits.values()),
                *(namespace for server in d.servers for namespace in server.namespaces),
            )
            for d in silicon.mps_daemons
        ]
        return {
            "cards": [re.sub(r"MIG-[0-9a-f-]+", "MIG", str(without_counters(gpu))) for gpu in silicon.gpus],
            "daemons": daemons,
            "checkpoint": self.checkpoint(),
            "cdi": {p.name: re.sub(r"/mps/[0-9a-f]+/", "/mps/X/", p.read_text()) for p in self.cdi_dir.iterdir()},
        }

    def _channel(self) -> Any:
        options = [("grpc.default_authority", "localhost")]
        return grpc.insecure_channel(f"unix://{self.plugin_dir / 'dra.sock'}", options=options)
