"""The commands of one control daemon, through NVIDIA's own program: limits in, limits and clients out.

Classic interface of the MPS documentation, "Control Daemon Commands". Devices are not validated by the daemon, so what
was set is always read back. Limits that a server took at its start are changed on the server too: they hold for its new
clients.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nodedriver.driverroot import find_program, library_folders
from nodedriver.ports import MpsDaemonSpec, MpsDaemonStatus, MpsError

PROGRAM = "nvidia-cuda-mps-control"
WHOLE = 100  # percent: MPS's own default
_MIB = 2**20
_UNITS = {"G": 2**30, "M": _MIB}
_MEMORY = re.compile(r"([0-9]+)([GM])")
_UNLIMITED = 2**40  # bytes; MPS has no command to lift a memory limit, and no card has that much
_COMMAND_TIMEOUT = 5.0  # seconds


@dataclass(frozen=True, slots=True)
class Program:
    """NVIDIA's program and the environment in which it finds its server and libcuda."""

    path: Path
    environment: dict[str, str]


@dataclass(frozen=True, slots=True)
class Doors:
    """How clients reach a daemon: its pipe directory, and the folder that is its /dev/shm, if it has one."""

    pipe: Path
    shared_memory: Path | None


@dataclass(frozen=True, slots=True)
class Settings:
    """What a daemon says of itself: its defaults, bytes or None for no limit, and the process ids of its servers.

    `at_fault`: a client of a server that was asked about met a fatal fault; that server waits for its clients to go.
    """

    thread_percentage: float
    memory_limit: int | None
    servers: tuple[int, ...] = ()
    at_fault: bool = False

    def are(self, spec: MpsDaemonSpec) -> bool:
        """Whether these are the defaults that were asked for."""
        wanted = wanted_by(spec)
        return (self.thread_percentage, self.memory_limit) == (wanted.thread_percentage, wanted.memory_limit)


def find_control_program(driver_root: Path) -> Program:
    """The program below the driver root; MpsError where it is not installed."""
    path = find_program(driver_root, PROGRAM)
    if path is None:
        raise MpsError(
            f"{PROGRAM} is not below the driver root {driver_root}: install the CUDA part of NVIDIA's driver there, "
            "or set the driver root to where it is"
        )
    libraries = ":".join(map(str, library_folders(driver_root)))
    search = f"{path.parent}:{os.defpath}"
    return Program(path, {"PATH": search, "LD_LIBRARY_PATH": libraries})


