"""Connections of the standard library to one API server, kept for later calls: a node's way.

In less memory and processor time than urllib3's, and only for what `access` configures: no proxies, no redirects. What
is sent in them, and what an answer means, is `client`'s.
"""

from __future__ import annotations

import select
import ssl
import weakref
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from urllib.parse import urlsplit

from dra.kube.calls import BrokenError, Call, why

_KEPT = 32  # more are opened when needed, and closed after their call
_DIED = ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError  # what a kept connection's end looks like
_BROKEN = OSError, HTTPException


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
        self._kept: list[HTTPConnection] = []  # its `append` and `pop` are atomic
        weakref.finalize(self, _close_all, self._kept)

    def open(self, call: Call) -> KeptAnswer:
        """See `Connections`. A read is sent once more where the server had closed the kept connection meanwhile."""
        kept = self._usable()
        try:
            if kept is not None:
                try:
                    return self._ask(kept, call)
                except _DIED:
                    if call.method != "GET":  # a write may have been done
                        raise
            return self._ask(self._fresh(call.connect_seconds), call)
        except _BROKEN as error:
            raise BrokenError(why(error)) from error

    def give_back(self, connection: HTTPConnection) -> None:
        """Keep it for later, or close it where the server does or where enough are kept."""
        if len(self._kept) < _KEPT:
            self._kept.append(connection)
        else:
            connection.close()

    def _usable(self) -> HTTPConnection | None:
        while True:
            try:
                connection = self._kept.pop()
            except IndexError:
                return None
            if not _has_ended(connection):
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


def _close_all(connections: list[HTTPConnection]) -> None:
    for connection in connections:
        connection.close()
