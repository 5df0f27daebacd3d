"""What `client` asks of the connections to an API server, whoever keeps them: a call in, an answer out.

Two rooms keep some: `connections` (the standard library's, for programs on a node) and `pooled` (urllib3's, for all
that the `kubernetes` package can configure). Neither knows of headers, dates or refusals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from http.client import IncompleteRead
from typing import Protocol

from dra.kube.requests import Pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One HTTP request as it is sent; seconds for connecting, and for each wait on a piece of the answer."""

    method: str
    target: str
    headers: Pairs
    body: bytes | None
    connect_seconds: float
    read_seconds: float


class BrokenError(Exception):
    """No answer, or not the whole of it. The text says why, for people."""


class Answer(Protocol):
    """An answer whose head came. What is read of it raises BrokenError."""

    @property
    def status(self) -> int:
        """The code."""

    @property
    def date(self) -> str:
        """The Date header, "" without one."""

    def read(self) -> bytes:
        """The whole body."""

    def chunks(self) -> Iterator[bytes]:
        """The body piece by piece, as soon as each comes."""

    def close(self) -> None:
        """Be done with it, once: its connection serves later calls if it was read to its end, and ends if not."""


class Connections(Protocol):
    """Ways to one server. Safe to share between threads."""

    def open(self, call: Call) -> Answer:
        """Send it and wait for the head of the answer; BrokenError where none comes."""


def why(error: BaseException) -> str:
    """The system's own words for it (such as "Connection refused"), without the library's objects around them."""
    inner: BaseException | None = error
    while inner is not None:
        if isinstance(inner, OSError) and inner.strerror:
            return inner.strerror
        if isinstance(inner, TimeoutError):
            return "it did not answer in time"
        if isinstance(inner, IncompleteRead):
            return "it ended in the middle of its answer"
        inner = inner.__cause__ or inner.__context__
    return str(error)
