"""A loopback relay in front of the API server: plain HTTP in, TLS out, every request recorded as it came.

What it records is what the portal really sent. It adds and takes away nothing, so rights are those of the caller's own
credentials; `drop_next` loses an answer on its way back, as a broken network does.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from http.client import HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.cluster.access import Access, BearerToken

type Headers = tuple[tuple[str, str], ...]
HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "host", "content-length"})


@dataclass(frozen=True, slots=True)
class Recorded:
    """One request as it came, and the status that answered it."""

    method: str
    target: str
    headers: Headers
    body: bytes
    status: int

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    def header(self, name: str) -> list[str]:
        """Every value of that header."""
        return [value for key, value in self.headers if key.lower() == name.lower()]


class Relay:
    """Serves on a free loopback port while its `with` lasts; `access` is the portal's own way in."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self.recorded: list[Recorded] = []
        self._dropping = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_for(self))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def drop_next_write(self) -> None:
        """The next POST that is no dry run reaches the API server, and its answer is lost."""
        self._dropping.set()

    def writes(self) -> list[Recorded]:
        """What would have changed the cluster: no reads, no dry runs."""
        return [each for each in self.recorded if each.method != "GET" and "dryRun" not in each.target]

    def kubeconfig(self, folder: Path) -> Path:
        """A kubeconfig by which the portal comes through here."""
        token = self.access.credential.token if isinstance(self.access.credential, BearerToken) else ""
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "relay", "cluster": {"server": self.url}}],
            "users": [{"name": "portal", "user": {"token": token}}],
            "contexts": [{"name": "relay", "context": {"cluster": "relay", "user": "portal"}}],
            "current-context": "relay",
        }
        file = folder / "relay-kubeconfig"
        file.write_text(json.dumps(config))
        return file

    def forward(self, method: str, target: str, headers: Headers, body: bytes) -> tuple[int, str, bytes]:
        """Status, media type and body of the API server's answer. Headers may repeat, as Impersonate-Group does."""
        connection = HTTPSConnection(self.access.host, self.access.port, timeout=30, context=self.access.tls())
        try:
            connection.putrequest(method, target, skip_accept_encoding=True)
            for name, value in headers:
                if name.lower() not in HOP_BY_HOP:
                    connection.putheader(name, value)
            connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, answer.headers.get_content_type(), answer.read()
        finally:
            connection.close()

    def loses(self, method: str, target: str) -> bool:
        """Whether this answer is the one to be lost; only once."""
        lost = self._dropping.is_set() and method == "POST" and "dryRun" not in target
        if lost:
            self._dropping.clear()
        return lost


def _handler_for(relay: Relay) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = tuple(self.headers.items())
            status, media, answer = relay.forward(self.command, self.path, headers, body)
            relay.recorded.append(Recorded(self.command, self.path, headers, body, status))
            if relay.loses(self.command, self.path):
                self.close_connection = True
                return
            self.send_response(status)
            self.send_header("Content-Type", media)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_POST = do_DELETE = do_PUT = do_PATCH = do_GET  # noqa: N815 - names that http.server asks for

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            """What came is kept in the record instead."""

    return Handler
