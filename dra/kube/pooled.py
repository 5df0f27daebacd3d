"""Connections of urllib3, as the `kubernetes` package configures them: with proxies and all kinds of trust.

The portal's way; a program on a node does without the package (`connections`).
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urljoin

import urllib3
from urllib3.exceptions import HTTPError

from dra.kube.calls import BrokenError, Call, why

_CHUNK = 64 * 1024


class PooledConnections:
    """A pool of urllib3 to the server of that address. Safe to share between threads."""

    def __init__(self, pool: urllib3.PoolManager, server: str) -> None:
        self._pool = pool
        self._origin = urljoin(server, "/").rstrip("/")

    def open(self, call: Call) -> PooledAnswer:
        """See `Connections`."""
        headers = urllib3.HTTPHeaderDict()
        for name, value in call.headers:
            headers.add(name, value)
        try:
            response = self._pool.urlopen(
                call.method,
                f"{self._origin}{call.target}",
                body=call.body,
                headers=headers,
                preload_content=False,
                retries=False,
                redirect=False,
                timeout=urllib3.Timeout(connect=call.connect_seconds, read=call.read_seconds),
            )
        except HTTPError as error:
            raise BrokenError(why(error)) from error
        return PooledAnswer(response)


class PooledAnswer:
    """See `Answer`."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self.status = response.status
        self.date = response.headers.get("Date", "")
        self._response = response

    def read(self) -> bytes:
        """See `Answer`."""
        try:
            return self._response.data
        except HTTPError as error:
            raise BrokenError(why(error)) from error

    def chunks(self) -> Iterator[bytes]:
        """See `Answer`."""
        try:
            yield from self._response.stream(_CHUNK)
        except HTTPError as error:
            raise BrokenError(why(error)) from error

    def close(self) -> None:
        """See `Answer`."""
        self._response.close()
