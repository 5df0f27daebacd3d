"""The two sockets of the driver and their life: the DRA service answers first, the registration socket comes last.

At the end the order is reversed. When the registration socket goes (plugin watcher), the kubelet forgets us and drops
the connection with every call on it, so those that run are let finish before. gRPC starts here, so nothing may fork
afterwards.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import structlog

from nodedriver.kubelet.health import STREAMS, HealthStreams, add_health
from nodedriver.kubelet.plugin import API_VERSIONS, Calls, DraPlugin, Verbs
from nodedriver.kubelet.registration import Registration
from nodedriver.kubelet.sockets import keep_for_root, make_room, remove_own, sweep
from nodedriver.kubelet.stopping import Stop
from nodedriver.pb.pluginregistration.v1 import api_pb2_grpc as registration_grpc

GRACE = 45.0  # seconds that running calls get at the end: the kubelet waits no longer for one
_CALLS = 128  # threads; the kubelet makes a call for each of its pods (110 unless told otherwise), and probes come too
_ASKED = 2  # threads for the registration's calls
_ANSWERED = 5.0  # seconds until a registration's call is answered
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The driver's name, its two socket paths, and `registered`, which is set once the kubelet took us."""

    driver_name: str
    dra_socket: Path
    registration_socket: Path
    registered: threading.Event = field(default_factory=threading.Event)


def serve(endpoints: Endpoints, verbs: Verbs, streams: HealthStreams, stop: Stop) -> None:
    """Answer the kubelet until `stop` is told something; RegistrationRefusedError when it refuses us."""

    def add_services(server: object) -> None:
        add_plugin(server, verbs, calls)
        add_health(server, streams)

    sweep(endpoints.dra_socket.parent, "dra-*.sock")
    sweep(endpoints.registration_socket.parent, f"{endpoints.driver_name}-*-reg.sock")
    registration = Registration(endpoints.driver_name, str(endpoints.dra_socket), endpoints.registered, stop)
    calls = Calls()
    with _listening(endpoints.dra_socket, add_services, threads=_CALLS + STREAMS, grace=GRACE):
        try:
            with _listening(
                endpoints.registration_socket,
                lambda server: _add_registration(server, registration),
                threads=_ASKED,
                grace=_ANSWERED,
            ):
                _log.info(
                    "sockets opened", dra=str(endpoints.dra_socket), registration=str(endpoints.registration_socket)
                )
                if refusal := stop.get():
                    raise refusal
                if not calls.finish(GRACE):
                    _log.warning("calls of the kubelet still ran at the end", seconds=GRACE)
        finally:
            streams.end()


def add_plugin(server: object, verbs: Verbs, calls: Calls) -> None:
    """Let a gRPC server answer as DRAPlugin, in every version."""
    for api in API_VERSIONS:
        api.add_to_server(DraPlugin(verbs, api, calls), server)


def _add_registration(server: object, registration: Registration) -> None:
    registration_grpc.add_RegistrationServicer_to_server(registration, server)


@contextmanager
def _listening(path: Path, add_services: Callable[[object], None], *, threads: int, grace: float) -> Iterator[None]:
    """A gRPC server on a unix socket, for root alone. What a dead driver left there is removed before, ours after."""
    make_room(path)
    with ThreadPoolExecutor(threads, thread_name_prefix="call") as pool:
        server = grpc.server(pool)
        add_services(server)
        server.add_insecure_port(f"unix://{path}")
        server.start()
        own = keep_for_root(path)
        try:
            yield
        finally:
            remove_own(path, own)
            server.stop(grace).wait()
