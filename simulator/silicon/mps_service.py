"""What an MPS control daemon and its servers do, without sockets: settings, servers, clients and their memory.

All that it knows lies in the shared state, under this daemon's own entry, so that tests and other processes see it. A
server is a process of its own (it only waits), because a card's process list and `get_server_list` name its pid.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from simulator.silicon import contexts
from simulator.silicon.contexts import CudaRefused, CudaResult
from simulator.silicon.hardware import MpsDaemon, MpsNamespace, MpsServer, Process, ProcessKind, Silicon
from simulator.silicon.mps_limits import PERCENTAGE, ClientLimits, resolve_device, tightened
from simulator.silicon.state import State, start_time

_MOST_DESCRIPTORS = 65536
DEFAULT_NAMESPACE = "default"


class MustWait(Exception):  # noqa: N818 - not an error: the client is served later
    """A server of another user has clients: this client waits until the last of them has gone (MPS docs, 4.1)."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is at the other end of a connection, by the kernel's word (SO_PEERCRED)."""

    pid: int
    uid: int


@dataclass(frozen=True, slots=True)
class Route:
    """The server and namespace that a client of version 3 comes to."""

    server: str
    namespace: str


@dataclass(frozen=True, slots=True)
class Client:
    """A connected client: its device's UUID and its context on it."""

    uuid: str
    context: Process


class Service:
    """One daemon's servers and clients. Not for several threads."""

    def __init__(self, state: State, daemon: MpsDaemon) -> None:
        self._state = state
        self._pid = daemon.pid
        self._given_contexts = 0
        state.change(lambda silicon: (replace(silicon, mps_daemons=(*silicon.mps_daemons, daemon)), None))

    def daemon(self) -> MpsDaemon:
        """This daemon as the state has it."""
        return self._own(self._state.read())

    def change(self, step: Callable[[MpsDaemon], MpsDaemon]) -> None:
        """Change this daemon's own entry."""

        def on_silicon(silicon: Silicon) -> tuple[Silicon, None]:
            return _with_daemon(silicon, step(self._own(silicon))), None

        self._state.change(on_silicon)

    def clients(self) -> tuple[tuple[str, Process], ...]:
        """UUID of the card and context, of every client of this daemon."""
        silicon = self._state.read()
        servers = {server.pid for server in self._own(silicon).servers}
        return tuple((gpu.uuid, p) for gpu in silicon.gpus for p in gpu.processes if p.server_pid in servers)

    def change_server(self, pid: int, step: Callable[[MpsServer], MpsServer]) -> None:
        """Change one of its servers."""
        self.change(
            lambda daemon: replace(daemon, servers=tuple(step(s) if s.pid == pid else s for s in daemon.servers))
        )

    def start_server(self, uid: int, name: str = "") -> MpsServer:
        """Start a server with the defaults of this moment; it takes a context on every device of the daemon."""
        pid = _spawn_waiting_process()
        process = Process(pid=pid, started=start_time(pid) or 0, uid=uid, kind=ProcessKind.MPS_SERVER)

        def step(silicon: Silicon) -> tuple[Silicon, MpsServer]:
            daemon = self._own(silicon)
            for uuid in daemon.devices:
                silicon = contexts.open_context(silicon, uuid, process)
            server = MpsServer(
                pid=pid,
                uid=uid,
                active_thread_percentage=daemon.default_active_thread_percentage,
                memory_limits=daemon.default_memory_limits,
                name=name,
                namespaces=(MpsNamespace(name=DEFAULT_NAMESPACE),) if name else (),
            )
            return _with_daemon(silicon, replace(daemon, servers=(*daemon.servers, server))), server

        try:
            return self._state.change(step)
        except CudaRefused as refusal:
            _end(pid)
            raise CudaRefused(CudaResult.CUDA_ERROR_MPS_CONNECTION_FAILED, f"no server: {refusal.why}") from refusal

    def stop_server(self, pid: int) -> None:
        """End a server and with it every client's context."""
        _end(pid)
        self.forget_server(pid)

    def forget_server(self, pid: int) -> None:
        """Take a server that has ended, and its clients, out of the state."""

        def step(silicon: Silicon) -> tuple[Silicon, None]:
            daemon = self._own(silicon)
            left = tuple(server for server in daemon.servers if server.pid != pid)
            without = contexts.close_contexts(silicon, lambda p: pid in (p.pid, p.server_pid))
            return _with_daemon(without, replace(daemon, servers=left)), None

        self._state.change(step)

    def connect(self, peer: Peer, environment: Mapping[str, str], route: Route | None = None) -> Client:
        """Give a client a context, held to the smaller of the server's limits and its own environment's.

        Raises MustWait, or CudaRefused when it cannot be served.
        """
        server = self._server_of(route) if route else self._server_for(peer.uid)
        if self.is_faulty(server.pid):
            raise CudaRefused(
                CudaResult.CUDA_ERROR_MPS_SERVER_NOT_READY, f"server {server.pid} recovers from a fault of a client"
            )
        devices = self.daemon().devices
        name = environment.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
        uuid = resolve_device(name, devices)
        if uuid is None:
            raise CudaRefused(CudaResult.CUDA_ERROR_NO_DEVICE, f"the MPS daemon serves {devices}, not {name!r}")
        namespace = route.namespace if route else DEFAULT_NAMESPACE if server.name else ""
        try:
            limits = _limits(server, namespace, uuid, environment, devices)
        except ValueError as error:
            raise CudaRefused(CudaResult.CUDA_ERROR_INVALID_VALUE, str(error)) from error
        return self._open(peer, server, namespace, uuid, limits)

    def is_faulty(self, pid: int) -> bool:
        """Whether a server still recovers from a fault; once its old clients have gone it does not any more."""
        (server,) = (server for server in self.daemon().servers if server.pid == pid)
        if server.faulty and not any(context.server_pid == pid for _, context in self.clients()):
            self._well_again(server)
            return False
        return server.faulty

    def _well_again(self, server: MpsServer) -> None:
        self.change_server(server.pid, lambda each: replace(each, faulty=False))

    def _server_of(self, route: Route) -> MpsServer:
        return next(server for server in self.daemon().servers if server.name == route.server)

    def _server_for(self, uid: int) -> MpsServer:
        """The running server, or a new one. Outside multi-user mode a server is of one user only."""
        daemon = self.daemon()
        server_uid = os.getuid() if daemon.multi_user else uid
        for server in daemon.servers:
            if server.uid == server_uid:
                return server
            if any(context.server_pid == server.pid for _, context in self.clients()):
                raise MustWait
            self.stop_server(server.pid)
        return self.start_server(server_uid)

    def _open(self, peer: Peer, server: MpsServer, namespace: str, uuid: str, limits: ClientLimits) -> Client:
        self._given_contexts += 1
        context = Process(
            pid=peer.pid,
            started=start_time(peer.pid) or 0,
            context=self._given_contexts,
            uid=peer.uid,
            kind=ProcessKind.MPS_CLIENT,
            server_pid=server.pid,
            namespace=namespace,
            active_thread_percentage=limits.active_thread_percentage,
            memory_limit_bytes=limits.memory_bytes,
        )
        self._state.change(lambda silicon: (contexts.open_context(silicon, uuid, context), None))
        return Client(uuid, context)

    def allocate(self, client: Client, size: int) -> None:
        """Give a client memory; CudaRefused beyond its limit or the device's memory."""
        self._state.change(lambda silicon: (contexts.allocate(silicon, client.uuid, client.context, size), None))

    def disconnect(self, client: Client) -> None:
        """Free what a client held."""
        mine = (client.context.pid, client.context.context, client.context.server_pid)
        self._state.change(
            lambda silicon: (contexts.close_contexts(silicon, lambda p: mine == (p.pid, p.context, p.server_pid)), None)
        )

    def stop(self) -> None:
        """End every server and take the daemon out of the state."""
        for server in self.daemon().servers:
            self.stop_server(server.pid)
        self._state.change(
            lambda silicon: (
                replace(silicon, mps_daemons=tuple(d for d in silicon.mps_daemons if d.pid != self._pid)),
                None,
            )
        )

    def _own(self, silicon: Silicon) -> MpsDaemon:
        return next(daemon for daemon in silicon.mps_daemons if daemon.pid == self._pid)


