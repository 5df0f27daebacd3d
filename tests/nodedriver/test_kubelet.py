"""The kubelet's protocol over real unix sockets with a real gRPC client: registration, answers by claim, life cycle."""

import socket
import stat
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import grpc
import pytest
import structlog

from dra.names import ClaimRef, ClaimUID
from nodedriver.driver import Failed, GivenDevice, Prepared, PrepareResult
from nodedriver.kubelet.health import HealthStreams
from nodedriver.kubelet.server import Endpoints, serve
from nodedriver.kubelet.stopping import RegistrationRefusedError, Stop
from nodedriver.pb.dra.v1 import api_pb2 as v1
from nodedriver.pb.dra.v1 import api_pb2_grpc as v1_grpc
from nodedriver.pb.dra.v1beta1 import api_pb2 as v1beta1
from nodedriver.pb.dra.v1beta1 import api_pb2_grpc as v1beta1_grpc
from nodedriver.pb.pluginregistration.v1 import api_pb2 as registration
from nodedriver.pb.pluginregistration.v1 import api_pb2_grpc as registration_grpc
from tests.cluster.waiting import wait_until

SHARE = "00000000-0000-4000-8000-000000000025"
GIVEN = GivenDevice(
    device_request="gpu", pool="node-1", device="gpu-0", share_id=SHARE, cdi_device_ids=("gpu.portico.dev/claim=a",)
)


@dataclass
class Answers:
    """Verbs that answer by claim name, and remember what they were asked."""

    asked: list[tuple[str, ClaimRef]] = field(default_factory=list)
    logged: list[dict[str, Any]] = field(default_factory=list)  # what a log line would say of the call
    both: threading.Barrier = field(default_factory=lambda: threading.Barrier(2, timeout=20))
    begun: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)

    def prepare(self, ref: ClaimRef) -> PrepareResult:
        self.asked.append(("prepare", ref))
        self.logged.append(structlog.contextvars.get_contextvars())
        if ref.name.startswith("meets"):
            self.both.wait()
        if ref.name == "slow":
            self.begun.set()
            self.release.wait(20)
        return Failed("no such device") if ref.name == "bad" else Prepared((GIVEN,))

    def unprepare(self, ref: ClaimRef) -> str:
        self.asked.append(("unprepare", ref))
        return "the card is busy" if ref.name == "bad" else ""


@dataclass
class Running:
    """A server, and what ends it."""

    endpoints: Endpoints
    answers: Answers
    stop: Stop
    ended: Future[None]


@contextmanager
def running(folder: Path) -> Iterator[Running]:
    endpoints = Endpoints("gpu.portico.dev", folder / "plugin" / "dra.sock", folder / "registry" / "reg.sock")
    answers, stop = Answers(), SimpleQueue[Exception | None]()
    with ThreadPoolExecutor(1) as thread:
        ended = thread.submit(serve, endpoints, answers, HealthStreams("node-1", list), stop)
        wait_until(lambda: ended.done() or endpoints.registration_socket.exists(), "the registration socket")
        try:
            yield Running(endpoints, answers, stop, ended)
        finally:
            stop.put(None)


@contextmanager
def channel(path: Path) -> Iterator[Any]:
    # The kubelet sends this authority since 1.25; grpcio would send the path, percent-encoded.
    options = [("grpc.default_authority", "localhost")]
    with grpc.insecure_channel(f"unix://{path}", options=options) as opened:
        yield opened


def claims(api: Any, *names: str) -> list[Any]:
    return [api.Claim(namespace="ml-team", name=name, uid=f"uid-{name}") for name in names]


