"""One control daemon as a process: start, take over, watch for its end, stop. Knows its folder, and no other daemon.

The daemon is a child in a session of its own and outlives a supervisor that is killed. NVIDIA's program runs in the
foreground and serves all users: one card is shared by pods of different users.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from nodedriver.mpsd import clients
from nodedriver.mpsd.classic import ClassicControl
from nodedriver.mpsd.control import Client, Control, Doors, Program, Said
from nodedriver.mpsd.namespaces import NamespaceControl
from nodedriver.mpsd.record import Places, ProcessId, Record, boot_id, start_time, wait_for_any
from nodedriver.mpsd.sharedmemory import with_shared_memory
from nodedriver.ports import MpsDaemonSpec, MpsDaemonStatus, MpsError, MpsReport, MpsState

_START_TIMEOUT = 10.0  # seconds until a daemon takes commands
_POLL = 0.05
_QUIT_SECONDS = 2  # for clients that are still there
_KILL_SECONDS = 5.0
SERVER_ENDED = "its server ended"
LIMITS_CHANGED = "somebody else changed its limits"
_OUTPUT_TAIL = 500  # characters of the daemon's last words in an error


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How a daemon runs. `isolated`: with a /dev/shm of its own (`sharedmemory.py`). `remark`: why not as asked for."""

    isolated: bool
    protocol: int = 2
    remark: str = ""


