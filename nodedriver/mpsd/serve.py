"""The supervisor's process: its socket, its signals, its end.

SIGTERM and SIGINT stop every daemon, and with it the work of every client: so the supervisor is a pod of its own, which
an update of the driver leaves alone. SIGKILL leaves the daemons running for the next supervisor.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import msgspec
import structlog

from nodedriver.config import Config, check_sockets
from nodedriver.httpdoor import listening
from nodedriver.mps import EndClients, Ensure, List, MpsAnswer, MpsClient, MpsRequest, Remove, Watch
from nodedriver.mpsd.control import PROGRAM, Program, find_control_program, speaking
from nodedriver.mpsd.namespaces import LONGEST_SOCKET
from nodedriver.mpsd.pages import Pages
from nodedriver.mpsd.record import places_of
from nodedriver.mpsd.supervisor import Supervisor
from nodedriver.ports import MpsError
from nodedriver.vendors import has_nvidia_card

log = structlog.get_logger(__name__)

_LONGEST_PIPE = "control_privileged"  # the longest name that NVIDIA's daemon makes in its pipe directory


def serve(config: Config) -> None:
    """Run until a signal says stop. MpsError when the program is missing on a node with a card of NVIDIA's, or another
    supervisor runs here.

    ConfigError when the sockets of the daemons would have too long a path.
    """
    longest = LONGEST_SOCKET if config.mps_protocol == 3 else _LONGEST_PIPE
    check_sockets((places_of(config.mps_dir, "").pipe / longest,))
    program = _program(config)
    if program.remark:
        log.warning("MPS daemons do not speak as asked for", reason=program.remark)
    config.mps_dir.mkdir(parents=True, exist_ok=True)
    with _alone(config.mps_dir):
        supervisor = Supervisor(config.mps_dir, program)
        signals = _signals()
        with _watched(config):
            supervisor.resume()
            with _answering(config.mps_socket, supervisor):
                log.info("MPS supervisor started", socket=str(config.mps_socket))
                os.read(signals, 1)
        supervisor.stop()
        log.info("MPS supervisor stopped")


def _program(config: Config) -> Program:
    """NVIDIA's program. Where no card is NVIDIA's it need not be there: the supervisor is on every node, and idle."""
    try:
        return speaking(find_control_program(config.driver_root), config.mps_protocol, config.mps_dir)
    except MpsError as error:
        if has_nvidia_card(config.sys_root):
            raise
        log.info("no MPS on this node, which has no card of NVIDIA's", reason=str(error))
        return Program(config.driver_root / PROGRAM, {})


def _watched(config: Config) -> AbstractContextManager[None]:
    client = MpsClient(config.mps_socket)
    pages = Pages(driver_name=config.driver_name, node_name=config.node_name, client=client)
    return listening(config.http_address, config.http_port, pages)


def _signals() -> int:
    """A descriptor that can be read once a signal says stop.

    The kernel may give a signal to any thread, and a main thread that waits for a lock or an event does not wake then.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(writer)
    return reader


@contextmanager
def _alone(mps_dir: Path) -> Iterator[None]:
    """Hold the folder: two supervisors would fight for its daemons."""
    with (mps_dir / "mpsd.lock").open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise MpsError(f"another MPS supervisor holds {mps_dir}: stop it first") from error
        yield


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True

    def __init__(self, path: Path, supervisor: Supervisor) -> None:
        self.supervisor = supervisor
        super().__init__(str(path), _Handler)


class _Handler(socketserver.StreamRequestHandler):
    """One connection: a line in, a line out."""

    server: _Server

    def handle(self) -> None:
        answer = _answer(self.rfile.readline(), self.server.supervisor)
        self.wfile.write(msgspec.json.encode(answer) + b"\n")


@contextmanager
def _answering(path: Path, supervisor: Supervisor) -> Iterator[None]:
    """Answer on the socket, which only our own user may use, until the context ends."""
    path.unlink(missing_ok=True)
    with _Server(path, supervisor) as server:
        path.chmod(0o600)
        thread = threading.Thread(target=server.serve_forever, name="mpsd socket")
        thread.start()
        try:
            yield
        finally:
            server.socket.shutdown(socket.SHUT_RD)  # wakes it, or it would look up every half second only
            server.shutdown()
            thread.join()
            path.unlink(missing_ok=True)


def _answer(line: bytes, supervisor: Supervisor) -> MpsAnswer:
    try:
        return _answer_to(msgspec.json.decode(line, type=Ensure | Remove | EndClients | List | Watch), supervisor)
    except (MpsError, OSError, msgspec.MsgspecError) as error:
        log.warning("MPS request failed", request=line.decode(errors="replace").strip(), error=str(error))
        return MpsAnswer(error=str(error))


def _answer_to(request: MpsRequest, supervisor: Supervisor) -> MpsAnswer:
    match request:
        case Ensure(spec):
            return MpsAnswer(daemons=(supervisor.ensure(spec),))
        case Remove(device):
            supervisor.remove(device)
            return MpsAnswer()
        case EndClients(device, claim):
            supervisor.end_clients(device, claim)
            return MpsAnswer()
        case List():
            return MpsAnswer(daemons=supervisor.list())
        case Watch(revision, seconds):
            return MpsAnswer(reports=supervisor.watch(revision, seconds))
