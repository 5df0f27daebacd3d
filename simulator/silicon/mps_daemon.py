"""The MPS control daemon's process: its pipe directory, its socket, its connections, and how it ends.

One JSON object a line in both directions. `{"command": "ps"}` and, under version 3, `{"words": ["client", "list"]}` are
answered by `{"output": …}` or `{"error": …}`;
`{"cuda": "connect", "environment": {…}}` and `{"cuda": "alloc", "bytes": n}` by `{"result": "CUDA_SUCCESS", …}` or the
refusal. A client holds its context and memory for as long as its connection lives. `mps_service.py` says what it means.
"""

from __future__ import annotations

import fcntl
import os
import selectors
import socket
import struct
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Literal

import msgspec

from simulator.silicon import mps_commands, mps_modules
from simulator.silicon.contexts import CudaRefused, CudaResult
from simulator.silicon.mps_doors import Door, Doors, listen
from simulator.silicon.mps_service import Client, MustWait, Peer, Route, Service

_NO_TIMEOUT = float("inf")

type Answer = dict[str, str | int | float | None]


class AlreadyRunningError(Exception):
    """Another daemon serves this pipe directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One line from a connection: a control command, or what a CUDA program wants."""

    command: str | None = None
    words: list[str] | None = None
    cuda: Literal["connect", "alloc"] | None = None
    environment: dict[str, str] = field(default_factory=dict)
    bytes: int = 0


@dataclass(slots=True)
class Connection:
    """One open connection: what came in and is no whole line yet, and the CUDA client behind it, if it is one."""

    socket: socket.socket
    peer: Peer
    route: Route | None = None
    buffer: bytes = b""
    client: Client | None = None
    waits_with: Message | None = None


