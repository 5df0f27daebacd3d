"""The DRAResourceHealth service (KEP-4680): tells the kubelet how the devices are, which it writes into pod statuses.

Serves v1 and v1alpha1, which differ in name only. Each answer lists every device; it comes at once when something
changed, and else often enough that the kubelet does not take silence for "unknown". Decides nothing about health.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import grpc

from nodedriver.health.report import DeviceHealth
from nodedriver.pb.drahealth.v1 import api_pb2 as v1_pb2
from nodedriver.pb.drahealth.v1 import api_pb2_grpc as v1_grpc
from nodedriver.pb.drahealth.v1alpha1 import api_pb2 as v1alpha1_pb2
from nodedriver.pb.drahealth.v1alpha1 import api_pb2_grpc as v1alpha1_grpc

REFRESH_SECONDS = 10.0  # the kubelet forgets what it has not heard for 30
TIMEOUT_SECONDS = 30  # that time, said explicitly in each answer
STREAMS = 8  # open at once, a thread each; the kubelet has one

type Look = Callable[[], Sequence[DeviceHealth]]


@dataclass(frozen=True, slots=True)
class HealthVersion:
    """One version of the service: its name at registration, its messages, and how a servicer joins a server."""

    service: str
    messages: ModuleType
    add_to_server: Callable[[object, object], None]


HEALTH_VERSIONS = (
    HealthVersion("v1.DRAResourceHealth", v1_pb2, v1_grpc.add_DRAResourceHealthServicer_to_server),
    HealthVersion("v1alpha1.DRAResourceHealth", v1alpha1_pb2, v1alpha1_grpc.add_DRAResourceHealthServicer_to_server),
)


class HealthStreams:
    """What the streams tell and what wakes them. `wake` may be called from any thread, at any time."""

    def __init__(self, pool: str, look: Look, *, refresh: float = REFRESH_SECONDS) -> None:
        """`look` gives the health of every published device now, without waiting for anything."""
        self.pool = pool
        self.look = look
        self.refresh = refresh
        self.room = threading.Semaphore(STREAMS)
        self._ended = False
        self._changes = 0
        self._told = threading.Condition()

    def wake(self) -> None:
        """Have every stream tell anew, now."""
        with self._told:
            self._changes += 1
            self._told.notify_all()

    def end(self) -> None:
        """End every stream, since a server does not stop while one is open."""
        with self._told:
            self._ended = True
            self._told.notify_all()

    def moments(self, context: Any) -> Iterator[None]:
        """When to tell: at once, after each change and each refresh, until the kubelet or the driver ends the call."""
        context.add_callback(self._look_up)
        while context.is_active() and not self._ended:
            seen = self._changes
            yield
            with self._told:
                self._told.wait_for(
                    lambda: self._ended or self._changes != seen or not context.is_active(),  # noqa: B023
                    self.refresh,
                )

    def _look_up(self) -> None:
        """Let a stream notice that its kubelet is gone."""
        with self._told:
            self._told.notify_all()


class ResourceHealth:
    """The service of one API version. Method name and messages are the protocol's own."""

    def __init__(self, streams: HealthStreams, api: HealthVersion) -> None:
        self._streams = streams
        self._messages = api.messages

    def NodeWatchResources(self, request: object, context: Any) -> Iterator[Any]:  # noqa: N802
        """All devices now, and again after each change, until the kubelet or the driver ends it."""
        if not self._streams.room.acquire(blocking=False):
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"{STREAMS} streams of device health are open already")
        try:
            for _ in self._streams.moments(context):
                yield self._answer()
        finally:
            self._streams.room.release()

    def _answer(self) -> Any:
        now = int(time.time())
        devices = [self._device(each, now) for each in self._streams.look()]
        return self._messages.NodeWatchResourcesResponse(devices=devices)

    def _device(self, found: DeviceHealth, now: int) -> Any:
        return self._messages.DeviceHealth(
            device=self._messages.DeviceIdentifier(pool_name=self._streams.pool, device_name=found.device),
            health=self._messages.HealthStatus.Value(found.wellness.name),
            last_updated_time=now,
            health_check_timeout_seconds=TIMEOUT_SECONDS,
            message=found.message,
        )


def add_health(server: object, streams: HealthStreams) -> None:
    """Let a gRPC server answer as DRAResourceHealth, in every version."""
    for api in HEALTH_VERSIONS:
        api.add_to_server(ResourceHealth(streams, api), server)
