"""A real node: kubelet, containerd and runc, run as root on this machine, and looks into its containers.

Pods name the image `IMAGE` with `imagePullPolicy: Never` and `hostNetwork: true`; there is no pod network. The node has
no address that the API server could reach, so `exec` and logs go by containerd and files, not by kubectl.
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.cluster.api import answers
from tests.cluster.cluster import Cluster
from tests.cluster.controlplane import HOST, free_ports
from tests.cluster.image import write_image
from tests.cluster.processes import Program
from tests.cluster.runtime import Runtime
from tests.cluster.started import Started
from tests.cluster.waiting import wait_until

IMAGE = "localhost/portico-test:1"
READY_SECONDS = 90.0

NEEDS_ROOT = (
    "the node-level tests need root: a kubelet mounts, and runc makes containers; "
    "run them as root, or ask for `make test NODE=0` to leave them out"
)

# The Node authorizer learns of a new pod's claims with a lag; in a burst it refuses the kubelet's own read of a claim,
# and the kubelet comes back after a minute or more. In tests alone nodes may read both kinds outright.
READ_BY_NODES: tuple[dict[str, Any], ...] = (
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "portico-test:nodes-read"},
        "rules": [
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
            {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims"], "verbs": ["get"]},
        ],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "portico-test:nodes-read"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "portico-test:nodes-read",
        },
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:nodes"}],
    },
)


class NeedsRootError(Exception):
    """This machine's user can't run a node."""


class Node(Started):
    """One kubelet that belongs to `cluster`. All of its files lie below `folder`.

    For drivers: `plugins/<driver name>/` holds a driver's sockets, `plugins_registry/` its registration socket, `cdi`
    its CDI files.
    """

    def __init__(self, cluster: Cluster, name: str = "node-1") -> None:
        if os.geteuid() != 0:
            raise NeedsRootError(NEEDS_ROOT)
        self.cluster = cluster
        self.name = name
        self.folder = cluster.folder / name
        self.pod_logs = self.folder / "pod-logs"
        self.runtime = Runtime(cluster.processes, self.folder)
        self.kubelet_root = self.runtime.kubelet
        self.plugins = self.kubelet_root / "plugins"
        self.plugins_registry = self.kubelet_root / "plugins_registry"
        self.cdi = self.runtime.cdi
        self._containerd: Program | None = None
        self._kubelet: Program | None = None

    def start(self) -> None:
        """Start both and wait until the node is Ready."""
        self.folder.mkdir()
        self.cluster.apply(*READ_BY_NODES)
        self._containerd = self.runtime.start(IMAGE)
        self.load_image(IMAGE)
        self.start_kubelet()

    def stop(self) -> None:
        """Kubelet first, then its containers, then containerd; safe to repeat."""
        self.stop_kubelet()
        if self._containerd is not None:
            self.runtime.stop()
            self._containerd.stop()
            self._containerd = None

    def load_image(self, name: str, files: Mapping[str, Path] | None = None) -> None:
        """Give the node an image `name` like IMAGE with more executables in it: path in the image to file here."""
        archive = self.folder / "image.tar"
        write_image(name, archive, files or {})
        self.runtime.ctr("images", "import", "--local", "--snapshotter=native", archive)
        archive.unlink()

    def start_kubelet(self) -> None:
        """Start the kubelet (again) and wait until the node is Ready."""
        if self._containerd is None:
            raise RuntimeError(f"{self.name} has no containerd: call start first")
        kubeconfig = self.cluster.user_kubeconfig(f"system:node:{self.name}", ["system:nodes"])
        port, health_port = free_ports(2)
        configuration = {**self._kubelet_configuration(), "port": port, "healthzPort": health_port}
        (self.folder / "kubelet.json").write_text(json.dumps(configuration))
        command: list[str | Path] = [
            *("nsenter", "--mount", f"--target={self._containerd.pid}"),
            self.cluster.programs / "kubelet",
            f"--config={self.folder / 'kubelet.json'}",
            f"--kubeconfig={kubeconfig}",
            f"--root-dir={self.kubelet_root}",
            f"--cert-dir={self.folder / 'kubelet-certificates'}",
            f"--hostname-override={self.name}",
            f"--node-ip={HOST}",
        ]
        self._kubelet = self.cluster.processes.start(f"kubelet-{self.name}", command)
        self._kubelet.wait_ready(lambda: self._ready(health_port), READY_SECONDS)

    def stop_kubelet(self) -> None:
        """Stop the kubelet alone; its containers run on."""
        if self._kubelet is not None:
            self._kubelet.stop()
            self._kubelet = None

    def kill_kubelet(self) -> None:
        """The same by SIGKILL: it has no moment to note what it was about."""
        if self._kubelet is None:
            raise RuntimeError(f"{self.name} has no kubelet: call start_kubelet first")
        self._kubelet.process.kill()
        self.stop_kubelet()

    def exec(self, pod: str, container: str, argv: Sequence[str], namespace: str = "default") -> str:
        """What a command prints inside a running container; ProgramError when it fails."""
        identity = self.container_id(pod, container, namespace)
        run = ["tasks", "exec", f"--exec-id=exec-{os.urandom(4).hex()}", f"--fifo-dir={self.folder / 'fifo'}"]
        return self.runtime.ctr(*run, identity, *argv)

    def container_spec(self, pod: str, container: str, namespace: str = "default") -> dict[str, Any]:
        """The OCI runtime spec that the container was made with, CDI edits included."""
        identity = self.container_id(pod, container, namespace)
        spec: dict[str, Any] = json.loads(self.runtime.ctr("containers", "info", "--spec", identity))
        return spec

    def logs(self, pod: str, container: str, namespace: str = "default") -> str:
        """All that the container's present run has written, stdout and stderr in order of time."""
        uid = self.cluster.call("GET", f"/api/v1/namespaces/{namespace}/pods/{pod}")["metadata"]["uid"]
        files = sorted((self.pod_logs / f"{namespace}_{pod}_{uid}" / container).glob("*.log"), key=_restart)
        # CRI log format: time, stream, P or F (partial or full line), text.
        lines = (line.split(" ", 3) for line in files[-1].read_text().splitlines()) if files else ()
        return "".join(text if tag == "P" else f"{text}\n" for _, _, tag, text in lines)

    def container_id(self, pod: str, container: str, namespace: str = "default") -> str:
        """The id that containerd gave to a pod's container, once the kubelet has reported one."""
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}"

        def look() -> str | None:
            status = self.cluster.call("GET", path).get("status", {})
            known = {each["name"]: each.get("containerID", "") for each in status.get("containerStatuses", ())}
            return known.get(container, "").removeprefix("containerd://") or None

        return wait_until(look, f"container {container} of pod {namespace}/{pod}")

    def _ready(self, health_port: int) -> bool:
        # The condition alone may be what an earlier kubelet has left.
        if not answers(HOST, health_port, "/healthz"):
            return False
        answer = self.cluster.raw("GET", f"/api/v1/nodes/{self.name}")
        conditions = answer.json()["status"].get("conditions", ()) if answer.status == 200 else ()
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def _kubelet_configuration(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": f"unix://{self.runtime.socket}",
            "address": HOST,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": False},
                "x509": {"clientCAFile": str(self.cluster.ca)},
            },
            "authorization": {"mode": "AlwaysAllow"},
            "podLogsDir": str(self.pod_logs),
            # Works under cgroup v1 too, which the kubelet refuses by default since 1.35, and makes no cgroup tree.
            "failCgroupV1": False,
            "cgroupDriver": "cgroupfs",
            "cgroupsPerQOS": False,
            "enforceNodeAllocatable": [],
            "failSwapOn": False,
            "localStorageCapacityIsolation": False,
            "makeIPTablesUtilChains": False,
            "resolvConf": "",
            # As low as the kubelet allows: a full disk of the machine is not what is under test.
            "evictionHard": {
                "memory.available": "10Mi",
                "nodefs.available": "1%",
                "nodefs.inodesFree": "1%",
                "imagefs.available": "1%",
            },
            # Seconds between looks at the world matter more to a test than load does.
            "syncFrequency": "10s",
            "nodeStatusUpdateFrequency": "5s",
        }


def _restart(log: Path) -> int:
    return int(log.name.split(".")[0])