def test_get_info_names_the_driver_and_the_newest_version_first(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        with channel(server.endpoints.registration_socket) as to:
            info = registration_grpc.RegistrationStub(to).GetInfo(registration.InfoRequest())
        assert (info.type, info.name) == ("DRAPlugin", "gpu.portico.dev")
        assert info.endpoint == str(tmp_path / "plugin" / "dra.sock")
        assert list(info.supported_versions) == [
            *("v1.DRAPlugin", "v1beta1.DRAPlugin"),
            *("v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"),
        ]


def test_prepare_answers_each_claim_by_its_uid(tmp_path: Path) -> None:
    with running(tmp_path) as server, channel(server.endpoints.dra_socket) as to:
        request = v1.NodePrepareResourcesRequest(claims=claims(v1, "good", "bad", "other"))
        answer = v1_grpc.DRAPluginStub(to).NodePrepareResources(request)
        assert set(answer.claims) == {"uid-good", "uid-bad", "uid-other"}
        assert answer.claims["uid-bad"].error == "no such device"
        assert not answer.claims["uid-bad"].devices
        good = answer.claims["uid-good"]
        assert good.error == ""
        assert [str(d) for d in good.devices] == [
            str(
                v1.Device(
                    request_names=["gpu"],
                    pool_name="node-1",
                    device_name="gpu-0",
                    cdi_device_ids=["gpu.portico.dev/claim=a"],
                    share_id=SHARE,
                )
            )
        ]
        assert ("prepare", ClaimRef("ml-team", "good", ClaimUID("uid-good"))) in server.answers.asked


def test_claims_of_one_call_are_prepared_at_once(tmp_path: Path) -> None:
    with running(tmp_path) as server, channel(server.endpoints.dra_socket) as to:
        request = v1.NodePrepareResourcesRequest(claims=claims(v1, "meets-1", "meets-2"))
        answer = v1_grpc.DRAPluginStub(to).NodePrepareResources(request)
        assert [len(answer.claims[uid].devices) for uid in ("uid-meets-1", "uid-meets-2")] == [1, 1]


def test_calls_are_worked_on_at_once(tmp_path: Path) -> None:
    with running(tmp_path) as server, channel(server.endpoints.dra_socket) as to:
        call = v1_grpc.DRAPluginStub(to).NodePrepareResources.future
        calls = [call(v1.NodePrepareResourcesRequest(claims=claims(v1, name))) for name in ("meets-1", "meets-2")]
        assert [len(each.result(30).claims) for each in calls] == [1, 1]


def test_log_lines_name_the_call_for_each_claim(tmp_path: Path) -> None:
    with running(tmp_path) as server, channel(server.endpoints.dra_socket) as to:
        for names in (("one", "two", "three"), ("four",)):
            request = v1.NodePrepareResourcesRequest(claims=claims(v1, *names))
            v1_grpc.DRAPluginStub(to).NodePrepareResources(request)
        said = server.answers.logged
        assert {each["call"] for each in said} == {"NodePrepareResources"}
        assert [said.count(each) for each in said] == [3, 3, 3, 1]
        assert len({each["op_id"] for each in said}) == 2


def test_unprepare_answers_each_claim(tmp_path: Path) -> None:
    with running(tmp_path) as server, channel(server.endpoints.dra_socket) as to:
        request = v1.NodeUnprepareResourcesRequest(claims=claims(v1, "good", "bad"))
        answer = v1_grpc.DRAPluginStub(to).NodeUnprepareResources(request)
        assert {uid: a.error for uid, a in answer.claims.items()} == {"uid-good": "", "uid-bad": "the card is busy"}


def test_the_older_version_has_no_share_ids(tmp_path: Path) -> None:
    with running(tmp_path) as server, channel(server.endpoints.dra_socket) as to:
        request = v1beta1.NodePrepareResourcesRequest(claims=claims(v1beta1, "good"))
        answer = v1beta1_grpc.DRAPluginStub(to).NodePrepareResources(request)
        assert [d.device_name for d in answer.claims["uid-good"].devices] == ["gpu-0"]


def test_no_claims_no_answers(tmp_path: Path) -> None:
    with running(tmp_path) as server, channel(server.endpoints.dra_socket) as to:
        answer = v1_grpc.DRAPluginStub(to).NodePrepareResources(v1.NodePrepareResourcesRequest())
        assert not answer.claims


def test_sockets_are_for_root_alone_and_gone_at_the_end(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        paths = (server.endpoints.dra_socket, server.endpoints.registration_socket)
        assert [stat.S_IMODE(path.stat().st_mode) for path in paths] == [0o600, 0o600]
        server.stop.put(None)
        server.ended.result(20)
        assert [path.exists() for path in paths] == [False, False]


def test_a_call_is_finished_before_the_kubelet_is_let_go(tmp_path: Path) -> None:
    """When the registration socket goes, a kubelet closes the connection under its own calls."""
    with running(tmp_path) as server, channel(server.endpoints.dra_socket) as to:
        request = v1.NodePrepareResourcesRequest(claims=claims(v1, "slow"))
        call = v1_grpc.DRAPluginStub(to).NodePrepareResources.future(request)
        assert server.answers.begun.wait(20)
        server.stop.put(None)
        time.sleep(0.2)
        assert server.endpoints.registration_socket.exists()
        server.answers.release.set()
        assert not call.result(20).claims["uid-slow"].error
        server.ended.result(20)
        assert not server.endpoints.registration_socket.exists()


def test_the_stale_socket_of_a_killed_driver_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "plugin").mkdir()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "plugin" / "dra.sock"))
    with running(tmp_path) as server, channel(server.endpoints.dra_socket) as to:
        v1_grpc.DRAPluginStub(to).NodePrepareResources(v1.NodePrepareResourcesRequest())


