"""The HTTP door: `/metrics` for Prometheus, `/healthz` for the kubelet's probes.

Of a program that says what is on them: numbers and states of itself, no claim's name and no secret. Takes nothing in.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Protocol

import structlog

from nodedriver.exposition import CONTENT_TYPE

_log = structlog.get_logger()
_CLIENT_SECONDS = 10.0  # that a client may be silent


class Watched(Protocol):
    """The program as it is watched."""

    def metrics(self) -> bytes:
        """All metrics, in Prometheus's text format."""

    def health(self) -> Mapping[str, str]:
        """By check what is wrong, "" where nothing is."""


@contextmanager
def listening(address: str, port: int, watched: Watched) -> Iterator[None]:
    """Answer at that address until the context ends; port 0: nowhere. OSError where it is taken."""
    if not port:
        yield
        return
    with _Server(address, port, watched) as server:
        thread = threading.Thread(target=server.serve_forever, name="http", daemon=True)
        thread.start()
        _log.info("metrics and health served", address=address, port=port)
        try:
            yield
        finally:
            server.socket.shutdown(socket.SHUT_RD)  # wakes it, or it would look up every half second only
            server.shutdown()
            thread.join()


class _Server(ThreadingHTTPServer):
    def __init__(self, address: str, port: int, watched: Watched) -> None:
        self.watched = watched
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        super().__init__((address, port), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A line of the log, where the library would print to stderr."""
        error = sys.exception()
        if isinstance(error, OSError):
            _log.info("page not sent", error=str(error))
        else:
            _log.exception("page met a fault")


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _CLIENT_SECONDS

    def do_GET(self) -> None:
        """One page, and the end of the connection."""
        match self.path.partition("?")[0]:
            case "/metrics":
                self._answer(200, self.server.watched.metrics(), CONTENT_TYPE)
            case "/healthz":
                self._answer_health(self.server.watched.health())
            case _:
                self._answer(404, b"there are /metrics and /healthz\n")

    def _answer_health(self, health: Mapping[str, str]) -> None:
        """A line a check, as `/healthz?verbose` of Kubernetes' own programs has them."""
        lines = [f"[-]{check} failed: {why}" if why else f"[+]{check} ok" for check, why in health.items()]
        failed = {check: why for check, why in health.items() if why}
        if failed:
            _log.warning("program is not healthy", **failed)
        self._answer(503 if failed else 200, "".join(f"{line}\n" for line in lines).encode())

    def _answer(self, status: int, body: bytes, content_type: str = "text/plain; charset=utf-8") -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """A line of the log only where it is asked for."""
        _log.debug("page asked for", line=format % args)
