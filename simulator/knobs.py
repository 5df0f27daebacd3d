"""The simulator's own address beside the API: `/simulator/clock`, to read and set how fast the actors live.

Anyone whose token is an administrator's may turn it; all other paths go on to the API server.
"""

from __future__ import annotations

import json
import time
from typing import Any, Final

from dra.errors import DraError
from simulator.api.access import MASTERS
from simulator.api.server import ApiServer
from simulator.clock import RATES, Clock
from simulator.http import Application, Message, Receive, Send

PATH: Final = "/simulator/clock"
_MOST_BYTES: Final = 1000


class Knobs:
    """An ASGI application before the API server's."""

    def __init__(self, app: Application, server: ApiServer, clock: Clock) -> None:
        self._app, self._server, self._clock = app, server, clock

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer for the clock, or let the API server answer."""
        if scope["type"] != "http" or scope["path"] != PATH:
            await self._app(scope, receive, send)
            return
        code, content = self._answer(scope, await _body(receive))
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": code, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(content).encode()})

    def _answer(self, scope: Message, body: bytes) -> tuple[int, dict[str, Any]]:
        if not self._may(scope):
            return 403, {"message": "only the simulator's administrator may ask for its clock"}
        if scope["method"] not in {"GET", "PUT"}:
            return 405, {"message": f"{PATH} takes GET and PUT"}
        if scope["method"] == "PUT":
            try:
                asked = json.loads(body)
                self._clock.set_rate(asked["rate"], time.monotonic())
            except (ValueError, KeyError, TypeError, DraError) as error:
                return 422, {"message": f'write {{"rate": n}} with n among {", ".join(map(str, RATES))}: {error}'}
        return 200, {"rate": self._clock.rate, "seconds": round(self._clock.seconds(time.monotonic()), 3)}

    def _may(self, scope: Message) -> bool:
        token = next((value for key, value in scope["headers"] if key == b"authorization"), b"").decode("latin-1")
        user = self._server.find_user(token.removeprefix("Bearer "))
        return user is not None and MASTERS in user.groups


async def _body(receive: Receive) -> bytes:
    """What came, up to a length that no right request has."""
    body, more = b"", True
    while more and len(body) <= _MOST_BYTES:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body
