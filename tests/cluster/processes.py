"""Start programs, each in a session of its own with a log file, and stop them without ever hitting a stranger.

Every start leaves a record in the data folder before the program itself runs: its pid and the time it started.
A pid is signalled only while both still match, through a pidfd, so a reused pid is never hit, and a later run can stop
what a killed one left behind.
"""

import os
import select
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

TAIL_LINES = 25
POLL_SECONDS = 0.05

# The shell writes the record and then becomes the program, so pid and start time stay and no moment is left unrecorded.
_RECORD_AND_BECOME = 'read -r stat < /proc/$$/stat && printf "%s\\n" "$stat" > "$0" && exec "$@"'


class ProgramError(Exception):
    """A program ended too early, or was not ready in time; the text ends with the tail of its log."""


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process for good: pids are reused, a pid with its start time (clock ticks since boot) is not."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> "ProcessId | None":
        """The process that has this pid now, if there is one that still runs (a zombie does not)."""
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return None
        # proc(5): the name in field 2 may hold anything, so count from its closing bracket; state is 3, start time 22.
        fields = stat.rpartition(")")[2].split()
        return None if fields[0] in "ZX" else cls(pid, int(fields[19]))

    @classmethod
    def read(cls, record: Path) -> "ProcessId | None":
        """What a record says; None where the program died before its record was whole."""
        fields = record.read_text().rpartition(")")[2].split()
        return cls(int(record.read_text().split()[0]), int(fields[19])) if len(fields) > 19 else None

    def alive(self) -> bool:
        return ProcessId.of(self.pid) == self

    def stop(self, grace: float) -> None:
        """SIGTERM, `grace` seconds of waiting, SIGKILL; nothing where it is gone."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        try:
            # Checked after the pidfd is open: from here on the handle means this process and no later one.
            if self.alive():
                _end(handle, grace)
        finally:
            os.close(handle)


def _end(handle: int, grace: float) -> None:
    for number, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, 10.0)):
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, number)
        if select.select([handle], [], [], seconds)[0]:
            return


@dataclass(frozen=True, slots=True)
class Program:
    """A program that was started here, with its log."""

    name: str
    log: Path
    record: Path
    process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        return self.process.pid

    def stop(self, grace: float = 10.0) -> None:
        """End it and forget its record; safe to repeat."""
        if self.process.poll() is None and (known := ProcessId.of(self.process.pid)):
            known.stop(grace)
        self.process.wait(10)
        self.record.unlink(missing_ok=True)

    def wait_ready(self, ready: Callable[[], bool], seconds: float) -> None:
        """Ask `ready` until it says yes; when the program ends or time is up it is stopped, and ProgramError says why.

        The error's text ends with the tail of the log.
        """
        deadline = time.monotonic() + seconds
        while not ready():
            if self.process.poll() is not None:
                raise self._given_up(f"ended with {self.process.returncode} before it was ready")
            if time.monotonic() > deadline:
                raise self._given_up(f"was not ready after {seconds:.0f} s")
            time.sleep(POLL_SECONDS)

    def _given_up(self, what: str) -> ProgramError:
        error = ProgramError(f"{self.name} {what}; the end of {self.log}:\n{tail(self.log)}")
        self.stop()
        return error


@dataclass(frozen=True, slots=True)
class Processes:
    """The programs of one data folder: records below `folder/run`, logs below `folder/log`."""

    folder: Path

    @property
    def records(self) -> Path:
        return self.folder / "run"

    def start(self, name: str, command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> Program:
        """Start `command`; it adds to `log/<name>.log`, so a second start keeps the first one's lines."""
        record, log = self.records / f"{name}.stat", self.folder / "log" / f"{name}.log"
        record.parent.mkdir(exist_ok=True)
        log.parent.mkdir(exist_ok=True)
        with log.open("ab") as output:
            process = subprocess.Popen(
                ["/bin/sh", "-c", _RECORD_AND_BECOME, record, *command],
                cwd=self.folder,
                env=None if environment is None else dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        return Program(name, log, record, process)

    def stop_recorded(self, name: str, grace: float = 10.0) -> None:
        """End what an earlier run recorded under `name`, if it is still that very process."""
        record = self.records / f"{name}.stat"
        if record.exists():
            if known := ProcessId.read(record):
                known.stop(grace)
            record.unlink()

    def recorded(self) -> list[str]:
        """Names with a record, sorted."""
        return sorted(record.stem for record in self.records.glob("*.stat"))


def tail(log: Path) -> str:
    """The last lines of a log, for an error's text."""
    with log.open(errors="replace") as lines:
        return "".join(deque(lines, TAIL_LINES)).rstrip()
