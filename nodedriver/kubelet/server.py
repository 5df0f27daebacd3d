"""The two sockets of the driver and their life: the DRA service answers first, the registration socket comes last.

At the end the order is reversed. When the registration socket goes (plugin watcher), the kubelet forgets us and drops
the connection with every call on it, so those that run are let finish before. gRPC starts here, so nothing may fork
afterwards.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import structlog

from nodedriver.kubelet.health import HealthStreams, add_health
from nodedriver.kubelet.plugin import API_VERSIONS, Calls, DraPlugin, Verbs
from nodedriver.kubelet.registration import Registration
from nodedriver.kubelet.sockets import keep_for_root, make_room, remove_own, sweep
from nodedriver.pb.pluginregistration.v1 import api_pb2_grpc as registration_grpc

GRACE = 45.0  # seconds that running calls get at the end: the kubelet waits no longer for one
_THREADS = 32  # claims worked on at once; most of them wait for a lock
_log = structlog.get_logger()


class RegistrationRefusedError(Exception):
    """The kubelet does not want this driver. The text is its reason."""


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The driver's name, its two socket paths, and `registered`, which is set once the kubelet took us."""

    driver_name: str
    dra_socket: Path
    registration_socket: Path
    registered: threading.Event = field(default_factory=threading.Event)


async def serve(endpoints: Endpoints, verbs: Verbs, streams: HealthStreams, stop: asyncio.Event) -> None:
    """Answer the kubelet until `stop` is set; RegistrationRefusedError when it refuses us."""

    def add_services(server: object) -> None:
        add_plugin(server, verbs, calls)
        add_health(server, streams)

    sweep(endpoints.dra_socket.parent, "dra-*.sock")
    sweep(endpoints.registration_socket.parent, f"{endpoints.driver_name}-*-reg.sock")
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS, thread_name_prefix="claim"))
    registration = Registration(endpoints.driver_name, str(endpoints.dra_socket), endpoints.registered)
    calls = Calls()
    async with _listening(endpoints.dra_socket, add_services, grace=GRACE):
        try:
            async with _listening(
                endpoints.registration_socket, lambda server: _add_registration(server, registration), grace=0
            ):
                _log.info(
                    "sockets opened", dra=str(endpoints.dra_socket), registration=str(endpoints.registration_socket)
                )
                await _until_stopped(stop, registration.refused)
                await _finished(calls)
        finally:
            streams.end()


async def _finished(calls: Calls) -> None:
    try:
        await asyncio.wait_for(calls.finish(), GRACE)
    except TimeoutError:
        _log.warning("calls of the kubelet still ran at the end", seconds=GRACE)


def add_plugin(server: object, verbs: Verbs, calls: Calls) -> None:
    """Let a gRPC server answer as DRAPlugin, in every version."""
    for api in API_VERSIONS:
        api.add_to_server(DraPlugin(verbs, api, calls), server)


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
    """A gRPC server on a unix socket, for root alone. What a dead driver left there is removed before, ours after."""
    make_room(path)
    server = grpc.aio.server()
    add_services(server)
    server.add_insecure_port(f"unix://{path}")
    await server.start()
    own = keep_for_root(path)
    try:
        yield
    finally:
        remove_own(path, own)
        await server.stop(grace)
