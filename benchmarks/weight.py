"""What a page weighs over the wire: itself and everything that it names, as the web process serves them."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from html import unescape
from typing import Any

_NAMED = re.compile(rb'(?:src|href)="(/static/[^"#?]+)')
_HEADERS = ((b"host", b"testserver"), (b"accept-encoding", b"gzip"))


@dataclass(frozen=True, slots=True)
class Weight:
    """Bytes of the page, and of each thing that it loads, by path."""

    page: int
    loads: dict[str, int]

    @property
    def total(self) -> int:
        """Bytes in all."""
        return self.page + sum(self.loads.values())


def weight_of(page: bytes, sent: int) -> Weight:
    """The weight of a page with that text, which itself was `sent` bytes over the wire."""
    paths = dict.fromkeys(unescape(path.decode()) for path in _NAMED.findall(page))
    with ThreadPoolExecutor(1) as thread:  # the caller's may run a loop already, as a browser's door does
        return Weight(
            page=sent, loads={path: len(thread.submit(asyncio.run, _served(path)).result()) for path in paths}
        )


async def _served(path: str) -> bytes:
    """The body of a static file from the ASGI application."""
    from portal.asgi import application  # noqa: PLC0415 - only once Django is set up

    scope: dict[str, Any] = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": path, "raw_path": path.encode(), "root_path": "", "query_string": b"", "headers": list(_HEADERS),
        "client": ("127.0.0.1", 1), "server": ("testserver", 80),
    }  # fmt: skip
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await application(scope, receive, send)
    if sent[0]["status"] != 200:
        raise AssertionError(f"{path} is answered with {sent[0]['status']}")
    return b"".join(message.get("body", b"") for message in sent[1:])
