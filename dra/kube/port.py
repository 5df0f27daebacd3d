"""What services and the node driver may ask of a cluster. `dra.kube.client.KubeClient` is the real door."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

from dra.kube.requests import Request, Resource, list_page
from dra.kube.responses import Page, parse_page


class Cluster(Protocol):
    """A way to the API server. What is sent raises the errors of `dra.kube.errors`, and no others."""

    def send(self, request: Request) -> bytes:
        """The body of a successful answer."""

    def stream(self, request: Request) -> AbstractContextManager[Iterator[bytes]]:
        """The lines of a watch as they come; closing the context ends it. A silent end of the stream is no error."""

    def server_time(self) -> datetime | None:
        """What the API server's clock shows now, to a second, by the answers so far; None while none told it."""


def list_all(cluster: Cluster, resource: Resource, *, namespace: str = "", field_selector: str = "") -> Iterator[Page]:
    """Every page of a collection, in order. GoneError between pages: start over."""
    token = ""
    while True:
        request = list_page(resource, namespace=namespace, field_selector=field_selector, continue_token=token)
        page = parse_page(cluster.send(request))
        yield page
        token = page.continue_token
        if not token:
            return
