"""Speak to the API server over HTTPS, for the fixtures' own set-up and for tests that look at raw answers.

It knows no kinds and keeps no state but one connection; the product's own client is `dra.kube`, which is tested by this
one's independence from it.
"""

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from types import TracebackType
from typing import Any, Self

from tests.cluster.access import Access

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"


class ApiError(Exception):
    """The API server said no; the text is its own sentence, `status` the HTTP code."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, as it came."""

    status: int
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    def expect(self) -> Any:
        """The decoded body; ApiError with the server's sentence where the status is no success."""
        if self.status < 300:
            return self.json()
        try:
            sentence = self.json()["message"]
        except (ValueError, KeyError, TypeError):
            sentence = self.body.decode(errors="replace").strip()
        raise ApiError(self.status, f"{self.status}: {sentence}")


class Api:
    """One kept connection in one user's name; use it in a `with`, from one thread."""

    def __init__(self, access: Access, seconds: float = 30.0) -> None:
        self._headers = access.headers()
        self._connection = HTTPSConnection(access.host, access.port, timeout=seconds, context=access.tls())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._connection.close()

    def request(self, method: str, path: str, body: bytes | None = None, content_type: str = JSON) -> Answer:
        """One exchange, whatever its status; OSError where the server is away."""
        headers = self._headers if body is None else {**self._headers, "Content-Type": content_type}
        self._connection.request(method, path, body, headers)
        response = self._connection.getresponse()
        return Answer(response.status, response.read())

    def call(self, method: str, path: str, document: Mapping[str, Any] | None = None, content_type: str = JSON) -> Any:
        """One exchange of JSON documents; ApiError where the server refuses."""
        body = None if document is None else json.dumps(document).encode()
        return self.request(method, path, body, content_type).expect()


def answers(host: str, port: int, path: str, tls: ssl.SSLContext | None = None) -> bool:
    """Whether a server says 200 there; over TLS where a context is given."""
    connection = (
        HTTPConnection(host, port, timeout=5) if tls is None else HTTPSConnection(host, port, timeout=5, context=tls)
    )
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
