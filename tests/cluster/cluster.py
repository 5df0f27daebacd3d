"""A real control plane on loopback in a folder of its own: start, stop, and ways in for any user.

The fixture's own set-up acts as `admin` (system:masters); whatever is under test gets a user of its own with a
kubeconfig that has only the rights its roles give. Nodes are in `node.py` and `hollow.py`.
"""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.cluster import build, folders
from tests.cluster.access import Access, BearerToken, ClientCertificate
from tests.cluster.api import JSON, Answer, Api, answers
from tests.cluster.certificates import Authority
from tests.cluster.controlplane import HOST, ORDER, ControlPlane, choose_ports
from tests.cluster.processes import Processes, Program, ProgramError
from tests.cluster.sweep import remove_cluster, sweep
from tests.cluster.waiting import wait_until

ADMIN = "admin"
READY_SECONDS = 90.0
TOKEN_SECONDS = 4 * 3600


class ClusterError(Exception):
    """The cluster was used wrongly, or one of its tools refused; the text is what to read."""


class Cluster:
    """One control plane. `folder`, below `base`, holds all of its files; nodes and programs of tests may add theirs.

    After `start` it serves at `url`, with certificates by `ca`. `stop` leaves no process, mount or file.
    """

    def __init__(self, base: Path = folders.BASE, flags: Mapping[str, Sequence[str]] | None = None) -> None:
        """`flags` are more flags by program, as `{"kube-apiserver": ["--feature-gates=…"]}`."""
        self.programs = build.programs("kubernetes")
        sweep(base)
        self.flags = dict(flags or {})
        self.folder = folders.create(base)
        self.processes = Processes(self.folder)
        self._authority = Authority(self.folder / "certificates")
        self._running: dict[str, Program] = {}
        self._access: dict[str, Access] = {}

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException as error:
            self._stop_after(error)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop_after(error)

    @property
    def url(self) -> str:
        return self._access[ADMIN].url

    @property
    def ca(self) -> Path:
        return self._authority.certificate

    def start(self) -> None:
        """Start all and wait until each is ready; ProgramError with the end of the log of the one that is not."""
        self._make_keys()
        try:
            self._start_all()
        except ProgramError as error:
            # Between asking the kernel for a port and our use of it another program may have taken it: once more.
            if "address already in use" not in str(error):
                raise
            self._stop_all()
            self._start_all()
        self._await_service_account("default")

    def stop(self) -> None:
        """End everything below the folder, whoever started it, and remove the folder; safe to repeat."""
        self._stop_all()
        if self.folder.exists():
            remove_cluster(self.folder)

    def start_program(self, name: str) -> None:
        """Start one program of the control plane (again) and wait until it is ready."""
        program = self.processes.start(name, self._plane.command(name))
        self._running[name] = program
        program.wait_ready(lambda: self._healthy(name), READY_SECONDS)

    def stop_program(self, name: str) -> None:
        """Stop one program of the control plane, as a test of its absence wants."""
        # An API server keeps its port for up to a minute while watches are open; there is nothing to lose in a kill.
        self._running.pop(name).stop(grace=2.0)

    def access(self, user: str = ADMIN) -> Access:
        """The way in of a user that was made before."""
        if user not in self._access:
            raise ClusterError(f"nobody made the user {user}: call user_kubeconfig or service_account_kubeconfig first")
        return self._access[user]

    def kubeconfig(self, user: str = ADMIN) -> Path:
        """The kubeconfig file of a user that was made before."""
        return self._plane.kubeconfig(self.access(user).user)

    def user_kubeconfig(self, name: str, groups: Sequence[str] = ()) -> Path:
        """Make a user by client certificate; RBAC alone decides what this user may do."""
        return self._admit(name, self._authority.client(name, groups))

    def service_account_kubeconfig(self, namespace: str, name: str, node: str | None = None) -> Path:
        """A kubeconfig with a fresh token of an existing ServiceAccount; its user is `system:serviceaccount:NS:NAME`.

        With `node` the token is bound to that Node, as the token of a pod there is: the API server adds
        `authentication.kubernetes.io/node-name` to the user's extra fields (KEP-4193).
        """
        user = f"system:serviceaccount:{namespace}:{name}"
        return self._admit(user, BearerToken(self._token(namespace, name, node)))

    def kubectl(self, *arguments: str, input: str | None = None, user: str = ADMIN) -> str:  # noqa: A002
        """What kubectl prints; ClusterError with its own words where it fails."""
        command: list[str | Path] = [self.programs / "kubectl", f"--kubeconfig={self.kubeconfig(user)}", *arguments]
        done = subprocess.run(command, input=input, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ClusterError(f"kubectl {' '.join(arguments)}, as {user}: {done.stderr.strip()}")
        return done.stdout

    def apply(self, *documents: Mapping[str, Any], user: str = ADMIN) -> None:
        """Server-side apply of these objects."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
        self.kubectl("apply", "--server-side", "--filename=-", input=text, user=user)

    def api(self, user: str = ADMIN) -> Api:
        """A connection in this user's name, for a `with`."""
        return Api(self.access(user))

    def call(self, method: str, path: str, document: Mapping[str, Any] | None = None, *, user: str = ADMIN) -> Any:
        """One exchange of JSON documents; ApiError where the server refuses."""
        with self.api(user) as api:
            return api.call(method, path, document)

    def raw(
        self, method: str, path: str, body: bytes | None = None, content_type: str = JSON, *, user: str = ADMIN
    ) -> Answer:
        """One exchange of bytes, whatever the status."""
        with self.api(user) as api:
            return api.request(method, path, body, content_type)

    def make_namespace(self, name: str, labels: Mapping[str, str] | None = None) -> None:
        """Create a namespace and wait until pods can be made in it."""
        metadata = {"name": name, "labels": dict(labels or {})}
        self.call("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        self._await_service_account(name)

    def audit(self) -> Iterator[dict[str, Any]]:
        """Audit events so far, oldest first (audit.k8s.io/v1 Event, level Metadata)."""
        with self._plane.audit_log.open() as lines:
            for line in lines:
                if line.endswith("\n"):  # the last line may be half written
                    yield json.loads(line)

    def _stop_after(self, error: BaseException | None) -> None:
        if isinstance(error, Exception):  # an interrupt by hand is no failure to look into
            error.add_note(f"All logs of the cluster were kept in {folders.keep_logs(self.folder)}")
        self.stop()

    def _make_keys(self) -> None:
        self._authority.create()
        self._authority.server([f"IP:{HOST}", "DNS:localhost"])
        self._authority.key_pair("service-account")

    def _start_all(self) -> None:
        self._plane = ControlPlane(self.folder, self.programs, choose_ports(), self.flags)
        self._plane.write_files()
        self.user_kubeconfig(ADMIN, ["system:masters"])
        self.user_kubeconfig("system:kube-controller-manager")
        self.user_kubeconfig("system:kube-scheduler")
        for name in ORDER:
            self.start_program(name)

    def _stop_all(self) -> None:
        for name in reversed(ORDER):
            if name in self._running:
                self.stop_program(name)

    def _healthy(self, name: str) -> bool:
        port, path = self._plane.health(name)
        return answers(HOST, port, path, None if name == "etcd" else self._access[ADMIN].tls())

    def _admit(self, user: str, credential: ClientCertificate | BearerToken) -> Path:
        access = Access(HOST, self._plane.ports.api_server, self.ca, user, credential)
        file = self._plane.kubeconfig(user)
        file.parent.mkdir(mode=0o700, exist_ok=True)
        file.touch(mode=0o600)  # it holds a key or a token
        file.write_text(access.kubeconfig())
        self._access[user] = access
        return file

    def _token(self, namespace: str, name: str, node: str | None) -> str:
        spec: dict[str, Any] = {"expirationSeconds": TOKEN_SECONDS}
        if node is not None:
            uid = self.call("GET", f"/api/v1/nodes/{node}")["metadata"]["uid"]
            spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
        answer = self.call(
            "POST",
            f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec},
        )
        return str(answer["status"]["token"])

    def _await_service_account(self, namespace: str) -> None:
        # Until the controller manager has made it, admission refuses every pod of the namespace.
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
        wait_until(lambda: self.raw("GET", path).status == 200, f"the ServiceAccount default in {namespace}")
