"""Both ways to an API server (urllib3's, the node's) when connections are kept, end, break or stay silent."""

from __future__ import annotations

import re
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path

import pytest

from dra.kube import access, packaged, requests
from dra.kube.access import Access
from dra.kube.client import KubeClient
from dra.kube.connections import KeptConnections
from dra.kube.errors import NotFoundError, UnreachableError
from dra.kube.requests import DEVICE_CLASSES, NODES
from tests.cluster.cluster import Cluster
from tests.cluster.controlplane import free_ports
from tests.cluster.scripted import GONE, Scripted, scripted
from tests.cluster.waiting import wait_until
from tests.nodedriver import apiserver

READ = requests.get(NODES, "n")
WRITE = requests.create(NODES, b"{}")
WATCH = requests.watch(NODES)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
YES = HEAD + b"Content-Length: 2\r\n\r\n{}"
CUT = HEAD + b"Content-Length: 20\r\n\r\n{}"
CHUNKS = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
NOTHING = CHUNKS + b"0\r\n\r\n"
MIDDLE = "it ended in the middle of its answer"
GET = "GET /api/v1/nodes/n"


class Way:
    """One of the two, to what a kubeconfig file names."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.kubeconfig = folder / "kubeconfig"

    def client(self, url: str = "", timeout: float = 10.0) -> KubeClient:
        """For the file, which leads to that address if one is given."""
        if url:
            self.kubeconfig.write_text(apiserver.KUBECONFIG.format(url=url))
        return KubeClient(self._access(), timeout=timeout)

    def _access(self) -> Access:
        return access.of_kubeconfig(self.kubeconfig) if self.name == "node" else packaged.access(str(self.kubeconfig))


@pytest.fixture(params=["package", "node"])
def way(request: pytest.FixtureRequest, tmp_path: Path) -> Way:
    return Way(request.param, tmp_path)


@pytest.fixture
def node(tmp_path: Path) -> Way:
    return Way("node", tmp_path)


def test_a_connection_serves_one_call_after_the_other(way: Way) -> None:
    refusal = b'HTTP/1.1 404 Not Found\r\nContent-Length: 23\r\n\r\n{"message":"not found"}'
    with scripted(way.kubeconfig, [YES, refusal, CHUNKS + b"2\r\n{}\r\n0\r\n\r\n", YES]) as server:
        client = way.client()
        assert client.send(READ) == b"{}"
        with pytest.raises(NotFoundError, match="not found"):
            client.send(READ)
        assert client.send(READ) == b"{}"
        assert client.send(WRITE) == b"{}"
    assert [number for number, _ in server.requests] == [0, 0, 0, 0]


def test_a_connection_that_the_server_ended_meanwhile_is_not_used(way: Way) -> None:
    with scripted(way.kubeconfig, [YES], [YES]) as server:
        client = way.client()
        client.send(READ)
        server.wait_for_an_end()
        assert client.send(WRITE) == b"{}"  # even what is never sent twice
    assert [number for number, _ in server.requests] == [0, 1]


def test_a_connection_that_the_server_will_end_is_not_kept(way: Way) -> None:
    last = HEAD + b"Connection: close\r\n\r\n{}"
    with scripted(way.kubeconfig, [last], [YES]) as server:
        client = way.client()
        assert client.send(READ) == b"{}"
        assert client.send(READ) == b"{}"
    assert server.requests == [(0, GET), (1, GET)]


def test_a_read_is_sent_once_more_where_a_kept_connection_ends_at_that_moment(node: Way) -> None:
    with scripted(node.kubeconfig, [YES, b""], [YES]) as server:
        client = node.client()
        client.send(READ)
        assert client.send(READ) == b"{}"
    assert server.requests == [(0, GET), (0, GET), (1, GET)]


def test_a_write_is_never_sent_twice(node: Way) -> None:
    with scripted(node.kubeconfig, [YES, b""], [YES]) as server:
        client = node.client()
        client.send(READ)
        with pytest.raises(UnreachableError, match=f"^no answer from {server.url}: "):
            client.send(WRITE)
    assert len(server.requests) == 2


def test_a_read_is_sent_once_more_where_the_peer_of_all_kept_connections_is_gone(node: Way) -> None:
    with scripted(node.kubeconfig, *[[NOTHING, GONE]] * 3, [YES, YES]) as server:
        client = node.client(timeout=3)
        _keep(client, server, 3)
        assert client.send(READ) == b"{}"
        assert client.send(READ) == b"{}"
    assert server.requests[3:] == [(3, GET), (3, GET)]


def test_one_write_is_lost_where_the_peer_of_all_kept_connections_is_gone(node: Way) -> None:
    with scripted(node.kubeconfig, *[[NOTHING, GONE]] * 3, [YES]) as server:
        client = node.client(timeout=3)
        _keep(client, server, 3)
        with pytest.raises(UnreachableError, match=r": it did not answer in time$"):
            client.send(WRITE)
        assert client.send(WRITE) == b"{}"
    assert [number for number, _ in server.requests[3:]] == [3]


def test_a_read_waits_for_two_answers_at_most(node: Way) -> None:
    with scripted(node.kubeconfig, [NOTHING, GONE], [GONE], [YES]) as server:
        client = node.client(timeout=3)
        _keep(client, server, 1)
        with pytest.raises(UnreachableError, match=r": it did not answer in time$"):
            client.send(READ)
        assert client.send(READ) == b"{}"
    assert server.requests[1:] == [(2, GET)]


def test_a_connection_that_was_idle_for_30_seconds_is_not_used(node: Way) -> None:
    with scripted(node.kubeconfig, [YES], [YES]) as server:
        client = node.client()
        client.send(READ)
        kept = _kept(client)
        kept[:] = [(connection, since - 30) for connection, since in kept]
        client.send(WRITE)
    assert [number for number, _ in server.requests] == [0, 1]


def test_a_stream_whose_peer_is_gone_breaks_long_before_its_time(node: Way) -> None:
    with scripted(node.kubeconfig, [CHUNKS + b'8\r\n{"a":1}\n\r\n', GONE]), node.client().stream(WATCH) as lines:
        assert next(lines) == b'{"a":1}'
        with pytest.raises(UnreachableError, match=r" broke: Connection timed out$"):  # the kernel's, not our patience
            next(lines)


def test_a_new_connection_that_ends_at_once_is_told(way: Way) -> None:
    with (
        scripted(way.kubeconfig, [b""], [YES]) as server,
        pytest.raises(UnreachableError, match=f"^no answer from {server.url}: .*closed connection without"),
    ):
        way.client().send(READ)
    assert len(server.requests) == 1


@pytest.mark.parametrize("answer", [CUT, CHUNKS + b"5\r\n{}", CHUNKS + b"2\r\n{}\r\n"])
def test_an_answer_that_ends_too_early_is_told_and_the_next_call_is_served(way: Way, answer: bytes) -> None:
    with scripted(way.kubeconfig, [answer], [YES]) as server:
        client = way.client()
        with pytest.raises(UnreachableError, match=f"^no answer from {server.url}: {MIDDLE}$"):
            client.send(READ)
        assert client.send(READ) == b"{}"


def test_a_stream_gives_lines_whatever_its_chunks_and_leaves_its_connection_at_its_end(way: Way) -> None:
    stream = CHUNKS + b'4\r\n{"a"\r\n7\r\n:1}\n{"b\r\n5\r\n":2}\n\r\n0\r\n\r\n'
    with scripted(way.kubeconfig, [stream, YES]) as server:
        client = way.client()
        with client.stream(WATCH) as lines:
            assert list(lines) == [b'{"a":1}', b'{"b":2}']
        client.send(READ)
    assert [number for number, _ in server.requests] == [0, 0]


def test_a_stream_that_breaks_is_told(way: Way) -> None:
    with scripted(way.kubeconfig, [CHUNKS + b'8\r\n{"a":1}\n\r\n8\r\n{"b'], [YES]) as server:
        client = way.client()
        with client.stream(WATCH) as lines:
            assert next(lines) == b'{"a":1}'
            with pytest.raises(UnreachableError, match=f"^the stream from {server.url} broke: {MIDDLE}$"):
                next(lines)
        assert client.send(READ) == b"{}"


def test_a_stream_that_is_left_ends_its_connection(way: Way) -> None:
    with scripted(way.kubeconfig, [CHUNKS + b'8\r\n{"a":1}\n\r\n', YES], [YES]) as server:
        client = way.client()
        with client.stream(WATCH) as lines:
            assert next(lines) == b'{"a":1}'
        server.wait_for_an_end()
        assert client.send(READ) == b"{}"
    assert [number for number, _ in server.requests] == [0, 1]


@pytest.mark.parametrize(
    ("date", "expected"), [("Mon, 30 Nov 2026 09:00:00 GMT", "2026-11-30T09:00:0"), ("soon", "None"), ("", "None")]
)
def test_a_proxy_may_tell_no_date(way: Way, date: str, expected: str) -> None:
    header = f"Date: {date}\r\n" if date else ""
    with scripted(way.kubeconfig, [YES.replace(b"\r\n\r\n", f"\r\n{header}\r\n".encode())]):
        client = way.client()
        client.send(READ)
    assert str(told.isoformat() if (told := client.server_time()) else None).startswith(expected)


def test_no_server_is_told_with_its_address(way: Way) -> None:
    (port,) = free_ports(1)
    client = way.client(f"https://127.0.0.1:{port}", timeout=2)

    with pytest.raises(UnreachableError, match=rf"^no answer from https://127.0.0.1:{port}: Connection refused$"):
        client.send(READ)
    with pytest.raises(UnreachableError), client.stream(WATCH):
        pass


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_server_that_says_nothing_is_told_so(way: Way, scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = way.client(f"{scheme}://127.0.0.1:{silent.getsockname()[1]}", timeout=0.2)

        with pytest.raises(UnreachableError, match=r": it did not answer in time$"):
            client.send(READ)


def test_a_certificate_of_somebody_else_is_told_so(way: Way, cluster: Cluster) -> None:
    with pytest.raises(
        UnreachableError, match=f"^no answer from {re.escape(cluster.url)}: .*certificate verify failed"
    ):
        way.client(cluster.url).send(READ)


def test_calls_of_many_threads_do_not_mix(way: Way, cluster: Cluster) -> None:
    way.kubeconfig.write_text(cluster.kubeconfig().read_text())
    client = way.client()

    def asked(number: int) -> str:
        with pytest.raises(NotFoundError) as refused:
            client.send(requests.get(DEVICE_CLASSES, f"none-{number}"))
        return str(refused.value)

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(asked, range(80)))
    assert all(f'"none-{number}" not found' in answer for number, answer in enumerate(answers))


def test_no_more_connections_are_kept_than_32(node: Way) -> None:
    with apiserver.serve(node.kubeconfig) as store, ThreadPoolExecutor(40) as threads:
        client = node.client()
        store.put(READ.path, {"metadata": {"name": "n"}}, "ADDED")
        store.slow[READ.path] = threading.Event()
        answers = [threads.submit(client.send, READ) for _ in range(40)]
        wait_until(lambda: len(store.requests) == 40, "40 calls at once")
        store.slow[READ.path].set()
        assert all(b'"n"' in answer.result() for answer in answers)
        assert len(_kept(client)) == 32


def _keep(client: KubeClient, server: Scripted, number: int) -> None:
    """So many connections, each used once; what the script says after their answers has come to pass."""
    with ExitStack() as streams:
        for lines in [streams.enter_context(client.stream(WATCH)) for _ in range(number)]:
            assert list(lines) == []
    assert len(_kept(client)) == number
    for _ in range(number):
        server.wait_for_an_end()


def _kept(client: KubeClient) -> list[tuple[HTTPConnection, float]]:
    connections = client._access.connections
    assert isinstance(connections, KeptConnections)
    return connections._kept