@dataclass(slots=True)
class PipeDirectory:
    """The files of a pipe directory: `control` (socket), `control_lock`, the pid file; logs lie beside or elsewhere."""

    path: Path
    logs: Path
    lock: IO[bytes] | None = field(default=None)

    def claim(self) -> socket.socket:
        """Become the one daemon of this directory and listen. OSError when the path is too long for a Unix socket."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.logs.mkdir(parents=True, exist_ok=True)
        self.lock = (self.path / "control_lock").open("ab")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise AlreadyRunningError(f"An MPS control daemon serves {self.path} already.") from error
        control = self.path / "control"
        listener = listen(control)
        self.log(f"Starting control daemon using socket {control}")
        return listener

    def announce(self) -> None:
        """Say that the daemon serves: write its pid."""
        (self.path / "nvidia-cuda-mps-control.pid").write_text(f"{os.getpid()}\n")

    def leave(self) -> None:
        self.log("Exit")
        (self.path / "nvidia-cuda-mps-control.pid").unlink(missing_ok=True)
        (self.path / "control").unlink(missing_ok=True)

    def log(self, line: str) -> None:
        with (self.logs / "control.log").open("a") as file:
            file.write(f"[{time.strftime('%Y-%m-%d %H:%M:%S')} Control {os.getpid()}] {line}\n")


class Daemon:
    """The loop around one listening socket. `serve` returns when the daemon has ended."""

    def __init__(self, listener: socket.socket, service: Service, directory: PipeDirectory, signals: int) -> None:
        """`signals`: a descriptor that can be read once a signal says that it shall end."""
        self._door = Door(listener)
        self._signals = signals
        self._signalled = False
        self._service = service
        self._directory = directory
        self._selector = selectors.DefaultSelector()
        self._doors = Doors(directory.path, self._selector)
        self._connections: list[Connection] = []
        self._server_pidfds: dict[int, int] = {}
        self._deadline: float | None = None

    def serve(self) -> None:
        self._selector.register(self._door.listener, selectors.EVENT_READ, self._door)
        self._selector.register(self._signals, selectors.EVENT_READ, self._signals)
        try:
            while not self._is_over():
                self._step()
        finally:
            servers = self._service.daemon()
            self._service.stop()
            self._doors.match(replace(servers, servers=()))
            self._directory.leave()

    def _is_over(self) -> bool:
        """Whether a signal came, or a `quit` was asked for and no client is left, or its time is up."""
        if self._signalled:
            return True
        if self._deadline is None:
            return False
        return time.monotonic() >= self._deadline or not any(c.client for c in self._connections)

    def _step(self) -> None:
        left = None if self._deadline in (None, _NO_TIMEOUT) else max(0.0, self._deadline - time.monotonic())
        for key, _ in self._selector.select(left):
            if key.fd == self._signals:
                self._directory.log("Received a signal to end")
                self._signalled = True
                return
            if isinstance(key.data, Door):
                self._accept(key.data)
            elif isinstance(key.data, Connection):
                self._read(key.data)
            else:
                self._lose_server(key.data)
        self._watch_servers()
        self._serve_waiting()

    def _accept(self, door: Door) -> None:
        connected, _ = door.listener.accept()
        size = struct.calcsize("3i")
        pid, uid, _ = struct.unpack("3i", connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
        connection = Connection(connected, Peer(pid, uid), door.route)
        self._connections.append(connection)
        self._selector.register(connected, selectors.EVENT_READ, connection)

    def _read(self, connection: Connection) -> None:
        if connection not in self._connections:
            return
        try:
            received = connection.socket.recv(65536)
        except ConnectionResetError:
            received = b""
        if not received:
            self._close(connection)
            return
        *lines, connection.buffer = (connection.buffer + received).split(b"\n")
        try:
            messages = [msgspec.json.decode(line, type=Message) for line in lines]
        except msgspec.DecodeError as error:
            self._directory.log(f"Client {connection.peer.pid} sent what is no message: {error}")
            self._close(connection)
            return
        for message in messages:
            self._reply(connection, message)

    def _reply(self, connection: Connection, message: Message) -> None:
        answer = self._answer(connection, message)
        if answer is None:
            return
        try:
            connection.socket.sendall(msgspec.json.encode(answer) + b"\n")
        except (BrokenPipeError, ConnectionResetError):
            self._directory.log(f"Client {connection.peer.pid} left before its answer")

    def _close(self, connection: Connection) -> None:
        if connection not in self._connections:
            return
        self._connections.remove(connection)
        self._selector.unregister(connection.socket)
        connection.socket.close()
        if connection.client is not None:
            self._service.disconnect(connection.client)

    def _answer(self, connection: Connection, message: Message) -> Answer | None:
        """The answer to one line, or None when it comes later: a waiting client, or a `quit`, answered by the end."""
        if message.command is not None or message.words is not None:
            if (self._service.daemon().protocol == 3) != (message.command is None):
                return {"error": "Protocol 2 takes commands line by line, protocol 3 as arguments."}
            return self._command(message.command) if message.command is not None else self._words(message.words or [])
        try:
            if message.cuda == "connect":
                return self._connect(connection, message)
            return self._allocate(connection, message.bytes)
        except CudaRefused as refusal:
            return {"result": refusal.result.name, "code": refusal.result.value, "why": refusal.why}

    def _words(self, words: list[str]) -> Answer | None:
        """A command of version 3; its doors are as it says before it is answered."""
        self._directory.log(f"Command: {' '.join(words)}")
        try:
            match words:
                case ["-q"]:
                    self._quit(0)
                    return None
                case ["client", "terminate", client]:
                    self._terminate(None, client)
                    return {"output": ""}
            output = mps_modules.run(self._service, words)
            self._doors.match(self._service.daemon())
        except ValueError as error:
            return {"error": str(error)}
        return {"output": output}

    def _command(self, line: str) -> Answer | None:
        self._directory.log(f"Command: {line}")
        try:
            match line.split():
                case ["quit"]:
                    self._quit(_NO_TIMEOUT)
                case ["quit", "-t", seconds]:
                    self._quit(float(seconds))
                case ["terminate_client", server, client]:
                    self._terminate(server, client)
                    return {"output": ""}
                case _:
                    return {"output": mps_commands.run(self._service, line)}
        except ValueError as error:
            return {"error": str(error)}
        return None

    def _quit(self, seconds: float) -> None:
        """Take no new connections; end when the clients have gone, or after `seconds`."""
        if self._deadline is None:
            self._selector.unregister(self._door.listener)
            self._door.listener.close()
        self._deadline = time.monotonic() + seconds

    def _terminate(self, server: str | None, client: str) -> None:
        """Take a client's contexts away. Its process stays, and learns of it. `server` None: whichever it is of."""
        found = [c for c in self._connections if c.client and _is_client(c.client, server, client)]
        if not found:
            raise ValueError(f"MPS server {server or ''} has no client {client}.")
        for connection in found:
            self._close(connection)

    def _connect(self, connection: Connection, message: Message) -> Answer | None:
        try:
            connection.client = self._service.connect(connection.peer, message.environment, connection.route)
        except MustWait:
            connection.waits_with = message
            return None
        return _success(connection.client)

    def _allocate(self, connection: Connection, size: int) -> Answer:
        if connection.client is None:
            raise CudaRefused(CudaResult.CUDA_ERROR_MPS_CONNECTION_FAILED, "no context: connect first")
        self._service.allocate(connection.client, size)
        return _success(connection.client)

    def _serve_waiting(self) -> None:
        for connection in self._connections:
            message, connection.waits_with = connection.waits_with, None
            if message is not None:
                self._reply(connection, message)

    def _watch_servers(self) -> None:
        """Hear when a server dies, and stop listening for those that were ended."""
        alive = {server.pid for server in self._service.daemon().servers}
        for pid in alive - self._server_pidfds.keys():
            self._server_pidfds[pid] = os.pidfd_open(pid)
            self._selector.register(self._server_pidfds[pid], selectors.EVENT_READ, pid)
        for pid in self._server_pidfds.keys() - alive:
            self._selector.unregister(self._server_pidfds[pid])
            os.close(self._server_pidfds.pop(pid))

    def _lose_server(self, pid: int) -> None:
        """A server died: its clients are cut off, and the next client gets a new server."""
        if all(server.pid != pid for server in self._service.daemon().servers):
            return
        os.waitpid(pid, 0)
        self._directory.log(f"Server {pid} died")
        self._service.forget_server(pid)
        self._doors.match(self._service.daemon())
        for connection in [c for c in self._connections if c.client and c.client.context.server_pid == pid]:
            self._close(connection)


def _is_client(client: Client, server: str | None, pid: str) -> bool:
    return str(client.context.pid) == pid and server in (None, str(client.context.server_pid))


def _success(client: Client) -> Answer:
    return {
        "result": CudaResult.CUDA_SUCCESS.name,
        "code": CudaResult.CUDA_SUCCESS.value,
        "device": client.uuid,
        "server_pid": client.context.server_pid,
        "active_thread_percentage": client.context.active_thread_percentage,
        "memory_limit_bytes": client.context.memory_limit_bytes,
    }
