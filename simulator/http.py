"""The simulator's HTTP edge: an ASGI application on the API server, the files it is fed by, kubeconfigs for its users.

One event loop serves it; the lock keeps threads that write to the store besides (controllers) apart from calls.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import Any, Final
from urllib.parse import parse_qsl

from simulator.api.calls import Answer, Call, Watch
from simulator.api.schema import Schema
from simulator.api.server import ApiServer
from simulator.store import Change, Stamp

type Message = MutableMapping[str, Any]
type Receive = Callable[[], Awaitable[Message]]
type Send = Callable[[Message], Awaitable[None]]

_BOOKMARK_SECONDS: Final = 60.0
_STREAM: Final = ((b"content-type", b"application/json"),)


def read_schema() -> Schema:
    """The field names and types that come with the simulator."""
    return Schema.parse((Path(__file__).parent / "schema.json").read_bytes())


def stamp() -> Stamp:
    """The present, by the wall clock."""
    return Stamp(datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), str(uuid.uuid4()))


def kubeconfig(url: str, user: str, token: str) -> str:
    """The text of a kubeconfig for one user of the simulator; JSON, which is YAML too."""
    context = {"cluster": "simulator", "user": user, "namespace": "default"}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "simulator", "cluster": {"server": url}}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "simulator", "context": context}],
        "current-context": "simulator",
    }
    return json.dumps(config, indent=2)


def for_kubectl(url: str, token: str) -> str:
    """The same for kubectl, which sends no token without TLS: there the token is the password in the address."""
    return kubeconfig(url.replace("http://", f"http://admin:{token}@"), "admin", token)


class Application:
    """The ASGI application. `lock` must be held by whoever else touches the store."""

    def __init__(self, server: ApiServer, lock: RLock | None = None) -> None:
        self._server = server
        self.lock = lock or RLock()
        self._streams: set[_Stream] = set()
        server.store.listen(self._tell)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one connection's request (ASGI 3, `http`; `lifespan` is declined, which servers take for "none")."""
        if scope["type"] != "http":
            raise NotImplementedError(scope["type"])
        call = await _call(scope, receive)
        with self.lock:
            answered = self._server.handle(call)
            stream = self._open(answered) if isinstance(answered, Watch) else None
        if isinstance(answered, Answer):
            await _send(send, answered)
        elif stream is not None:
            await self._follow(stream, receive, send)

    def _open(self, watch: Watch) -> _Stream:
        """Register the watch before the lock is let go, so that no change falls between its list and its stream."""
        stream = _Stream(watch, asyncio.get_running_loop())
        self._streams.add(stream)
        return stream

    def _tell(self, change: Change) -> None:
        for stream in tuple(self._streams):
            stream.tell(change)

    async def _follow(self, stream: _Stream, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(_until_gone(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": _STREAM})
            await send(_part(b"".join(stream.watch.first)))
            await self._send_changes(stream, send, gone)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._streams.discard(stream)
            gone.cancel()

    async def _send_changes(self, stream: _Stream, send: Send, gone: asyncio.Future[None]) -> None:
        end, told = time.monotonic() + stream.watch.seconds, 0
        while (left := end - time.monotonic()) > 0 and not gone.done():
            heard = asyncio.ensure_future(stream.heard.wait())
            both: set[asyncio.Future[Any]] = {heard, gone}
            quiet = min(left, _BOOKMARK_SECONDS)
            woken, _ = await asyncio.wait(both, timeout=quiet, return_when=asyncio.FIRST_COMPLETED)
            heard.cancel()
            with self.lock:
                part = stream.taken()
                if not woken and not part and stream.watch.bookmarks and told != self._server.store.version:
                    told = self._server.store.version  # a timer that wakes early would tell it again
                    part = stream.watch.bookmark(told)
            if part and not gone.done():
                await send(_part(part))


class _Stream:
    """A watch with the lines that wait to be sent. Its methods are called under the lock."""

    def __init__(self, watch: Watch, loop: asyncio.AbstractEventLoop) -> None:
        self.watch = watch
        self.heard = asyncio.Event()
        self._lines: list[bytes] = []
        self._loop = loop

    def tell(self, change: Change) -> None:
        """Hear of a change, from any thread."""
        if change.kind == self.watch.kind and (line := self.watch.line_of(change)):
            self._lines.append(line)
            self._loop.call_soon_threadsafe(self.heard.set)

    def taken(self) -> bytes:
        """All lines that wait; none wait after."""
        lines = b"".join(self._lines)
        self._lines.clear()
        self.heard.clear()
        return lines


async def _call(scope: Message, receive: Receive) -> Call:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return Call(
        method=scope["method"],
        path=scope["raw_path"].decode("latin-1").partition("?")[0],
        query=dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)),
        headers=tuple((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]),
        body=body,
    )


async def _send(send: Send, answered: Answer) -> None:
    headers = [(b"content-type", answered.content_type.encode())]
    headers += [(name.encode(), value.encode()) for name, value in answered.headers]
    headers.append((b"content-length", str(len(answered.body)).encode()))
    await send({"type": "http.response.start", "status": answered.code, "headers": headers})
    await send({"type": "http.response.body", "body": answered.body, "more_body": False})


def _part(body: bytes) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": True}


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
