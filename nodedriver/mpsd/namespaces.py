"""The commands of one control daemon by protocol 3: one server, and in it a namespace with limits for each share.

MPS documentation, "MPS v3 Interface" and "MPS v3 Namespaces". A client's way in decides its namespace: a container gets
the folder of its share's namespace as its pipe directory, and no other. So the server holds each share to its own
limits, whatever its clients' environment.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

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
from nodedriver.ports import MpsDaemonSpec, MpsError, MpsShareStatus

SERVER = "gpu"
_DEFAULT = "default"  # the namespace of who comes in otherwise; no container can
_UNITS = {"": 1, "K": 2**10, "M": MIB, "G": 2**30, "T": 2**40}
_MEMORY = re.compile(r"([0-9]+)([KMGT]?)")
_CSV = "--format=csv,noheader"


def namespace_of(share: str) -> str:
    """The namespace of a share, in lowercase letters and digits; short, as its socket's path may have 107 bytes."""
    return f"s{hashlib.sha256(share.encode()).hexdigest()[:12]}"


LONGEST_SOCKET = Path(SERVER, namespace_of(""), "control")  # below the pipe directory


class NamespaceControl:
    """A daemon with limits for each share. Fulfils `nodedriver.mpsd.control.Control`."""

    protocol = 3
    options: tuple[str, ...] = ("-f", "-m", "-p", "3")

    def __init__(self, program: Program, doors: Doors, device: str) -> None:
        self._call = Caller(program, doors.pipe, device)
        self._doors = doors
        self._device = device
        self._names: dict[str, str] = {}  # shares by their namespaces

    def answers(self) -> bool:
        """See `Control`."""
        if not (self._doors.pipe / "control").exists():
            return False
        try:
            self._server()
        except MpsError:
            return False
        return True

    def apply(self, spec: MpsDaemonSpec) -> Said:
        """See `Control`. What is as asked for is not touched: a share comes and goes unnoticed by the others."""
        if not spec.shares:
            raise MpsError(
                f"the MPS daemon of {self._device} speaks protocol 3 and was asked for no shares, as older drivers do: "
                "update the node driver"
            )
        self._names = {namespace_of(share.name): share.name for share in spec.shares}
        self._let_a_server_run()
        found = {status.name: Limits(status.thread_percentage, status.memory_limit) for status in self._shares()}
        for surplus in found.keys() - self._names.values():
            self._remove(surplus)
        for share in spec.shares:
            wanted, there = limits_wanted(share.limits), found.get(share.name)
            if there is None:
                self._call.run("namespace", "create", namespace_of(share.name), f"--server={SERVER}")
            if there != wanted:
                self._set(namespace_of(share.name), wanted, there)
        return self._checked(self.ask(), spec)

    def ask(self, servers: Iterable[int] = ()) -> Said:
        """See `Control`."""
        status = self._doors.status(self._device, Limits(float(WHOLE), None))
        server = self._server()
        if server is None:
            return Said(status)
        pid, state = server
        return Said(replace(status, shares=tuple(self._shares())), (pid,), at_fault="FAULT" in state.upper())

    def is_as(self, said: Said, spec: MpsDaemonSpec) -> bool:
        """See `Control`."""
        return _by_name(said) == {share.name: limits_wanted(share.limits) for share in spec.shares}

    def clients(self, servers: Iterable[int]) -> list[Client]:
        """See `Control`."""
        running = list(servers)
        if not running:
            return []
        rows = self._rows("client", "list", f"--server={SERVER}", columns=5)
        return [Client(running[0], self._number(pid), namespace) for pid, _, _, namespace, _ in rows]

    def is_of(self, client: Client, claim: str, spec: MpsDaemonSpec) -> bool:
        """See `Control`. By its namespace, which it can't choose."""
        return client.namespace in {namespace_of(share.name) for share in spec.shares if share.claim == claim}

    def terminate(self, client: Client) -> None:
        """See `Control`."""
        self._call.run("client", "terminate", str(client.pid))

    def quit(self, seconds: int) -> None:
        """See `Control`. It waits for nobody."""
        self._call.run("-q", timeout=seconds + COMMAND_TIMEOUT)

    def _let_a_server_run(self) -> None:
        """Before the first client comes, as with protocol 2. One without a process is made anew."""
        if self._server() is not None:
            return
        if any(row[0] == SERVER for row in self._rows("server", "list", columns=4)):
            self._call.run("server", "delete", SERVER, "--force")
        self._call.run("server", "create", SERVER)

    def _server(self) -> tuple[int, str] | None:
        """Process id and state of our server; None where it has no process."""
        for name, _, pid, state, *_ in self._rows("server", "list", columns=4):
            if name == SERVER and pid.isdecimal() and int(pid):
                return int(pid), state
        return None

    def _shares(self) -> Iterator[MpsShareStatus]:
        """Every namespace but the default one; a name of nobody's stays as it is."""
        for name, _, _, memory, percentage, _, pipe in self._rows("namespace", "list", f"--server={SERVER}", columns=7):
            if name != _DEFAULT:
                yield MpsShareStatus(
                    name=self._names.get(name, name),
                    pipe_directory=pipe,
                    thread_percentage=_percentage(percentage),
                    memory_limit=_memory(memory),
                )

    def _set(self, namespace: str, wanted: Limits, there: Limits | None) -> None:
        options = [f"--active-thread-percentage={wanted.thread_percentage:g}"]
        if wanted.memory_limit is not None:
            options.append(f"--pinned-memory-limit={wanted.memory_limit // MIB}M")
        elif there is not None and there.memory_limit is not None:
            options.append(f"--pinned-memory-limit={UNLIMITED // MIB}M")
        self._call.run("namespace", "set", namespace, f"--server={SERVER}", *options)

    def _remove(self, share: str) -> None:
        """Its clients go in good order first: the daemon deletes a namespace by force also around running clients."""
        namespace = next((each for each, name in self._names.items() if name == share), share)
        for client in self.clients([0]):
            if client.namespace == namespace:
                with contextlib.suppress(MpsError):  # it may have gone meanwhile
                    self.terminate(client)
        self._call.run("namespace", "delete", namespace, f"--server={SERVER}", "--force")

    def _checked(self, said: Said, spec: MpsDaemonSpec) -> Said:
        if not said.servers:
            raise MpsError(f"the MPS daemon of {self._device} made server {SERVER} and started no process for it")
        found = _by_name(said)
        for share in spec.shares:
            wanted = limits_wanted(share.limits)
            if found.get(share.name) != wanted:
                raise MpsError(
                    f"the MPS daemon of {self._device} did not take the limits of a share: asked for {wanted}, it says "
                    f"{found.get(share.name, 'that there is no such namespace')}"
                )
        return said

    def _rows(self, *words: str, columns: int) -> list[list[str]]:
        """The rows of a list, with at least so many columns; the last of them takes what is left."""
        answer = self._call.run(*words, _CSV)
        rows = [[cell.strip() for cell in line.split(",", columns - 1)] for line in answer.splitlines() if line.strip()]
        if any(len(row) < columns for row in rows):
            raise self._call.odd(answer)
        return rows

    def _number(self, word: str) -> int:
        if not word.isdecimal():
            raise self._call.odd(word)
        return int(word)


def _by_name(said: Said) -> dict[str, Limits]:
    return {share.name: Limits(share.thread_percentage, share.memory_limit) for share in said.status.shares}


def _percentage(word: str) -> float:
    """Where none is set the server's own holds, which is all."""
    try:
        return float(word.removesuffix("%"))
    except ValueError:
        return float(WHOLE)


def _memory(word: str) -> int | None:
    """Bytes; None for any word that is no limit."""
    match = _MEMORY.fullmatch(word)
    size = int(match[1]) * _UNITS[match[2]] if match else 0
    return size if 0 < size < UNLIMITED else None
