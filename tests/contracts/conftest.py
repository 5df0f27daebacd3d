"""Two doors to an API server, the simulator's and a real one's, that one suite of promises goes through.

`door` gives the same verbs to both; a test says what is promised, and runs on each.
"""

import json
import ssl
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from http.client import HTTPSConnection
from typing import Any, Protocol
from urllib.parse import parse_qsl

import pytest

from simulator.api.access import User, account
from simulator.api.calls import Answer, Call, Watch
from simulator.api.server import ApiServer
from simulator.http import read_schema, stamp
from simulator.store import Store
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import wait_until

ADMIN = User("admin", ("system:masters",))


type Headers = Mapping[str, str] | Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back of one request."""

    code: int
    body: Any
    warnings: tuple[str, ...] = ()


class Door(Protocol):
    """An API server: requests as its administrator, perhaps with headers such as impersonation."""

    namespace: str

    def send(self, method: str, path: str, body: Any = None, headers: Headers = (), user: str = "admin") -> Reply: ...

    def watch(self, path: str) -> list[Any]: ...

    def account(self, name: str) -> str:
        """Make a ServiceAccount; gives the user to send as."""

    def settle(self, happened: Callable[[], bool]) -> None:
        """Wait until controllers have done that; fail where they do not."""

    def cluster_role(
        self, rules: Sequence[Mapping[str, Any]], subject: Mapping[str, str]
    ) -> AbstractContextManager[None]:
        """A ClusterRole bound to the subject for a while."""


@dataclass(slots=True)
class SimulatorDoor:
    """The pure API server, called without a socket."""

    server: ApiServer
    namespace: str = "contract"

    def send(self, method: str, path: str, body: Any = None, headers: Headers = (), user: str = "admin") -> Reply:
        answered = self.server.handle(_call(method, path, body, _sent(headers, {"Authorization": f"Bearer {user}"})))
        assert isinstance(answered, Answer)
        content = json.loads(answered.body) if "json" in answered.content_type else answered.body.decode()
        return Reply(answered.code, content, tuple(value for _, value in answered.headers))

    def watch(self, path: str) -> list[Any]:
        answered = self.server.handle(_call("GET", path, None, [("Authorization", "Bearer admin")]))
        lines = answered.first if isinstance(answered, Watch) else (answered.body,)
        return [json.loads(line) for line in lines]

    def account(self, name: str) -> str:
        self.send("POST", f"/api/v1/namespaces/{self.namespace}/serviceaccounts", _account(name))
        return name

    def settle(self, happened: Callable[[], bool]) -> None:
        assert happened()

    @contextmanager
    def cluster_role(self, rules: Sequence[Mapping[str, Any]], subject: Mapping[str, str]) -> Iterator[None]:
        with _bound(self, rules, subject):
            yield


@dataclass(slots=True)
class ClusterDoor:
    """A real API server over TLS."""

    cluster: Cluster
    namespace: str

    def send(self, method: str, path: str, body: Any = None, headers: Headers = (), user: str = "admin") -> Reply:
        access = self.cluster.access() if user == "admin" else self.cluster.access(user)
        # A client certificate would win over a token that a test gives.
        own = any(key == "Authorization" for key, _ in _sent(headers, {}))
        tls = ssl.create_default_context(cafile=access.ca) if own else access.tls()
        connection = HTTPSConnection(access.host, access.port, timeout=30, context=tls)
        try:
            content = _bytes(body)
            connection.putrequest(method, path)
            for key, value in _sent(headers, access.headers() | {"Content-Length": str(len(content))}):
                connection.putheader(key, value)
            connection.endheaders(content)
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        warnings = tuple(value for key, value in response.getheaders() if key.lower() == "warning")
        is_json = "json" in (response.getheader("content-type") or "")
        return Reply(response.status, json.loads(content) if is_json else content.decode(), warnings)

    def watch(self, path: str) -> list[Any]:
        answered = self.cluster.raw("GET", f"{path}&timeoutSeconds=1")
        return [json.loads(line) for line in answered.body.splitlines()]

    def account(self, name: str) -> str:
        self.send("POST", f"/api/v1/namespaces/{self.namespace}/serviceaccounts", _account(name))
        self.cluster.service_account_kubeconfig(self.namespace, name)
        return f"system:serviceaccount:{self.namespace}:{name}"

    def settle(self, happened: Callable[[], bool]) -> None:
        wait_until(happened, "the controllers of the contract's namespace")

    @contextmanager
    def cluster_role(self, rules: Sequence[Mapping[str, Any]], subject: Mapping[str, str]) -> Iterator[None]:
        with _bound(self, rules, subject):
            yield


@contextmanager
def _bound(door: Door, rules: Sequence[Mapping[str, Any]], subject: Mapping[str, str]) -> Iterator[None]:
    group, name = "rbac.authorization.k8s.io", door.namespace
    base = {"apiVersion": f"{group}/v1", "metadata": {"name": name}}
    reference = {"apiGroup": group, "kind": "ClusterRole", "name": name}
    door.send("POST", f"/apis/{group}/v1/clusterroles", base | {"kind": "ClusterRole", "rules": list(rules)})
    binding = base | {"kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [dict(subject)]}
    door.send("POST", f"/apis/{group}/v1/clusterrolebindings", binding)
    try:
        yield
    finally:
        door.send("DELETE", f"/apis/{group}/v1/clusterrolebindings/{name}")
        door.send("DELETE", f"/apis/{group}/v1/clusterroles/{name}")


def _account(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}


def _sent(headers: Headers, defaults: Mapping[str, str]) -> list[tuple[str, str]]:
    """The headers over the defaults; a name may stand there more than once."""
    given = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
    names = {key for key, _ in given}
    base = {"Content-Type": "application/json"} | dict(defaults)
    return [*((key, value) for key, value in base.items() if key not in names), *given]


def _call(method: str, path: str, body: Any, headers: Sequence[tuple[str, str]]) -> Call:
    path, _, query = path.partition("?")
    lower = tuple((key.lower(), value) for key, value in headers)
    return Call(method=method, path=path, query=dict(parse_qsl(query)), headers=lower, body=_bytes(body))


def _bytes(body: Any) -> bytes:
    if body is None:
        return b""
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def make_simulator(**options: int) -> SimulatorDoor:
    users = {"admin": ADMIN, "web": account("contract", "web")}
    door = SimulatorDoor(ApiServer(Store(**options), read_schema(), users, stamp))
    door.send("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "contract"}})
    return door


@pytest.fixture
def simulator_door() -> SimulatorDoor:
    return make_simulator()


@pytest.fixture
def cluster_door(cluster: Cluster) -> Iterator[ClusterDoor]:
    name = f"contract-{uuid.uuid4().hex[:8]}"
    cluster.make_namespace(name)
    yield ClusterDoor(cluster, name)
    cluster.raw("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture(params=["simulator_door", pytest.param("cluster_door", marks=pytest.mark.cluster)])
def door(request: pytest.FixtureRequest) -> Door:
    """Both doors, one after the other."""
    made: Door = request.getfixturevalue(request.param)
    return made
