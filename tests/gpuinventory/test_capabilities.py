"""What follows from a look at the cluster. Looks at real API servers: tests/cluster/test_capabilities.py."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from dra.features import Features
from dra.kube.client import KubeClient
from gpuinventory.capabilities import NOT_SEEN, Capabilities, Gate
from gpuinventory.services.capabilities import detect

NOW = datetime(2026, 11, 30, 9, tzinfo=UTC)


def seen(*gates: Gate, minor: int = 37) -> Capabilities:
    return Capabilities(version="v", minor=minor, served={"v1": ()}, gates=gates, checked_at=NOW)


def test_where_nobody_looked_nothing_lacks_and_the_engine_judges_as_the_newest_release() -> None:
    assert NOT_SEEN.features == Features.of_release("1.37")
    assert (NOT_SEEN.lacks("DRAConsumableCapacity"), NOT_SEEN.has_dra, NOT_SEEN.is_known) == ("", True, False)


@pytest.mark.parametrize(
    ("minor", "partitions", "taint_rules"), [(40, True, True), (37, True, True), (36, True, False), (35, False, False)]
)
def test_what_was_not_seen_is_as_the_release_has_it(minor: int, partitions: bool, taint_rules: bool) -> None:  # noqa: FBT001
    features = seen(minor=minor).features
    assert (features.partitionable_devices, features.device_taint_rules) == (partitions, taint_rules)
    assert features.prioritized_list


def test_what_was_seen_goes_before_the_release() -> None:
    gates = (
        Gate(name="DRAPartitionableDevices", state="off", evidence="it drops spec.sharedCounters"),
        Gate(name="DRAListTypeAttributes", state="on", evidence="it keeps strings"),
        Gate(name="DRADeviceTaints", state="unknown", evidence="forbidden"),
        Gate(name="DRAExtendedResource", state="off", evidence="it drops spec.extendedResourceName"),
    )
    found = seen(*gates)
    assert found.features == Features(partitionable_devices=False, list_type_attributes=True)
    assert found.lacks("DRADeviceTaints") == ""
    assert found.lacks("DRAExtendedResource") == (
        "This cluster has no extended resources that are served by device classes: the API server has feature gate "
        "DRAExtendedResource off (it drops spec.extendedResourceName)."
    )


@pytest.fixture
def old_server(tmp_path: Path) -> Iterator[str]:
    """A server that knows its version and nothing of devices, as Kubernetes 1.30 without DRA."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/version":
                self._say(200, {"major": "1", "minor": "30+", "gitVersion": "v1.30.4-gke.1"})
            else:
                self._say(404, {"kind": "Status", "code": 404, "reason": "NotFound", "message": "not found"})

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self._say(404, {"kind": "Status", "code": 404, "reason": "NotFound", "message": "could not find it"})

        def _say(self, code: int, content: dict[str, object]) -> None:
            body = json.dumps(content).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's word
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    config = {"apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [cluster]}
    path = tmp_path / "config"
    path.write_text(json.dumps(config | {"users": [{"name": "u", "user": {}}], "contexts": [context]}))
    yield str(path)
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_server_without_dra_is_told_apart(old_server: str) -> None:
    found = detect(KubeClient.from_environment(old_server), "default", NOW)
    assert (found.version, found.minor, found.served, found.has_dra) == ("v1.30.4-gke.1", 30, {}, False)
    assert found.state("DRAPartitionableDevices") == "unknown"
    assert found.lacks("DRADeviceTaintRules").endswith("(no devicetaintrules served).")
    assert not found.features.partitionable_devices
