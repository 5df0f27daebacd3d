"""Connections of the standard library to one API server, kept for later calls: a node's way.

In less memory and processor time than urllib3's, and only for what `access` configures: no proxies, no redirects. What
is sent in them, and what an answer means, is `client`'s.
"""

from __future__ import annotations

import select
import socket
import ssl
import sys
import time
import weakref
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from urllib.parse import urlsplit

from dra.kube.calls import BrokenError, Call, why

_KEPT = 32  # more are opened when needed, and closed after their call
_IDLE = 30.0  # seconds; what was silent for longer may have been forgotten on the way without a word to either end
_ENDED = ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError  # the peer of a kept connection told of its end
_BROKEN = OSError, HTTPException
type _Kept = tuple[HTTPConnection, float]  # and since when, by the monotonic clock


class KeptConnections:
    """At most 32 that wait for a call; the one that was used last serves first. Safe to share between threads."""

    def __init__(self, server: str, tls: ssl.SSLContext) -> None:
        """ValueError for an address that is not one of http or https."""
        url = urlsplit(server)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError(f"server {server!r} is no address of http or https")
        self._address = url.hostname, url.port
        self._host = url.netloc.rpartition("@")[2]
        self._tls = tls if url.scheme == "https" else None
        tls.set_alpn_protocols(["http/1.1"])
        self._kept: list[_Kept] = []  # its `append` and `pop` are atomic
        weakref.finalize(self, _close_all, self._kept)

    def open(self, call: Call) -> KeptAnswer:
        """See `Connections`. A read that breaks on a kept connection is sent once more, on a new one.

        It waits for two answers at most. The kept connection may lead to a server that is gone without a word (its node
        was lost, a load balancer forgot the flow), and then all that are kept do, and each would cost a call.
        """
        kept = self._usable()
        try:
            if kept is not None:
                try:
                    return self._ask(kept, call)
                except OSError as error:
                    if not isinstance(error, _ENDED):
                        _close_all(self._kept)
                    if call.method != "GET":  # a write may have been done
                        raise
            return self._ask(self._fresh(call.connect_seconds), call)
        except _BROKEN as error:
            raise BrokenError(why(error)) from error

    def give_back(self, connection: HTTPConnection) -> None:
        """Keep it for later, or close it where the server does or where enough are kept."""
        if len(self._kept) < _KEPT:
            self._kept.append((connection, time.monotonic()))
        else:
            connection.close()

    def _usable(self) -> HTTPConnection | None:
        while True:
            try:
                connection, since = self._kept.pop()
            except IndexError:
                return None
            if time.monotonic() - since < _IDLE and not _has_ended(connection):
                return connection
            connection.close()

    def _fresh(self, seconds: float) -> HTTPConnection:
        host, port = self._address
        if self._tls is None:
            return HTTPConnection(host, port, timeout=seconds)
        return HTTPSConnection(host, port, timeout=seconds, context=self._tls)

    def _ask(self, connection: HTTPConnection, call: Call) -> KeptAnswer:
        try:
            if connection.sock is None:
                connection.connect()
                _probe_when_silent(connection)
            connection.sock.settimeout(call.read_seconds)
            connection.putrequest(call.method, call.target, skip_host=True, skip_accept_encoding=True)
            connection.putheader("Host", self._host)
            for name, value in call.headers:
                connection.putheader(name, value)
            if call.body is not None:
                connection.putheader("Content-Length", len(call.body))
            connection.endheaders(call.body)
            return KeptAnswer(self, connection, connection.getresponse())
        except BaseException:
            connection.close()
            raise


class KeptAnswer:
    """See `Answer`."""

    def __init__(self, home: KeptConnections, connection: HTTPConnection, response: HTTPResponse) -> None:
        self.status = response.status
        self.date = response.headers.get("Date", "")
        self._home = home
        self._connection = connection
        self._response = response

    def read(self) -> bytes:
        """See `Answer`."""
        try:
            return self._response.read()
        except _BROKEN as error:
            self._connection.close()
            raise BrokenError(why(error)) from error

    def chunks(self) -> Iterator[bytes]:
        """See `Answer`."""
        try:
            while piece := self._response.read1():
                yield piece
        except _BROKEN as error:
            self._connection.close()
            raise BrokenError(why(error)) from error

    def close(self) -> None:
        """See `Answer`. One that was read to its end leaves its connection to later calls."""
        if self._response.isclosed() and self._connection.sock is not None:
            self._home.give_back(self._connection)
        else:
            self._response.close()
            self._connection.close()


def _has_ended(connection: HTTPConnection) -> bool:
    """Whether the server closed it: nothing else can be there to read before a call."""
    waiting = select.poll()
    waiting.register(connection.sock, select.POLLIN)
    return bool(waiting.poll(0))


def _probe_when_silent(connection: HTTPConnection) -> None:
    """Let the kernel end it after about 30 s without a sign of its peer, where a watch would wait for minutes.

    Kubernetes' Go clients do so too: HTTP/2 pings after 30 s of silence (ReadIdleTimeout) and the end 15 s later
    (PingTimeout; apimachinery's util/net/http.go).
    """
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if sys.platform == "linux":  # tcp(7)
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15)
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
        # in milliseconds; without it a request that nobody acknowledges is repeated for 15 minutes, and never probed
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 30_000)


def _close_all(kept: list[_Kept]) -> None:
    with suppress(IndexError):  # another thread may take the last
        while kept:
            kept.pop()[0].close()
