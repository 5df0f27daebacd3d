"""The commands of one control daemon by protocol 2, line by line: limits in, limits and clients out.

Classic interface of the MPS documentation, "Control Daemon Commands". Devices are not validated by the daemon, so what
was set is always read back. Limits that a server took at its start are changed on the server too: they hold for its new
clients.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from nodedriver.mpsd import clients
from nodedriver.mpsd.control import (
    COMMAND_TIMEOUT,
    MIB,
    UNLIMITED,
    WHOLE,
    Caller,
    Client,
    Doors,
    Limits,
    Program,
    Said,
    limits_wanted,
)
from nodedriver.ports import MpsDaemonSpec, MpsError

_UNITS = {"G": 2**30, "M": MIB}
_MEMORY = re.compile(r"([0-9]+)([GM])")


@dataclass(frozen=True, slots=True)
class _Settings:
    """What a daemon says of itself: its defaults, its servers, whether one of those asked about is at fault."""

    limits: Limits
    servers: tuple[int, ...] = ()
    at_fault: bool = False


class ClassicControl:
    """A daemon with one set of defaults, which are the largest share's. Fulfils `nodedriver.mpsd.control.Control`."""

    protocol = 2
    options: tuple[str, ...] = ("-f", "-M")

    def __init__(self, program: Program, doors: Doors, device: str) -> None:
        self._call = Caller(program, doors.pipe, device)
        self._doors = doors
        self._device = device

    def answers(self) -> bool:
        """See `Control`."""
        if not (self._doors.pipe / "control").exists():
            return False
        try:
            self._run("get_server_list")
        except MpsError:
            return False
        return True

    def apply(self, spec: MpsDaemonSpec) -> Said:
        """See `Control`. Defaults are set before the server starts, and then on the server that runs."""
        limit = self._memory_to_set(spec)
        percentage = spec.thread_percentage or WHOLE
        self._set(f"set_default_active_thread_percentage {percentage}", "set_default_device_pinned_mem_limit", limit)
        settings = self._settings()
        if not settings.servers:
            # A card in EXCLUSIVE_PROCESS mode is closed to who avoids us only once a server holds it; the first client
            # would start one, but it may not be the first to come. With -M this one serves every user.
            self._run(f"start_server -uid {os.geteuid()}")
            return self._checked(self._settings(), spec)
        for pid in settings.servers:
            self._set(f"set_active_thread_percentage {pid} {percentage}", f"set_device_pinned_mem_limit {pid}", limit)
        return self._checked(settings, spec)

    def ask(self, servers: Iterable[int] = ()) -> Said:
        """See `Control`."""
        return self._said(self._settings(servers))

    def is_as(self, said: Said, spec: MpsDaemonSpec) -> bool:
        """See `Control`."""
        return (said.status.thread_percentage, said.status.memory_limit) == limits_wanted(spec)

    def clients(self, servers: Iterable[int]) -> list[Client]:
        """See `Control`."""
        return [Client(server, client) for server in servers for client in self._numbers(f"get_client_list {server}")]

    def is_of(self, client: Client, claim: str, spec: MpsDaemonSpec) -> bool:
        """See `Control`. By the mark in its environment."""
        return clients.is_of(client.pid, claim)

    def terminate(self, client: Client) -> None:
        """See `Control`."""
        self._run(f"terminate_client {client.server} {client.pid}")

    def quit(self, seconds: int) -> None:
        """See `Control`."""
        self._run(f"quit -t {seconds}", timeout=seconds + COMMAND_TIMEOUT)

    def _settings(self, servers: Iterable[int] = ()) -> _Settings:
        """What the daemon says of itself and these servers, in one go, since each call of the program is a process."""
        defaults = "get_default_active_thread_percentage", f"get_default_device_pinned_mem_limit {self._device}"
        states = (f"get_server_status {server}" for server in servers)
        answer = self._run("\n".join((*defaults, "get_server_list", *states)))
        try:
            return _read(answer.splitlines())
        except ValueError as error:
            raise self._call.odd(answer) from error

    def _said(self, settings: _Settings) -> Said:
        return Said(self._doors.status(self._device, settings.limits), settings.servers, settings.at_fault)

    def _checked(self, settings: _Settings, spec: MpsDaemonSpec) -> Said:
        if settings.limits == limits_wanted(spec):
            return self._said(settings)
        raise MpsError(
            f"the MPS daemon of {self._device} did not take its limits: asked for {limits_wanted(spec)}, "
            f"it says {settings.limits}. See whether the device exists (nvidia-smi -L)."
        )

    def _set(self, percentage: str, memory: str, limit: str) -> None:
        """Send both commands at once, since each call of the program is a process."""
        self._run("\n".join([percentage, *([f"{memory} {self._device} {limit}"] if limit else [])]))

    def _memory_to_set(self, spec: MpsDaemonSpec) -> str:
        """The limit as a command's argument; "" where none is wanted and none is set."""
        if spec.memory_limit is not None:
            return f"{spec.memory_limit // MIB}M"
        return f"{UNLIMITED // MIB}M" if self._settings().limits.memory_limit is not None else ""

    def _numbers(self, command: str) -> list[int]:
        answer = self._run(command)
        try:
            return [int(line) for line in answer.split()]
        except ValueError as error:
            raise self._call.odd(answer) from error

    def _run(self, command: str, *, timeout: float = COMMAND_TIMEOUT) -> str:
        return self._call.run(lines=command, timeout=timeout)


def _read(lines: list[str]) -> _Settings:
    """The percentage, a memory limit where one is set, the servers, states in words. ValueError for anything else."""
    percentage, *rest = [line.strip() for line in lines if line.strip()] or [""]
    memory = [match for line in rest if (match := _MEMORY.fullmatch(line))]
    states = [line for line in rest if line.isalpha()]
    servers = [int(line) for line in rest if not line.isalpha() and not _MEMORY.fullmatch(line)]
    limit = int(memory[0][1]) * _UNITS[memory[0][2]] if memory else 0
    limits = Limits(float(percentage), limit if 0 < limit < UNLIMITED else None)
    return _Settings(limits, tuple(servers), at_fault=any("FAULT" in each.upper() for each in states))
