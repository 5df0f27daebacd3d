"""The door to Kubernetes: sends request values to an API server and streams what it says.

How it is reached is an `Access`: `from_environment` finds it with the `kubernetes` package, `of_node` without.
Imported by `portal.cluster`, `nodedriver.main` and tests alone (import contract).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.parse import urlencode

from dra.kube.access import Access, of_kubeconfig, of_pod
from dra.kube.calls import Answer, BrokenError, Call
from dra.kube.errors import UnreachableError
from dra.kube.requests import Pairs, Request
from dra.kube.responses import parse_refusal

_ERROR_STATUS = 400
_HEADERS: Pairs = (("Accept", "application/json"), ("User-Agent", "portico"))  # the audit log names the agent


class KubeClient:
    """The connections to one API server. Safe to share between threads."""

    def __init__(self, access: Access, *, timeout: float = 10.0) -> None:
        """`timeout` is in seconds, for connecting and for each wait on an answer; watches wait as long as asked."""
        self._access = access
        self._timeout = timeout
        self._date = "", 0.0  # the last that an answer told, and when by our monotonic clock

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
        text, then = self._date
        try:
            date = parsedate_to_datetime(text)
        except ValueError:
            return None
        return date + timedelta(seconds=0.5 + time.monotonic() - then)  # the middle of the second that it names

    def send(self, request: Request) -> bytes:
        """The body of a successful answer (see `dra.kube.port.Cluster`)."""
        with closing(self._open(request, self._timeout)) as answer:
            body = self._read(answer)
        if answer.status >= _ERROR_STATUS:
            raise parse_refusal(answer.status, body)
        return body

    @contextmanager
    def stream(self, request: Request) -> Iterator[Iterator[bytes]]:
        """The lines of a watch (see `dra.kube.port.Cluster`)."""
        seconds = dict(request.query).get("timeoutSeconds", "60")
        with closing(self._open(request, float(seconds) + self._timeout)) as answer:
            if answer.status >= _ERROR_STATUS:
                raise parse_refusal(answer.status, self._read(answer))
            yield self._lines(answer)

    def _lines(self, answer: Answer) -> Iterator[bytes]:
        rest = b""
        try:
            for chunk in answer.chunks():
                *lines, rest = (rest + chunk).split(b"\n")
                yield from (line for line in lines if line)
        except BrokenError as error:
            raise UnreachableError(f"the stream from {self.server} broke: {error}") from error

    def _read(self, answer: Answer) -> bytes:
        try:
            return answer.read()
        except BrokenError as error:
            raise UnreachableError(f"no answer from {self.server}: {error}") from error

    def _open(self, request: Request, read_seconds: float) -> Answer:
        query = f"?{urlencode(request.query)}" if request.query else ""
        call = Call(
            method=request.method,
            target=f"{self._access.base}{request.path}{query}",
            headers=(*_HEADERS, *self._credentials(), *request.headers),
            body=request.body,
            connect_seconds=self._timeout,
            read_seconds=read_seconds,
        )
        try:
            answer = self._access.connections.open(call)
        except BrokenError as error:
            raise UnreachableError(f"no answer from {self.server}: {error}") from error
        if answer.date:
            self._date = answer.date, time.monotonic()
        return answer

    def _credentials(self) -> Pairs:
        authorization = self._access.authorization()
        return (("Authorization", authorization),) if authorization else ()