class Control:
    """The control daemon of one pipe directory, which serves one device."""

    def __init__(self, program: Program, doors: Doors, device: str) -> None:
        self._program = program
        self._doors = doors
        self._device = device

    def answers(self) -> bool:
        """Whether the daemon takes commands."""
        if not (self._doors.pipe / "control").exists():
            return False
        try:
            self._run("get_server_list")
        except MpsError:
            return False
        return True

    def apply(self, spec: MpsDaemonSpec) -> Settings:
        """Set the defaults and start the server, or set the limits of the one that runs; what the daemon says then.

        MpsError when that is not what was asked for.
        """
        limit = self._memory_to_set(spec)
        percentage = spec.thread_percentage or WHOLE
        self._set(f"set_default_active_thread_percentage {percentage}", "set_default_device_pinned_mem_limit", limit)
        settings = self.settings()
        if not settings.servers:
            # A card in EXCLUSIVE_PROCESS mode is closed to who avoids us only once a server holds it; the first client
            # would start one, but it may not be the first to come. With -M this one serves every user.
            self._run(f"start_server -uid {os.geteuid()}")
            return self._checked(self.settings(), spec)
        for pid in settings.servers:
            self._set(f"set_active_thread_percentage {pid} {percentage}", f"set_device_pinned_mem_limit {pid}", limit)
        return self._checked(settings, spec)

    def settings(self, servers: Iterable[int] = ()) -> Settings:
        """What the daemon says of itself and these servers, in one go, since each call of the program is a process."""
        defaults = "get_default_active_thread_percentage", f"get_default_device_pinned_mem_limit {self._device}"
        states = (f"get_server_status {server}" for server in servers)
        answer = self._run("\n".join((*defaults, "get_server_list", *states)))
        try:
            return _read(answer.splitlines())
        except ValueError as error:
            raise self._odd(answer) from error

    def status(self, settings: Settings, clients: tuple[int, ...] = ()) -> MpsDaemonStatus:
        """How clients reach the daemon, with what it said of itself."""
        return MpsDaemonStatus(
            device=self._device,
            pipe_directory=str(self._doors.pipe),
            shared_memory=None if self._doors.shared_memory is None else str(self._doors.shared_memory),
            thread_percentage=settings.thread_percentage,
            memory_limit=settings.memory_limit,
            clients=clients,
        )

    def terminate(self, server: int, client: int) -> None:
        """Destroy a client's contexts in good order; its process stays. MpsError where that fails, or it has gone."""
        self._run(f"terminate_client {server} {client}")

    def clients(self, servers: Iterable[int]) -> list[tuple[int, int]]:
        """Server and client, by their process ids, of every client of these servers."""
        return [(server, client) for server in servers for client in self._numbers(f"get_client_list {server}")]

    def quit(self, seconds: int) -> None:
        """End the daemon and its servers; clients have so many seconds to go by themselves."""
        self._run(f"quit -t {seconds}", timeout=seconds + _COMMAND_TIMEOUT)

    def _checked(self, settings: Settings, spec: MpsDaemonSpec) -> Settings:
        if settings.are(spec):
            return settings
        raise MpsError(
            f"the MPS daemon of {self._device} did not take its limits: asked for {_words(wanted_by(spec))}, "
            f"it says {_words(settings)}. See whether the device exists (nvidia-smi -L)."
        )

    def _set(self, percentage: str, memory: str, limit: str) -> None:
        """Send both commands at once, since each call of the program is a process."""
        self._run("\n".join([percentage, *([f"{memory} {self._device} {limit}"] if limit else [])]))

    def _memory_to_set(self, spec: MpsDaemonSpec) -> str:
        """The limit as a command's argument; "" where none is wanted and none is set."""
        if spec.memory_limit is not None:
            return f"{spec.memory_limit // _MIB}M"
        return f"{_UNLIMITED // _MIB}M" if self.settings().memory_limit is not None else ""

    def _numbers(self, command: str) -> list[int]:
        answer = self._run(command)
        try:
            return [int(line) for line in answer.split()]
        except ValueError as error:
            raise self._odd(answer) from error

    def _odd(self, answer: str) -> MpsError:
        return MpsError(f"the MPS daemon of {self._device} answered {answer[:200]!r}, which is no answer we know")

    def _run(self, command: str, *, timeout: float = _COMMAND_TIMEOUT) -> str:
        """Send a command, or several lines of them, and return the answer without blanks around it."""
        environment = self._program.environment | {"CUDA_MPS_PIPE_DIRECTORY": str(self._doors.pipe)}
        try:
            done = subprocess.run(  # noqa: S603 - the program of the driver root, with words that we made
                [self._program.path], input=f"{command}\n", env=environment, timeout=timeout, check=False,
                capture_output=True, text=True,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise MpsError(f"the MPS daemon of {self._device} did not answer {command!r}: {error}") from error
        if done.returncode:
            reason = (done.stderr or done.stdout).strip()[:500]
            raise MpsError(f"the MPS daemon of {self._device} refused {command!r}: {reason}")
        return done.stdout.strip()


def _read(lines: list[str]) -> Settings:
    """The percentage, a memory limit where one is set, the servers, states in words. ValueError for anything else."""
    percentage, *rest = [line.strip() for line in lines if line.strip()] or [""]
    memory = [match for line in rest if (match := _MEMORY.fullmatch(line))]
    states = [line for line in rest if line.isalpha()]
    servers = [int(line) for line in rest if not line.isalpha() and not _MEMORY.fullmatch(line)]
    limit = int(memory[0][1]) * _UNITS[memory[0][2]] if memory else 0
    limited = limit if 0 < limit < _UNLIMITED else None
    return Settings(
        float(percentage), limited, tuple(servers), at_fault=any("FAULT" in each.upper() for each in states)
    )


def wanted_by(spec: MpsDaemonSpec) -> Settings:
    """What the daemon is to say of itself."""
    limit = None if spec.memory_limit is None else spec.memory_limit // _MIB * _MIB  # MPS knows no smaller unit
    return Settings(float(spec.thread_percentage or WHOLE), limit)


def _words(settings: Settings) -> str:
    limit = settings.memory_limit
    memory = "no memory limit" if limit is None else f"a memory limit of {limit // _MIB} MiB"
    return f"{settings.thread_percentage} % and {memory}"
