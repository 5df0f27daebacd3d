"""A server on a real loopback socket that answers what a test wrote down, bytes for bytes, and ends when told so.

For what no healthy API server can be made to do in time: to end inside an answer, or just when a request comes, or to
be gone without a word.
"""

from __future__ import annotations

import ctypes
import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.nodedriver.apiserver import KUBECONFIG

GONE = b"(gone)"  # in place of an answer: the other end hears of this connection no more, as of a lost node's
_PATIENCE = 30.0  # seconds; longer than any test waits for a request
_SO_ATTACH_FILTER = 26  # asm-generic/socket.h; Python does not name it
_DROP_ALL = struct.pack("HBBI", 0x06, 0, 0, 0)  # BPF's "ret #0" (linux/filter.h): keep no byte of any packet


class Scripted:
    """Each connection gets its answers in turn, then ends; an empty answer ends it when the request has come."""

    def __init__(self, connections: Sequence[Sequence[bytes]]) -> None:
        self.requests: list[tuple[int, str]] = []  # number of the connection, method and target
        self._connections = connections
        self._ended = threading.Semaphore(0)
        self._gone: list[socket.socket] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(_PATIENCE)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def wait_for_an_end(self) -> None:
        """Until it has ended one more connection."""
        assert self._ended.acquire(timeout=_PATIENCE)

    def serve(self) -> None:
        """One connection after the other, to the last that a test wrote down or until the socket is closed."""
        for number, answers in enumerate(self._connections):
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            if GONE in answers:
                self._gone.append(connection.dup())
            with connection, suppress(ConnectionError):  # a client may leave with something unread
                connection.settimeout(_PATIENCE)
                self._answer(number, connection, answers)
            self._ended.release()

    def close(self) -> None:
        """Take no more connections; `shutdown` wakes the thread that waits for one."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for connection in self._gone:
            connection.close()

    def _answer(self, number: int, connection: socket.socket, answers: Sequence[bytes]) -> None:
        with connection.makefile("rb") as received:
            for answer in answers:
                if answer == GONE:
                    _drop_all(connection)
                    return
                if not (line := received.readline()):
                    return
                self.requests.append((number, " ".join(line.decode().split()[:2])))
                length = 0
                while (header := received.readline().strip()) != b"":
                    name, _, value = header.partition(b":")
                    length = int(value) if name.lower() == b"content-length" else length
                received.read(length)
                connection.sendall(answer)


def _drop_all(connection: socket.socket) -> None:
    """Whatever comes now is neither read nor acknowledged."""
    program = ctypes.create_string_buffer(_DROP_ALL)
    connection.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", 1, ctypes.addressof(program)))


@contextmanager
def scripted(kubeconfig: Path, *connections: Sequence[bytes]) -> Iterator[Scripted]:
    """The server, and a kubeconfig file that leads to it."""
    server = Scripted(connections)
    kubeconfig.write_text(KUBECONFIG.format(url=server.url))
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join()