def _limits(
    server: MpsServer, namespace: str, uuid: str, environment: Mapping[str, str], devices: Sequence[str]
) -> ClientLimits:
    """Under version 3 those of the namespace; its percentage overrides the environment's ("Environment Variables")."""
    if not namespace:
        return tightened(
            ClientLimits(server.active_thread_percentage, server.memory_limits.get(uuid)), uuid, environment, devices
        )
    found = next(each for each in server.namespaces if each.name == namespace)
    offered = ClientLimits(found.active_thread_percentage or 100.0, found.memory_limit)
    counts = {k: v for k, v in environment.items() if found.active_thread_percentage is None or k != PERCENTAGE}
    return tightened(offered, uuid, counts, devices)


def _with_daemon(silicon: Silicon, changed: MpsDaemon) -> Silicon:
    daemons = tuple(changed if d.pid == changed.pid else d for d in silicon.mps_daemons)
    return replace(silicon, mps_daemons=daemons)


def _spawn_waiting_process() -> int:
    """A child that lives until it is ended or its parent dies."""
    read_end, _write_end = os.pipe()  # the parent keeps its end until it dies
    pid = os.fork()
    if pid == 0:
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.dup2(read_end, 0)
            os.closerange(3, _MOST_DESCRIPTORS)  # the daemon's socket must end with the daemon
            os.read(0, 1)
        finally:  # the daemon's own code must never go on in here
            os._exit(0)
    os.close(read_end)
    return pid


def _end(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
