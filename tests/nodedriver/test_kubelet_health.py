"""The health service over a real unix socket with a real gRPC client: what is told when, and how streams end."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from types import ModuleType
from typing import Any

import grpc
import pytest

from nodedriver.health.report import DeviceHealth, Wellness
from nodedriver.kubelet.health import REFRESH_SECONDS, STREAMS, TIMEOUT_SECONDS, HealthStreams
from nodedriver.kubelet.server import Endpoints, serve
from nodedriver.kubelet.stopping import Stop
from nodedriver.pb.dra.v1 import api_pb2 as dra
from nodedriver.pb.dra.v1 import api_pb2_grpc as dra_grpc
from nodedriver.pb.drahealth.v1 import api_pb2 as v1
from nodedriver.pb.drahealth.v1 import api_pb2_grpc as v1_grpc
from nodedriver.pb.drahealth.v1alpha1 import api_pb2 as v1alpha1
from nodedriver.pb.drahealth.v1alpha1 import api_pb2_grpc as v1alpha1_grpc
from tests.cluster.waiting import wait_until
from tests.nodedriver.test_kubelet import Answers, channel, claims

WELL = DeviceHealth("gpu-0", Wellness.HEALTHY)
ILL = DeviceHealth("gpu-0", Wellness.UNHEALTHY, "XID 48")


@dataclass
class Ward:
    """Devices whose health a test sets, and the driver's server over them."""

    found: list[DeviceHealth] = field(default_factory=lambda: [WELL, DeviceHealth("gpu-1", Wellness.UNKNOWN, "deaf")])
    stop: Stop = field(default_factory=SimpleQueue)

    def __post_init__(self) -> None:
        self.streams = HealthStreams("node-1", lambda: tuple(self.found))


@contextmanager
def served(folder: Path) -> Iterator[tuple[Ward, Endpoints]]:
    ward = Ward()
    endpoints = Endpoints("gpu.portico.dev", folder / "dra.sock", folder / "registry" / "reg.sock")
    with ThreadPoolExecutor(1) as thread:
        ended = thread.submit(serve, endpoints, Answers(), ward.streams, ward.stop)
        wait_until(lambda: ended.done() or endpoints.registration_socket.exists(), "the registration socket")
        try:
            yield ward, endpoints
        finally:
            ward.stop.put(None)
        ended.result(20)


@contextmanager
def watched(folder: Path) -> Iterator[tuple[Ward, Any]]:
    with served(folder) as (ward, endpoints), channel(endpoints.dra_socket) as to:
        yield ward, to


@pytest.mark.parametrize(("messages", "stubs"), [(v1, v1_grpc), (v1alpha1, v1alpha1_grpc)], ids=["v1", "v1alpha1"])
def test_every_device_is_told_at_once_in_both_versions(tmp_path: Path, messages: ModuleType, stubs: ModuleType) -> None:
    with watched(tmp_path) as (_ward, to):
        stream = stubs.DRAResourceHealthStub(to).NodeWatchResources(messages.NodeWatchResourcesRequest())
        answer = next(stream)
        assert [(d.device.pool_name, d.device.device_name, d.health, d.message) for d in answer.devices] == [
            ("node-1", "gpu-0", messages.HEALTHY, ""),
            ("node-1", "gpu-1", messages.UNKNOWN, "deaf"),
        ]
        assert {d.health_check_timeout_seconds for d in answer.devices} == {30}
        assert all(d.last_updated_time > 1_700_000_000 for d in answer.devices)


def test_a_change_reaches_every_stream_from_another_thread(tmp_path: Path) -> None:
    with watched(tmp_path) as (ward, to):
        stub = v1_grpc.DRAResourceHealthStub(to)
        streams = [stub.NodeWatchResources(v1.NodeWatchResourcesRequest()) for _ in range(2)]
        for stream in streams:
            assert next(stream).devices[0].health == v1.HEALTHY
        ward.found[0] = ILL
        threading.Thread(target=ward.streams.wake).start()
        for stream in streams:
            answer = next(stream)
            assert (answer.devices[0].health, answer.devices[0].message) == (v1.UNHEALTHY, "XID 48")


def test_what_stays_the_same_is_told_again(tmp_path: Path) -> None:
    with watched(tmp_path) as (ward, to):
        ward.streams.refresh = 0.05
        stream = v1_grpc.DRAResourceHealthStub(to).NodeWatchResources(v1.NodeWatchResourcesRequest())
        answers = [next(stream) for _ in range(3)]
        assert [answer.devices[0].health for answer in answers] == [v1.HEALTHY] * 3
    assert 2 * REFRESH_SECONDS < TIMEOUT_SECONDS


def test_an_open_stream_ends_with_the_driver_and_a_cancelled_one_before(tmp_path: Path) -> None:
    with watched(tmp_path) as (ward, to):
        stub = v1_grpc.DRAResourceHealthStub(to)
        cancelled, kept = (stub.NodeWatchResources(v1.NodeWatchResourcesRequest()) for _ in range(2))
        next(cancelled)
        next(kept)
        cancelled.cancel()
        ward.stop.put(None)
        assert next(kept, None) is None


def test_streams_of_a_kubelet_that_is_gone_leave_room_for_a_new_one(tmp_path: Path) -> None:
    with served(tmp_path) as (ward, endpoints):
        ward.streams.refresh = 600.0
        for _ in range(2):
            with channel(endpoints.dra_socket) as to:
                kept = [wait_until(partial(answered, to), "an answer") for _ in range(STREAMS)]
                assert answered(to) is None
                del kept


def test_streams_take_no_thread_from_claims(tmp_path: Path) -> None:
    with watched(tmp_path) as (_ward, to):
        streams = [stream_of(to) for _ in range(STREAMS)]
        assert all(next(stream).devices for stream in streams)
        with pytest.raises(grpc.RpcError, match="8 streams of device health are open already"):
            next(stream_of(to))
        request = dra.NodePrepareResourcesRequest(claims=claims(dra, "good"))
        assert dra_grpc.DRAPluginStub(to).NodePrepareResources(request, timeout=20).claims["uid-good"].devices


def stream_of(to: Any) -> Any:
    return v1_grpc.DRAResourceHealthStub(to).NodeWatchResources(v1.NodeWatchResourcesRequest())


def answered(to: Any) -> Any:
    """A stream that has told, or None where there was no room for it."""
    stream = stream_of(to)
    try:
        next(stream)
    except grpc.RpcError:
        return None
    return stream
