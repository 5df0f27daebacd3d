"""Two doors to an API server, the simulator's and a real one's, that one suite of promises goes through.

`door` gives the same verbs to both; a test says what is promised, and runs on each.
"""

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPSConnection
from typing import Any, Protocol
from urllib.parse import parse_qsl

import pytest

from simulator.api.calls import Answer, Call, Watch
from simulator.api.server import ApiServer, User, account
from simulator.http import read_schema, stamp
from simulator.store import Store
from tests.cluster.cluster import Cluster

ADMIN = User("admin", ("system:masters",))


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back of one request."""

    code: int
    body: Any
    warnings: tuple[str, ...] = ()


class Door(Protocol):
    """An API server: requests as its administrator, perhaps with headers such as impersonation."""

    namespace: str

    def send(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None, user: str = "admin"
    ) -> Reply: ...

    def watch(self, path: str) -> list[Any]: ...


@dataclass(slots=True)
class SimulatorDoor:
    """The pure API server, called without a socket."""

    server: ApiServer
    namespace: str = "contract"

    def send(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None, user: str = "admin"
    ) -> Reply:
        answered = self.server.handle(
            _call(method, path, body, {"authorization": f"Bearer {user}"} | dict(headers or {}))
        )
        assert isinstance(answered, Answer)
        content = json.loads(answered.body) if "json" in answered.content_type else answered.body.decode()
        return Reply(answered.code, content, tuple(value for _, value in answered.headers))

    def watch(self, path: str) -> list[Any]:
        answered = self.server.handle(_call("GET", path, None, {"authorization": "Bearer admin"}))
        lines = answered.first if isinstance(answered, Watch) else (answered.body,)
        return [json.loads(line) for line in lines]


@dataclass(slots=True)
class ClusterDoor:
    """A real API server over TLS."""

    cluster: Cluster
    namespace: str

    def send(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None, user: str = "admin"
    ) -> Reply:
        access = self.cluster.access() if user == "admin" else self.cluster.access(user)
        connection = HTTPSConnection(access.host, access.port, timeout=30, context=access.tls())
        try:
            sent = {"Content-Type": "application/json"} | access.headers() | dict(headers or {})
            connection.request(method, path, _bytes(body), sent)
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


def _call(method: str, path: str, body: Any, headers: Mapping[str, str]) -> Call:
    path, _, query = path.partition("?")
    given = {"content-type": "application/json"} | {key.lower(): value for key, value in headers.items()}
    return Call(
        method=method, path=path, query=dict(parse_qsl(query)), headers=tuple(given.items()), body=_bytes(body) or b""
    )


def _bytes(body: Any) -> bytes | None:
    return body if body is None or isinstance(body, bytes) else json.dumps(body).encode()


def make_simulator(**options: int) -> SimulatorDoor:
    users = {"admin": ADMIN, "bound": account("contract", "web"), "nobody": User("nobody")}
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
