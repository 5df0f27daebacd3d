"""The HTTP pages of a running driver: metrics of what it did, and health that follows its sockets and checkpoint."""

import json
import os
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator

import grpc
import pytest

from nodedriver.pb.pluginregistration.v1 import api_pb2, api_pb2_grpc
from tests.cluster.controlplane import free_ports
from tests.nodedriver import apiserver
from tests.nodedriver.claims import DRIVER, NODE, allocated, given
from tests.nodedriver.machine import short_folder, wait_until
from tests.nodedriver.node import DriverNode
from tests.nodedriver.test_metrics import values

pytestmark = pytest.mark.programs
A, B = (f"{letter * 8}-0000-4000-8000-000000000000" for letter in "ab")


@pytest.fixture
def port() -> int:
    (free,) = free_ports(1)
    return free


@pytest.fixture
def watched(port: int) -> Iterator[DriverNode]:
    with short_folder() as folder, apiserver.serve(folder / "kubeconfig") as store:
        made = DriverNode(folder, store)
        try:
            made.start("driver", "--http-port", str(port))
            yield made
        finally:
            made.close()


def get(port: int, path: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def register(node: DriverNode) -> None:
    """As the kubelet does."""
    options = [("grpc.default_authority", "localhost")]
    with grpc.insecure_channel(f"unix://{node.registration_socket}", options=options) as channel:
        status = api_pb2.RegistrationStatus(plugin_registered=True)
        api_pb2_grpc.RegistrationStub(channel).NotifyRegistrationStatus(status, timeout=30)


def test_metrics_tell_what_was_done(watched: DriverNode, port: int) -> None:
    node = watched
    done = node.allocate(allocated(given("gpu-1-mig-3g40gb-4", 100), uid=A))
    refused = node.allocate(allocated(given("gpu-0", 25), name="shared", uid=B))
    node.prepare(done, refused)  # no MPS supervisor runs, so the share can't be had
    node.prepare(done)
    status, shown = get(port, "/metrics")
    found = values(shown)
    driver = f'driver="{DRIVER}"'
    of_node = f'node="{NODE}",{driver}'
    assert status == 200
    assert found[f'portico_dra_requests_total{{{driver},operation="NodePrepareResources"}}'] == 3
    assert found[f'portico_dra_node_prepare_errors_total{{{driver},error_type="MpsError"}}'] == 1
    assert found[f'portico_dra_prepared_devices{{{of_node},device_type="MIG"}}'] == 1
    assert found[f"portico_dra_published_slices{{{of_node}}}"] == 9
    assert A.encode() not in shown

    assert node.unprepare(done) == {A: ""}
    after = values(get(port, "/metrics")[1])
    assert f'portico_dra_prepared_devices{{{of_node},device_type="MIG"}}' not in after
    assert after[f'portico_dra_requests_total{{{driver},operation="NodeUnprepareResources"}}'] == 1


def test_health_needs_the_kubelet_the_sockets_and_the_checkpoint(watched: DriverNode, port: int) -> None:
    node = watched
    status, shown = get(port, "/healthz")
    assert (status, shown.decode().splitlines()[0]) == (
        503, "[-]registration failed: the kubelet has not registered this driver yet"
    )  # fmt: skip
    register(node)
    assert get(port, "/healthz") == (
        200, b"[+]registration ok\n[+]registration-socket ok\n[+]dra-socket ok\n[+]checkpoint ok\n"
    )  # fmt: skip

    whole = (node.plugin_dir / "checkpoint.json").read_bytes()
    (node.plugin_dir / "checkpoint.json").write_bytes(b"{broken")
    status, shown = get(port, "/healthz")
    assert status == 503
    assert f"[-]checkpoint failed: {node.plugin_dir}/checkpoint.json is not a checkpoint" in shown.decode()
    assert get(port, "/metrics")[0] == 200
    (node.plugin_dir / "checkpoint.json").write_bytes(whole)

    (node.plugin_dir / "dra.sock").rename(node.plugin_dir / "gone.sock")
    assert f"[-]dra-socket failed: {node.plugin_dir}/dra.sock does not answer (UNAVAILABLE)" in (
        get(port, "/healthz")[1].decode()
    )
    (node.plugin_dir / "gone.sock").rename(node.plugin_dir / "dra.sock")
    assert get(port, "/healthz")[0] == 200
    assert get(port, "/debug") == (404, b"there are /metrics and /healthz\n")
    for line in node.log("driver").splitlines():
        json.loads(line)


def test_the_supervisor_tells_how_its_daemons_are(driver_node: DriverNode, port: int) -> None:
    node = driver_node
    node.terminate("mpsd")
    node.start("mpsd", "--http-port", str(port))
    assert get(port, "/healthz") == (200, b"[+]socket ok\n")
    named = f'portico_dra_mpsd_daemons{{node="{NODE}",driver="{DRIVER}",state="%s"}}'
    assert values(get(port, "/metrics")[1]) == {named % "ready": 0, named % "fault": 0, named % "down": 0}

    claim = node.allocate(allocated(given("gpu-0", 25), uid=A))
    assert not node.prepare(claim)[A].error
    assert values(get(port, "/metrics")[1])[named % "ready"] == 1
    (node.tree.driver / "usr/bin/nvidia-cuda-mps-control").write_text("#!/bin/sh\nexit 3\n")
    os.kill(node.state.read().mps_daemons[0].pid, signal.SIGKILL)
    wait_until(lambda: values(get(port, "/metrics")[1])[named % "down"] == 1, "the daemon's end", 60)
    assert get(port, "/healthz")[0] == 200

    socket = node.plugin_dir / "mps" / "mpsd.sock"
    socket.rename(socket.with_name("gone.sock"))
    status, shown = get(port, "/healthz")
    assert (status, shown.decode().startswith("[-]socket failed: ")) == (503, True)
    assert get(port, "/metrics") == (200, b"")
    socket.with_name("gone.sock").rename(socket)


def test_a_port_that_is_taken_ends_the_start_with_a_sentence(watched: DriverNode, port: int) -> None:
    with short_folder() as folder:
        other = DriverNode(folder, watched.store)
        (folder / "kubeconfig").write_text((watched.folder / "kubeconfig").read_text())
        with pytest.raises(AssertionError, match="Address already in use"):
            other.start("driver", "--http-port", str(port))
        wait_until(lambda: "program could not go on" in other.log("driver"), "the sentence")
        assert other.await_end("driver") == 1
