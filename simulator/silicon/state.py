"""The hardware's state in one JSON file, shared by every process that looks at the same cards.

A change reads, decides and writes under an flock on a file beside it, and renames the new text into place: a reader
needs no lock, and a writer killed at any point leaves the old state or the new one. What the kernel would clean up when
a process dies (its context and memory, its MPS daemon) is left out when reading.
"""

from __future__ import annotations

import fcntl
import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec

from simulator.silicon import tree
from simulator.silicon.hardware import Event, Gpu, Injection, MpsDaemon, Process, Silicon

XID = 0x8  # nvmlEventTypeXidCriticalError
DOUBLE_BIT = 0x2  # nvmlEventTypeDoubleBitEccError
MOST_EVENTS = 64  # that are remembered for event sets that have not looked yet
_DECODER = msgspec.json.Decoder(Silicon)


class State:
    """The file. `read` gives the hardware as it is now, `change` replaces it by what a pure step makes of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._name = str(path)
        self._lock = path.with_name(path.name + ".lock")
        self._read: _Read | None = None

    def read(self) -> Silicon:
        """The hardware now. Without a lock: the file is only ever replaced whole."""
        return _without_the_dead(self.as_written())

    def as_written(self) -> Silicon:
        """The same without a look at which processes live, for who asks nothing about them. Every call of NVML comes
        here, so the text is read once for each file that comes in the place of another.
        """
        read = self._read
        if read is None or read.inode != os.stat(self._name).st_ino:  # noqa: PTH116 - Path takes twice as long
            self._read = read = _Read(os.open(self._name, os.O_RDONLY))
        return read.silicon

    def stamp(self) -> tuple[int, int]:
        """Another one after each change: a new file comes in the place of the old one while that still is there."""
        found = os.stat(self._name)  # noqa: PTH116 - as in `read`
        return found.st_ino, found.st_mtime_ns

    def change[T](self, step: Callable[[Silicon], tuple[Silicon, T]]) -> T:
        """Apply `step` to the hardware as the only writer. What `step` raises leaves everything as it was."""
        with alone(self._lock):
            before = self.read()
            silicon, answer = step(before)
            self._write(silicon, [gpu for gpu in silicon.gpus if gpu not in before.gpus])
        return answer

    def change_gpu[T](self, pci_address: str, step: Callable[[Gpu], tuple[Gpu, T]]) -> T:
        """Apply `step` to one card, as `change` does."""

        def on_silicon(silicon: Silicon) -> tuple[Silicon, T]:
            gpu, answer = step(next(g for g in silicon.gpus if g.pci_address == pci_address))
            return with_gpu(silicon, gpu), answer

        return self.change(on_silicon)

    def create(self, silicon: Silicon) -> None:
        """Write the first state."""
        with alone(self._lock):
            self._write(silicon, silicon.gpus)

    def inject(self, injection: Injection) -> None:
        """Let calls of one NVML function fail, stall or hang."""
        self.change(lambda silicon: (replace(silicon, injections=(*silicon.injections, injection)), None))

    def heal(self) -> None:
        """Take every fault away; calls that hang go on."""
        self.change(lambda silicon: (replace(silicon, injections=()), None))

    def happen(self, pci_address: str, *, xid: int, gpu_instance: int | None = None, recovery_action: int = 0) -> None:
        """Let a critical XID occur on a card, or in one of its GPU instances; the card then asks for that recovery."""
        self._tell(
            Event(number=0, pci_address=pci_address, type=XID, data=xid, gpu_instance=gpu_instance), recovery_action
        )

    def flip_two_bits(self, pci_address: str, *, recovery_action: int) -> None:
        """Let ECC find an error that it can't correct, told as an event of its own without a number."""
        self._tell(Event(number=0, pci_address=pci_address, type=DOUBLE_BIT), recovery_action)

    def _tell(self, happened: Event, recovery_action: int) -> None:
        def on_silicon(silicon: Silicon) -> tuple[Silicon, None]:
            event = replace(happened, number=silicon.events[-1].number + 1 if silicon.events else 1)
            told = replace(silicon, events=(*silicon.events, event)[-MOST_EVENTS:])
            gpu = next(g for g in told.gpus if g.pci_address == event.pci_address)
            return with_gpu(told, replace(gpu, recovery_action=recovery_action)), None

        self.change(on_silicon)

    def fail_mps_servers(self, device: str) -> None:
        """Let a client of that device's MPS servers meet a fatal fault, which ends the work of all their clients."""

        def on_silicon(silicon: Silicon) -> tuple[Silicon, None]:
            return replace(silicon, mps_daemons=tuple(_failing(each, device) for each in silicon.mps_daemons)), None

        self.change(on_silicon)

    def _write(self, silicon: Silicon, changed: Sequence[Gpu]) -> None:
        text = msgspec.json.format(msgspec.json.encode(silicon), indent=1)
        aside = self.path.with_name(self.path.name + ".next")
        aside.write_bytes(text)
        aside.replace(self.path)
        tree.keep_in_step(self.path.parent, changed, text, silicon.driver_version)


class _Read:
    """What one file says. It is held open: so no other file gets its inode number, by which it is known."""

    def __init__(self, descriptor: int) -> None:
        weakref.finalize(self, os.close, descriptor)
        found = os.fstat(descriptor)
        self.inode = found.st_ino
        self.silicon = _DECODER.decode(os.pread(descriptor, found.st_size, 0))


@contextmanager
def alone(file: Path) -> Iterator[None]:
    """Be the only one, of all threads and processes, who does something by that file's lock."""
    with file.open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _failing(daemon: MpsDaemon, device: str) -> MpsDaemon:
    if device not in daemon.devices:
        return daemon
    return replace(daemon, servers=tuple(replace(server, faulty=True) for server in daemon.servers))


def with_gpu(silicon: Silicon, gpu: Gpu) -> Silicon:
    """The same hardware with one card replaced, found by its PCI address."""
    return replace(silicon, gpus=tuple(gpu if g.pci_address == gpu.pci_address else g for g in silicon.gpus))


def start_time(pid: int) -> int | None:
    """Start time of a process in clock ticks (proc(5), stat field 22), or None when it is dead or a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:  # noqa: PTH123 - as in `as_written`
            stat = file.readall()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat[stat.rindex(b")") + 2 :].split()
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def _without_the_dead(silicon: Silicon) -> Silicon:
    if not silicon.mps_daemons and not any(gpu.processes for gpu in silicon.gpus):
        return silicon
    daemons = tuple(daemon for daemon in silicon.mps_daemons if _is_alive(daemon))
    servers = {server.pid for daemon in daemons for server in daemon.servers}
    processes = [tuple(p for p in gpu.processes if _holds_on(p, servers)) for gpu in silicon.gpus]
    if daemons == silicon.mps_daemons and processes == [gpu.processes for gpu in silicon.gpus]:
        return silicon
    gpus = tuple(replace(gpu, processes=left) for gpu, left in zip(silicon.gpus, processes, strict=True))
    return replace(silicon, mps_daemons=daemons, gpus=gpus)


def _is_alive(process: Process | MpsDaemon) -> bool:
    return start_time(process.pid) == process.started


def _holds_on(process: Process, servers: set[int]) -> bool:
    """Whether the process still has its context; an MPS client's is its server's."""
    return _is_alive(process) and (process.server_pid is None or process.server_pid in servers)
