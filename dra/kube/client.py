"""The door to Kubernetes: sends request values to an API server and streams what it says.

How it is reached is an `Access`: `from_environment` finds it with the `kubernetes` package, `of_node` without.
Imported by `portal.cluster`, `nodedriver.main` and tests alone (import contract).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.parse import urlencode

import urllib3
from urllib3.exceptions import HTTPError

from dra.kube.access import Access, of_kubeconfig, of_pod
from dra.kube.errors import UnreachableError
from dra.kube.requests import Request
from dra.kube.responses import parse_refusal

_ERROR_STATUS = 400
_CHUNK = 64 * 1024


class KubeClient:
    """One connection pool to one API server. Safe to share between threads."""

    def __init__(self, access: Access, *, timeout: float = 10.0) -> None:
        """`timeout` is in seconds, for connecting and for each wait on an answer; watches wait as long as asked."""
        self._access = access
        self._timeout = timeout
        self._date: tuple[datetime, float] | None = None  # the last answer's, and when by our monotonic clock

    @property
    def server(self) -> str:
        """The address of the API server."""
        return self._access.server

    @classmethod
    def from_environment(cls, kubeconfig: str | None = None, *, timeout: float = 10.0) -> KubeClient:
        """Use that kubeconfig file, or without one the pod's service account; UnreachableError if neither is usable."""
        from dra.kube.packaged import access  # noqa: PLC0415 - what it imports costs memory, which a node has no use for

        return cls(access(kubeconfig), timeout=timeout)

    @classmethod
    def of_node(cls, kubeconfig: str | None = None) -> KubeClient:
        """The same for a program on a node, as far as `dra.kube.access` reads kubeconfig files, and in less memory."""
        return cls(of_kubeconfig(Path(kubeconfig)) if kubeconfig else of_pod(os.environ))

    def server_time(self) -> datetime | None:
        """The API server's clock now (see `dra.kube.port.Cluster`)."""
        if self._date is None:
            return None
        date, then = self._date
        return date + timedelta(seconds=time.monotonic() - then)

    def send(self, request: Request) -> bytes:
        """The body of a successful answer (see `dra.kube.port.Cluster`)."""
        response = self._open(request, preload=True, read_timeout=self._timeout)
        if response.status >= _ERROR_STATUS:
            raise parse_refusal(response.status, response.data)
        return response.data

    @contextmanager
    def stream(self, request: Request) -> Iterator[Iterator[bytes]]:
        """The lines of a watch (see `dra.kube.port.Cluster`)."""
        seconds = dict(request.query).get("timeoutSeconds", "60")
        response = self._open(request, preload=False, read_timeout=float(seconds) + self._timeout)
        try:
            if response.status >= _ERROR_STATUS:
                raise parse_refusal(response.status, response.read())
            yield self._lines(response)
        finally:
            response.close()

    def _lines(self, response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
        rest = b""
        try:
            for chunk in response.stream(_CHUNK):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from (line for line in lines if line)
        except HTTPError as error:
            raise UnreachableError(f"the stream from {self.server} broke: {_reason(error)}") from error

    def _open(self, request: Request, *, preload: bool, read_timeout: float) -> urllib3.BaseHTTPResponse:
        query = f"?{urlencode(request.query)}" if request.query else ""
        try:
            response = self._access.pool.urlopen(
                request.method,
                f"{self._access.base}{request.path}{query}",
                body=request.body,
                headers=self._headers(request),
                preload_content=preload,
                retries=False,
                redirect=False,
                timeout=urllib3.Timeout(connect=self._timeout, read=read_timeout),
            )
        except HTTPError as error:
            raise UnreachableError(f"no answer from {self.server}: {_reason(error)}") from error
        self._date = _date_of(response) or self._date
        return response

    def _headers(self, request: Request) -> urllib3.HTTPHeaderDict:
        headers = urllib3.HTTPHeaderDict({"Accept": "application/json"})
        if authorization := self._access.authorization():
            headers["Authorization"] = authorization
        for name, value in request.headers:
            headers.add(name, value)
        return headers


def _date_of(response: urllib3.BaseHTTPResponse) -> tuple[datetime, float] | None:
    """The middle of the second that the Date header names, with our time; None for one that is no date or lacks."""
    try:
        date = parsedate_to_datetime(response.headers.get("Date", ""))
    except ValueError:
        return None
    return date + timedelta(seconds=0.5), time.monotonic()


def _reason(error: BaseException) -> str:
    """The system's own words for it (such as "Connection refused"), without the library's objects around them."""
    inner: BaseException | None = error
    while inner is not None:
        if isinstance(inner, OSError) and inner.strerror:
            return inner.strerror
        inner = inner.__cause__ or inner.__context__
    return (
        "it did not answer in time" if isinstance(error, TimeoutError | urllib3.exceptions.TimeoutError) else str(error)
    )
