"""The health service over a real unix socket with a real gRPC client: what is told when, and how streams end."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import grpc
import pytest

from nodedriver.health.report import DeviceHealth, Wellness
from nodedriver.kubelet.health import REFRESH_SECONDS, TIMEOUT_SECONDS, HealthStreams
from nodedriver.kubelet.server import Endpoints, serve
from nodedriver.pb.drahealth.v1 import api_pb2 as v1
from nodedriver.pb.drahealth.v1 import api_pb2_grpc as v1_grpc
from nodedriver.pb.drahealth.v1alpha1 import api_pb2 as v1alpha1
from nodedriver.pb.drahealth.v1alpha1 import api_pb2_grpc as v1alpha1_grpc
from tests.nodedriver.test_kubelet import Answers

WELL = DeviceHealth("gpu-0", Wellness.HEALTHY)
ILL = DeviceHealth("gpu-0", Wellness.UNHEALTHY, "XID 48")


@dataclass
class Ward:
    """Devices whose health a test sets, and the driver's server over them."""

    found: list[DeviceHealth] = field(default_factory=lambda: [WELL, DeviceHealth("gpu-1", Wellness.UNKNOWN, "deaf")])
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.streams = HealthStreams("node-1", lambda: tuple(self.found))


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[tuple[Ward, Any]]:
    ward = Ward()
    endpoints = Endpoints("gpu.portico.dev", folder / "dra.sock", folder / "registry" / "reg.sock")
    ended = asyncio.ensure_future(serve(endpoints, Answers(), ward.streams, ward.stop))
    while not endpoints.registration_socket.exists():
        assert not ended.done(), ended.exception()
        await asyncio.sleep(0.01)
    options = [("grpc.default_authority", "localhost")]
    async with grpc.aio.insecure_channel(f"unix://{endpoints.dra_socket}", options=options) as to:
        yield ward, to
        ward.stop.set()
        await asyncio.wait_for(ended, 20)


def watching(folder: Path, test: Callable[[Ward, Any], Awaitable[None]]) -> None:
    async def run() -> None:
        async with served(folder) as (ward, to):
            await test(ward, to)

    asyncio.run(run())


@pytest.mark.parametrize(("messages", "stubs"), [(v1, v1_grpc), (v1alpha1, v1alpha1_grpc)], ids=["v1", "v1alpha1"])
def test_every_device_is_told_at_once_in_both_versions(tmp_path: Path, messages: ModuleType, stubs: ModuleType) -> None:
    async def ask(_ward: Ward, to: Any) -> None:
        stream = stubs.DRAResourceHealthStub(to).NodeWatchResources(messages.NodeWatchResourcesRequest())
        answer = await stream.read()
        assert [(d.device.pool_name, d.device.device_name, d.health, d.message) for d in answer.devices] == [
            ("node-1", "gpu-0", messages.HEALTHY, ""),
            ("node-1", "gpu-1", messages.UNKNOWN, "deaf"),
        ]
        assert {d.health_check_timeout_seconds for d in answer.devices} == {30}
        assert all(d.last_updated_time > 1_700_000_000 for d in answer.devices)

    watching(tmp_path, ask)


def test_a_change_reaches_every_stream_from_another_thread(tmp_path: Path) -> None:
    async def ask(ward: Ward, to: Any) -> None:
        stub = v1_grpc.DRAResourceHealthStub(to)
        streams = [stub.NodeWatchResources(v1.NodeWatchResourcesRequest()) for _ in range(2)]
        for stream in streams:
            assert (await stream.read()).devices[0].health == v1.HEALTHY
        ward.found[0] = ILL
        threading.Thread(target=ward.streams.wake).start()
        for stream in streams:
            answer = await stream.read()
            assert (answer.devices[0].health, answer.devices[0].message) == (v1.UNHEALTHY, "XID 48")

    watching(tmp_path, ask)


def test_what_stays_the_same_is_told_again(tmp_path: Path) -> None:
    async def ask(ward: Ward, to: Any) -> None:
        ward.streams.refresh = 0.05
        stream = v1_grpc.DRAResourceHealthStub(to).NodeWatchResources(v1.NodeWatchResourcesRequest())
        answers = [await stream.read() for _ in range(3)]
        assert [answer.devices[0].health for answer in answers] == [v1.HEALTHY] * 3

    watching(tmp_path, ask)
    assert 2 * REFRESH_SECONDS < TIMEOUT_SECONDS


def test_an_open_stream_ends_with_the_driver_and_a_cancelled_one_before(tmp_path: Path) -> None:
    async def ask(ward: Ward, to: Any) -> None:
        stub = v1_grpc.DRAResourceHealthStub(to)
        cancelled, kept = (stub.NodeWatchResources(v1.NodeWatchResourcesRequest()) for _ in range(2))
        await cancelled.read()
        await kept.read()
        cancelled.cancel()
        ward.stop.set()
        assert await kept.read() is grpc.aio.EOF

    watching(tmp_path, ask)
