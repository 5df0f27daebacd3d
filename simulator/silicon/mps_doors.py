"""The sockets at which a control daemon listens: its own and, under version 3, one for each server and namespace.

A client's way in decides its namespace (MPS documentation, "Namespace Routing"), whose folder goes with it.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
from dataclasses import dataclass
from pathlib import Path

from simulator.silicon.hardware import MpsDaemon
from simulator.silicon.mps_service import DEFAULT_NAMESPACE, Route


@dataclass(frozen=True, slots=True, eq=False)
class Door:
    """One listening socket. `route` None: the daemon's own, where the client's user decides."""

    listener: socket.socket
    route: Route | None = None


class Doors:
    """Those of the servers and namespaces, kept as the daemon has them."""

    def __init__(self, pipes: Path, selector: selectors.BaseSelector) -> None:
        self._pipes = pipes
        self._selector = selector
        self._open: dict[Path, Door] = {}

    def match(self, daemon: MpsDaemon) -> None:
        """Open what is missing and close what is too much."""
        wanted = self._wanted(daemon)
        for folder in sorted(self._open.keys() - wanted.keys(), reverse=True):  # a namespace's before its server's
            self._close(folder)
        for folder in wanted.keys() - self._open.keys():
            door = Door(listen(folder / "control"), wanted[folder])
            self._open[folder] = door
            self._selector.register(door.listener, selectors.EVENT_READ, door)

    def _wanted(self, daemon: MpsDaemon) -> dict[Path, Route]:
        found = {}
        for server in daemon.servers if daemon.protocol == 3 else ():
            found[self._pipes / server.name] = Route(server.name, DEFAULT_NAMESPACE)
            for namespace in server.namespaces:
                found[self._pipes / server.name / namespace.name] = Route(server.name, namespace.name)
        return found

    def _close(self, folder: Path) -> None:
        door = self._open.pop(folder)
        self._selector.unregister(door.listener)
        door.listener.close()
        (folder / "control").unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # what is left in it stays
            folder.rmdir()


def listen(path: Path) -> socket.socket:
    """A socket for every user at that path. OSError when the path is too long for a Unix socket."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    path.chmod(0o666)
    listener.listen(128)
    return listener
