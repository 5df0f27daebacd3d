"""The two sockets of the driver and their life: the DRA service answers first, the registration socket comes last.

At the end the order is reversed: the kubelet forgets us when the registration socket goes (plugin watcher), then calls
that still run are let finish. gRPC starts here, so nothing may fork afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import structlog

from nodedriver.kubelet.plugin import API_VERSIONS, DraPlugin, Verbs
from nodedriver.kubelet.registration import Registration
from nodedriver.pb.pluginregistration.v1 import api_pb2_grpc as registration_grpc

GRACE = 10.0  # seconds that running calls get at the end
_THREADS = 32  # claims worked on at once; most of them wait for a lock
_log = structlog.get_logger()


class RegistrationRefusedError(Exception):
    """The kubelet does not want this driver. The text is its reason."""


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The driver's name and its two socket paths."""

    driver_name: str
    dra_socket: Path
    registration_socket: Path


async def serve(endpoints: Endpoints, verbs: Verbs, stop: asyncio.Event) -> None:
    """Answer the kubelet until `stop` is set; RegistrationRefusedError when it refuses us."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS, thread_name_prefix="claim"))
    registration = Registration(endpoints.driver_name, str(endpoints.dra_socket))
    async with (
        _listening(endpoints.dra_socket, lambda server: add_plugin(server, verbs), grace=GRACE),
        _listening(endpoints.registration_socket, lambda server: _add_registration(server, registration), grace=0),
    ):
        _log.info("sockets opened", dra=str(endpoints.dra_socket), registration=str(endpoints.registration_socket))
        await _until_stopped(stop, registration.refused)


def add_plugin(server: object, verbs: Verbs) -> None:
    """Let a gRPC server answer as DRAPlugin, in every version."""
    for api in API_VERSIONS:
        api.add_to_server(DraPlugin(verbs, api), server)


def _add_registration(server: object, registration: Registration) -> None:
    registration_grpc.add_RegistrationServicer_to_server(registration, server)


async def _until_stopped(stop: asyncio.Event, refused: asyncio.Future[str]) -> None:
    stopped = asyncio.ensure_future(stop.wait())
    await asyncio.wait((stopped, refused), return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if refused.done():
        raise RegistrationRefusedError(refused.result())


@asynccontextmanager
async def _listening(path: Path, add_services: Callable[[object], None], *, grace: float) -> AsyncIterator[None]:
    """A gRPC server on a unix socket, for root alone. A stale socket of a dead driver is removed before, ours after."""
    _make_room(path)
    server = grpc.aio.server()
    add_services(server)
    server.add_insecure_port(f"unix://{path}")
    await server.start()
    inode = _keep_for_root(path)
    try:
        yield
    finally:
        _remove_own(path, inode)
        await server.stop(grace)


def _make_room(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
    path.unlink(missing_ok=True)


def _keep_for_root(path: Path) -> int:
    """Close the socket to other users, and return its inode: its name may become another driver's."""
    path.chmod(0o600)
    return path.stat().st_ino


def _remove_own(path: Path, inode: int) -> None:
    """Remove the socket, unless a newer driver has put its own there."""
    try:
        if path.stat().st_ino == inode:
            path.unlink()
    except FileNotFoundError:
        _log.debug("socket was gone already", path=str(path))