def test_sockets_of_killed_pods_are_swept_and_living_ones_are_not(tmp_path: Path) -> None:
    plugin, registry = tmp_path / "plugin", tmp_path / "registry"
    plugin.mkdir()
    registry.mkdir()
    dead = [plugin / "dra-0123.sock", registry / "gpu.portico.dev-0123-reg.sock"]
    for path in dead:
        with socket.socket(socket.AF_UNIX) as gone:
            gone.bind(str(path))
    others = [registry / "gpu.example.com-reg.sock", registry / "gpu.portico.dev-note-reg.sock"]
    with socket.socket(socket.AF_UNIX) as foreign:
        foreign.bind(str(others[0]))
    others[1].write_text("no socket")
    with socket.socket(socket.AF_UNIX) as living:
        living.bind(str(plugin / "dra-4567.sock"))
        living.listen()
        with running(tmp_path) as server:
            server.stop.put(None)
            server.ended.result(20)
    assert (plugin / "dra-4567.sock").exists()
    assert [path.exists() for path in dead] == [False, False]
    assert [path.exists() for path in others] == [True, True]


def test_a_newer_drivers_sockets_are_left_alone(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        for path in (server.endpoints.dra_socket, server.endpoints.registration_socket):
            path.unlink()
            path.write_text("newer")
        server.stop.put(None)
        server.ended.result(20)
        assert server.endpoints.dra_socket.read_text() == "newer"
        assert server.endpoints.registration_socket.read_text() == "newer"


def test_a_refused_registration_ends_the_driver_with_the_kubelets_reason(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        with channel(server.endpoints.registration_socket) as to:
            status = registration.RegistrationStatus(plugin_registered=False, error="endpoint is taken")
            registration_grpc.RegistrationStub(to).NotifyRegistrationStatus(status)
        with pytest.raises(RegistrationRefusedError, match="endpoint is taken"):
            server.ended.result(20)
        assert not server.endpoints.registration_socket.exists()


def test_an_accepted_registration_goes_on(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        with channel(server.endpoints.registration_socket) as to:
            status = registration.RegistrationStatus(plugin_registered=True)
            registration_grpc.RegistrationStub(to).NotifyRegistrationStatus(status)
        time.sleep(0.1)
        assert not server.ended.done()