class Daemon:
    """The control daemon of one device. Not for several threads at once, but for `wait` and `known`."""

    def __init__(self, program: Program, places: Places, device: str, manner: Manner) -> None:
        self.device = device
        self._manner = manner
        self._program = program
        self._places = places
        doors = Doors(places.pipe, places.shared_memory if manner.isolated else None)
        kind = NamespaceControl if manner.protocol == 3 else ClassicControl
        self._control: Control = kind(program, doors, device)
        self._told: Said | None = None  # when limits were set last
        self._process: ProcessId | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._servers: tuple[ProcessId, ...] = ()  # as it said last

    def is_alive(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.is_alive()

    def take_over(self, process: ProcessId) -> None:
        """Go on with a process that an earlier supervisor started."""
        self._process = process

    def start(self, spec: MpsDaemonSpec) -> None:
        """Start the process and wait until it takes commands; MpsError with its last words when it does not."""
        self._places.pipe.mkdir(parents=True, exist_ok=True)
        self._places.log.mkdir(exist_ok=True)
        self._places.pipe.chmod(0o755)  # clients of any user connect
        self._places.shared_memory.mkdir(exist_ok=True)
        self._places.shared_memory.chmod(0o1777)  # as /dev/shm is
        self._places.write(self._record(spec, None))
        if self._control.answers():  # started by a supervisor that died before it could write down the process
            self._control.quit(0)
        if self._child is not None:
            self._child.wait()  # has ended, or we would not start; this reaps it
        self._process = self._spawn()
        self._places.write(self._record(spec, self._process))
        self._wait_until_ready(self._process)

    def apply(self, spec: MpsDaemonSpec) -> MpsDaemonStatus:
        """Set limits, remember them, and return what the daemon says."""
        self._places.write(self._record(spec, self._process))
        said = self._control.apply(spec)
        self._heard(said.servers)
        self._told = said
        return said.status

    def known(self, spec: MpsDaemonSpec) -> MpsDaemonStatus | None:
        """What it said when limits were set last, if it is as asked for, and it and the server of then still run."""
        told, servers = self._told, self._servers
        if told is None or not self._control.is_as(told, spec):
            return None
        runs = self.is_alive() and servers and all(server.is_alive() for server in servers)
        return told.status if runs else None

    def status(self) -> MpsDaemonStatus:
        """What the daemon says of itself, and its clients."""
        said = self._control.ask()
        return replace(said.status, clients=tuple(client.pid for client in self._control.clients(said.servers)))

    def look(self, spec: MpsDaemonSpec) -> MpsReport:
        """How it is now: by its process, and asked of the daemon itself, which should have these limits."""
        heard: Iterable[int] = ()
        try:
            if not self.is_alive():
                return self.report(MpsState.DOWN, "the control daemon ended")
            said = self._ask_all()
            heard = said.servers
            return self._judged(said, spec)
        except MpsError as error:
            return self.report(MpsState.DOWN, str(error))
        finally:
            self._heard(heard)

    def _ask_all(self) -> Said:
        """With the states of all its servers."""
        known = [server.pid for server in self._servers if server.is_alive()]
        said = self._ask(known)
        return said if set(said.servers) <= set(known) else self._control.ask(said.servers)

    def _judged(self, said: Said, spec: MpsDaemonSpec) -> MpsReport:
        if not any(start_time(server) for server in said.servers):
            return self.report(MpsState.DOWN, SERVER_ENDED)
        if said.at_fault:
            return self.report(MpsState.FAULT, "a client met a fatal fault; new ones wait until the old have gone")
        return self.report() if self._control.is_as(said, spec) else self.report(MpsState.DOWN, LIMITS_CHANGED)

    def report(self, state: MpsState = MpsState.READY, reason: str = "") -> MpsReport:
        """What to say of this daemon."""
        why = reason or (self._manner.remark if state is MpsState.READY else "")
        return MpsReport(device=self.device, state=state, reason=why, protocol=self._control.protocol)

    def end_clients(self, claim: str, spec: MpsDaemonSpec) -> None:
        """End the clients of that claim: through the daemon, and killed where they stay. MpsError where that fails."""
        if self.is_alive():
            for client in self._control.clients(server.pid for server in self._servers if server.is_alive()):
                if self._control.is_of(client, claim, spec):
                    self._end_client(client)

    def wait_for_end(self, seconds: float) -> None:
        """Wait until the process or one of its servers has ended, at most so long."""
        wait_for_any([each for each in (self._process, *self._servers) if each], seconds)

    def wait(self) -> None:
        """Wait until the process has ended."""
        if self._process is not None:
            self._process.wait()
        if self._child is not None:
            self._child.wait()

    def stop(self) -> None:
        """End the process: asked, then told, then killed. The record stays."""
        try:
            self._control.quit(_QUIT_SECONDS)
        except MpsError:
            self._send(signal.SIGTERM)
        if self._process is not None and not self._process.wait(_KILL_SECONDS):
            self._send(signal.SIGKILL)
        self.wait()

    def forget(self) -> None:
        """Remove the folder, with record, pipes and logs; absent is fine."""
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._places.folder)

    def _end_client(self, client: Client) -> None:
        """Its contexts go in good order first: who is killed within a kernel may take others along (MPS, "Faults")."""
        with contextlib.suppress(MpsError):  # it may have gone meanwhile; whether it has is asked below
            self._control.terminate(client)
        if client in self._control.clients([client.server]) and not clients.kill(client.pid, _KILL_SECONDS):
            raise MpsError(
                f"the MPS daemon of {self.device} still has client {client.pid}, which does not end when killed"
            )

    def _record(self, spec: MpsDaemonSpec, process: ProcessId | None) -> Record:
        return Record(boot_id(), spec, process, self._control.protocol)

    def _ask(self, servers: list[int]) -> Said:
        try:
            return self._control.ask(servers)
        except MpsError:  # one of them may have ended just now
            return self._control.ask()

    def _heard(self, servers: Iterable[int]) -> None:
        found = ((pid, start_time(pid)) for pid in servers)
        self._servers = tuple(ProcessId(pid, started) for pid, started in found if started)

    def _send(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send(number)

    def _spawn(self) -> ProcessId:
        environment = self._program.environment | {
            "CUDA_MPS_PIPE_DIRECTORY": str(self._places.pipe),
            "CUDA_MPS_LOG_DIRECTORY": str(self._places.log),
            "CUDA_VISIBLE_DEVICES": self.device,
        }
        command: tuple[str, ...] = (str(self._program.path), *self._control.options)
        if self._manner.isolated:
            command = with_shared_memory(self._places.shared_memory, command)
        with self._output.open("ab") as output:
            try:
                self._child = subprocess.Popen(  # noqa: S603 - the program of the driver root
                    command, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                    stderr=output, start_new_session=True, cwd="/",
                )  # fmt: skip
            except OSError as error:
                raise MpsError(f"the MPS daemon of {self.device} could not be started: {error}") from error
        return ProcessId(self._child.pid, start_time(self._child.pid) or 0)

    def _wait_until_ready(self, process: ProcessId) -> None:
        deadline = time.monotonic() + _START_TIMEOUT
        while time.monotonic() < deadline and process.is_alive():
            if self._control.answers():
                return
            time.sleep(_POLL)
        how = f"does not answer after {_START_TIMEOUT:g} s" if process.is_alive() else "ended at once"
        last_words = self._output.read_text(errors="replace")[-_OUTPUT_TAIL:].strip()
        raise MpsError(f"the MPS daemon of {self.device} {how}: {last_words or 'it said nothing'}")

    @property
    def _output(self) -> Path:
        return self._places.log / "output.log"
