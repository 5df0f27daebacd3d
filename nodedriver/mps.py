"""The driver's way to the MPS supervisor: one request and one answer, a JSON line each, over its unix socket.

The messages stand here, since both ends speak them; `nodedriver.mpsd` is the other end. Fulfils `nodedriver.ports.Mps`.
"""

from __future__ import annotations

import socket
from pathlib import Path

import msgspec

from dra.names import ClaimUID
from nodedriver.deadline import seconds_left
from nodedriver.ports import MpsDaemonSpec, MpsDaemonStatus, MpsError, MpsReports

_LEAST = 0.05  # seconds: 0 would mean not to wait at all (socket.settimeout)


class Ensure(msgspec.Struct, frozen=True, tag="ensure"):
    """Let a daemon run with these defaults; answered by its status."""

    spec: MpsDaemonSpec


class Remove(msgspec.Struct, frozen=True, tag="remove"):
    """Stop the daemon of that device; answered by no status."""

    device: str


class EndClients(msgspec.Struct, frozen=True, tag="end-clients"):
    """End the clients of that device's daemon that are of that claim; answered when they have gone."""

    device: str
    claim: ClaimUID


class Watch(msgspec.Struct, frozen=True, tag="watch"):
    """Answered by how all daemons are, once that is another revision or the time is over."""

    revision: int
    seconds: float


class List(msgspec.Struct, frozen=True, tag="list"):
    """Answered by the status of every daemon."""


type MpsRequest = Ensure | Remove | EndClients | List | Watch


class MpsAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the supervisor says: daemons, or why not."""

    daemons: tuple[MpsDaemonStatus, ...] = ()
    reports: MpsReports = MpsReports()
    error: str = ""


class MpsClient:
    """The supervisor behind its socket. Connects anew for each request, so a restarted supervisor is no event."""

    def __init__(self, path: Path, *, timeout: float = 20.0) -> None:
        """`timeout` is in seconds for a whole request; the kubelet gives a prepare call 45."""
        self._path = path
        self._timeout = timeout

    def ensure(self, spec: MpsDaemonSpec) -> MpsDaemonStatus:
        """See `Mps`."""
        return self._ask(Ensure(spec)).daemons[0]

    def remove(self, device: str) -> None:
        """See `Mps`."""
        self._ask(Remove(device))

    def end_clients(self, device: str, claim: ClaimUID) -> None:
        """See `Mps`."""
        self._ask(EndClients(device, claim))

    def list(self) -> tuple[MpsDaemonStatus, ...]:
        """See `Mps`."""
        return self._ask(List()).daemons

    def watch(self, revision: int, seconds: float) -> MpsReports:
        """See `Mps`."""
        return self._ask(Watch(revision, seconds), wait=seconds).reports

    def _ask(self, request: MpsRequest, *, wait: float = 0) -> MpsAnswer:
        try:
            line = self._exchange(msgspec.json.encode(request) + b"\n", self._timeout + wait)
            answer = msgspec.json.decode(line, type=MpsAnswer)
        except (OSError, msgspec.MsgspecError) as error:
            raise MpsError(
                f"the MPS supervisor did not answer at {self._path}: {error}. See whether it runs (nodedriver.mpsd) "
                "and what its log says; the same request may succeed then."
            ) from error
        if answer.error:
            raise MpsError(answer.error)
        return answer

    def _exchange(self, line: bytes, timeout: float) -> bytes:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(max(seconds_left(timeout), _LEAST))
            connection.connect(str(self._path))
            connection.sendall(line)
            with connection.makefile("rb") as answer:
                return answer.readline()
