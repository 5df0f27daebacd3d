"""Command lines of the four programs of a control plane, and the order to start them in.

Values only: what to run, where it listens and how to ask whether it is ready. `cluster.py` runs it.
"""

import json
import socket
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

HOST = "127.0.0.1"
ISSUER = "https://kubernetes.default.svc"

# Start in this order; stop in reverse, so that nobody writes to a server that is gone.
ORDER = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")

# All writes and reads, without bodies; the second stage of each is enough to know who did what, and how it ended.
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Where the programs listen, all on loopback."""

    etcd: int
    etcd_peer: int
    api_server: int
    controller_manager: int
    scheduler: int


def free_ports(count: int) -> list[int]:
    """Ports that the kernel has free now; another program may still take one before ours does."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((HOST, 0))
        return [each.getsockname()[1] for each in sockets]


def choose_ports() -> Ports:
    etcd, peer, api_server, controller_manager, scheduler = free_ports(5)
    return Ports(
        etcd=etcd, etcd_peer=peer, api_server=api_server, controller_manager=controller_manager, scheduler=scheduler
    )


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """The programs of one control plane in `folder`, run from `programs`."""

    folder: Path
    programs: Path
    ports: Ports
    flags: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """More flags by program, as feature gates."""

    @property
    def audit_log(self) -> Path:
        return self.folder / "log" / "audit.log"

    @property
    def certificates(self) -> Path:
        return self.folder / "certificates"

    def kubeconfig(self, user: str) -> Path:
        # No colon may stay: KUBECONFIG is a list with colons between.
        return self.folder / "kubeconfig" / f"{quote(user, safe='')}.json"

    def write_files(self) -> None:
        (self.folder / "audit-policy.json").write_text(json.dumps(AUDIT_POLICY))

    def command(self, program: str) -> list[str | Path]:
        return [*self._command(program), *self.flags.get(program, ())]

    def _command(self, program: str) -> list[str | Path]:
        match program:
            case "etcd":
                return self._etcd()
            case "kube-apiserver":
                return self._api_server()
            case "kube-controller-manager":
                return self._controller_manager()
            case "kube-scheduler":
                return self._scheduler()
        raise ValueError(f"{program} is no program of the control plane: {', '.join(ORDER)}")

    def health(self, program: str) -> tuple[int, str]:
        """Port and path that answer 200 when the program is ready; all but etcd speak TLS."""
        return {
            "etcd": (self.ports.etcd, "/readyz"),
            "kube-apiserver": (self.ports.api_server, "/readyz"),
            "kube-controller-manager": (self.ports.controller_manager, "/healthz"),
            "kube-scheduler": (self.ports.scheduler, "/healthz"),
        }[program]

    def _etcd(self) -> list[str | Path]:
        client, peer = f"http://{HOST}:{self.ports.etcd}", f"http://{HOST}:{self.ports.etcd_peer}"
        return [
            self.programs / "etcd",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",  # the data lives as long as the run
            "--log-level=warn",
        ]

    def _api_server(self) -> list[str | Path]:
        keys = self.certificates
        return [
            self.programs / "kube-apiserver",
            f"--etcd-servers=http://{HOST}:{self.ports.etcd}",
            f"--secure-port={self.ports.api_server}",
            f"--bind-address={HOST}",
            # Without these two the server wants a route to the outside and writes an Endpoints object of it.
            f"--advertise-address={HOST}",
            "--endpoint-reconciler-type=none",
            *self._serving(),
            f"--client-ca-file={keys / 'ca.crt'}",
            f"--service-account-issuer={ISSUER}",
            f"--service-account-key-file={keys / 'service-account.crt'}",
            f"--service-account-signing-key-file={keys / 'service-account.key'}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true",
            "--service-cluster-ip-range=10.96.0.0/24",
            f"--audit-policy-file={self.folder / 'audit-policy.json'}",
            f"--audit-log-path={self.audit_log}",
        ]

    def _controller_manager(self) -> list[str | Path]:
        return [
            self.programs / "kube-controller-manager",
            f"--kubeconfig={self.kubeconfig('system:kube-controller-manager')}",
            f"--service-account-private-key-file={self.certificates / 'service-account.key'}",
            f"--root-ca-file={self.certificates / 'ca.crt'}",
            "--use-service-account-credentials=true",
            # Nobody renews the leases of hollow nodes, and no test waits for a dead node.
            "--node-monitor-grace-period=24h",
            # It makes a ServiceAccount and a token for each of its controllers: five seconds of a start at 20 a second.
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
            *self._lone(self.ports.controller_manager),
        ]

    def _scheduler(self) -> list[str | Path]:
        return [
            self.programs / "kube-scheduler",
            f"--kubeconfig={self.kubeconfig('system:kube-scheduler')}",
            *self._lone(self.ports.scheduler),
        ]

    def _lone(self, port: int) -> list[str]:
        return ["--leader-elect=false", f"--bind-address={HOST}", f"--secure-port={port}", *self._serving()]

    def _serving(self) -> list[str]:
        server = self.certificates / "server"
        return [f"--tls-cert-file={server}.crt", f"--tls-private-key-file={server}.key"]
