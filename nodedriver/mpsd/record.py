"""What the supervisor remembers of a daemon on disk: what was asked for, and which process serves it.

The record is the wish: it is there from before the daemon's first start until its removal, so that the next supervisor
goes on where this one ended. A process is known by its pid and start time; a pid alone may be someone else by now.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import select
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from nodedriver.files import write_atomically
from nodedriver.ports import MpsDaemonSpec

PROC = Path("/proc")  # this machine's own: the processes are ours, whatever root the node's facts are read from


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process: pid and start time in clock ticks since boot (proc(5), stat field 22)."""

    pid: int
    started: int

    def is_alive(self) -> bool:
        """Whether this very process still runs."""
        return start_time(self.pid) == self.started

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the process has ended, at most so long; whether it has."""
        with self.descriptor() as descriptor:
            if descriptor is None:
                return True
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            return bool(poll.poll(None if seconds is None else seconds * 1000))

    def send(self, number: signal.Signals) -> None:
        """Send a signal to this process and to no other that has its pid by now; one that has ended is fine."""
        with self.descriptor() as descriptor:
            if descriptor is not None:
                signal.pidfd_send_signal(descriptor, number)

    @contextlib.contextmanager
    def descriptor(self) -> Iterator[int | None]:
        """A descriptor that stays with the process, checked after opening; None when it has ended."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            yield None
            return
        try:
            yield descriptor if self.is_alive() else None
        finally:
            os.close(descriptor)


def wait_for_any(processes: Iterable[ProcessId], seconds: float) -> None:
    """Wait until one of these processes has ended, at most so long."""
    with contextlib.ExitStack() as stack:
        descriptors = [stack.enter_context(process.descriptor()) for process in processes]
        poll = select.poll()
        for descriptor in descriptors:
            if descriptor is None:
                return
            poll.register(descriptor, select.POLLIN)
        poll.poll(seconds * 1000)


@dataclass(frozen=True, slots=True)
class Record:
    """One daemon as it was asked for. `process` is None from before a start until it is known.

    `protocol`: what it speaks for as long as claims hold it, since their containers have its pipe directories.
    """

    boot_id: str
    spec: MpsDaemonSpec
    process: ProcessId | None = None
    protocol: int = 2


@dataclass(frozen=True, slots=True)
class Places:
    """The folder of one daemon. Names are short, since the sockets inside must fit into 107 bytes."""

    folder: Path

    @property
    def pipe(self) -> Path:
        return self.folder / "pipe"

    @property
    def shared_memory(self) -> Path:
        return self.folder / "shm"

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @property
    def record(self) -> Path:
        return self.folder / "daemon.json"

    def read(self) -> Record | None:
        """The record, or None where there is none; msgspec.MsgspecError where it can't be read."""
        try:
            return msgspec.json.decode(self.record.read_bytes(), type=Record)
        except FileNotFoundError:
            return None

    def write(self, record: Record) -> None:
        """Remember, durably."""
        write_atomically(self.record, msgspec.json.encode(record))


def places_of(mps_dir: Path, device: str) -> Places:
    """The folder of that device's daemon."""
    return Places(mps_dir / hashlib.sha256(device.encode()).hexdigest()[:8])


def all_places(mps_dir: Path) -> Iterator[Places]:
    """Every folder that a daemon has or had."""
    for folder in sorted(mps_dir.iterdir()):
        if folder.is_dir():
            yield Places(folder)


def boot_id() -> str:
    """This boot of the machine; MIG devices and processes do not outlive it."""
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


def start_time(pid: int) -> int | None:
    """When that process started, or None when there is none, or only its zombie."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        return None if fields[0] in ("Z", "X") else int(fields[19])
    return None
