"""What our node side takes while nothing happens, and how soon it acts: memory, processor time, start, a card's error.

Eight H100 of stand-in silicon on a real node, with all their devices published. The start is set beside that of a Go
driver on Kubernetes' own helper, which publishes the same slices. PORTICO_BENCH_STARTS and _SECONDS make it smaller.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import rig
from benchmarks.report import Report
from benchmarks.rig import OURS, PEER, Rig
from dra.kube import requests
from dra.kube.client import KubeClient
from dra.kube.requests import RESOURCE_SLICES
from nodedriver.mps import MpsClient
from nodedriver.ports import MpsDaemonSpec, MpsError
from simulator.silicon.tree import Tree
from tests.cluster.driver import CHECKOUT
from tests.cluster.processes import Program
from tests.cluster.waiting import wait_until

STARTS = rig.count("STARTS", 10)
SECONDS = rig.count("SECONDS", 60)
SETTLE_SECONDS = 20.0
DRIVER_MB = 75.0
SUPERVISOR_MB = 40.0
IDLE_PERCENT = 0.5  # of one core
LATER_SECONDS = 0.5  # than the peer
TAINT_SECONDS = 1.0
DAEMONS = 2
POLL = 0.01
XID = 119  # GSP timeout: the card has to be reset
REGISTERED = "driver registered with the kubelet"


def run(report: Report) -> None:
    """Each figure in turn; the start last, since it ends the driver."""
    with rig.started() as bench:
        report.value("machine busy before the first figure", 100 * rig.wait_for_quiet(), "%")
        slices = bench.driver.slices()
        report.value("published devices", sum(len(each["spec"].get("devices", ())) for each in slices), "")
        _idle(report, bench)
        _supervisor(report, bench.driver.tree)
        _taint(report, bench)
        _starts(report, bench, slices)


def _idle(report: Report, bench: Rig) -> None:
    """Memory and processor time of a driver at rest, which was called before."""
    ours, peer = bench.sides
    time.sleep(SETTLE_SECONDS)
    report.value("resident memory of the driver", rig.resident_mb(ours.program.pid), "MB", DRIVER_MB)
    report.value("resident memory of the peer", rig.resident_mb(peer.program.pid), "MB")
    before = [side.cpu_seconds() for side in bench.sides]
    time.sleep(SECONDS)
    used = [side.cpu_seconds() - then for side, then in zip(bench.sides, before, strict=True)]
    report.value("idle driver, of one core", 100 * used[0] / SECONDS, "%", IDLE_PERCENT)
    report.value("idle peer, of one core", 100 * used[1] / SECONDS, "%")


def _supervisor(report: Report, tree: Tree) -> None:
    """The supervisor's program as it is on a node, with daemons that do nothing."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, _mpsd(Path(folder), tree) as process:
        client = MpsClient(Path(folder) / "mps" / "mpsd.sock")
        wait_until(lambda: _answers(client), "the supervisor's answer")
        for gpu in json.loads(tree.state.read_bytes())["gpus"][:DAEMONS]:
            client.ensure(MpsDaemonSpec(device=gpu["uuid"], thread_percentage=50, memory_limit=None))
        time.sleep(min(SETTLE_SECONDS, SECONDS))
        report.value("resident memory of the supervisor", rig.resident_mb(process.pid), "MB", SUPERVISOR_MB)
        before = rig.cpu_seconds(process.pid)
        time.sleep(SECONDS)
        used = rig.cpu_seconds(process.pid) - before
        report.value("idle supervisor with its daemons up, of one core", 100 * used / SECONDS, "%", IDLE_PERCENT)


def _answers(client: MpsClient) -> bool:
    try:
        client.list()
    except MpsError:
        return False
    return True


@contextmanager
def _mpsd(folder: Path, tree: Tree) -> Iterator[subprocess.Popen[bytes]]:
    flags = ["--node-name", "bench", "--plugin-dir", str(folder), "--driver-root", str(tree.driver)]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    command = [sys.executable, "-m", "nodedriver.mpsd", *flags]
    with subprocess.Popen(command, env=environment, cwd=CHECKOUT, stdout=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.terminate()


def _taint(report: Report, bench: Rig) -> None:
    """From an error of a card to the taint in the API server."""
    cluster = KubeClient.of_node(str(bench.node.cluster.kubeconfig()))
    card = bench.driver.state.read().gpus[7].pci_address
    began = time.monotonic()
    bench.driver.state.happen(card, xid=XID, recovery_action=1)
    took = _until(lambda: f'"{OURS}/xid"'.encode() in _slices(cluster, bench, OURS), began)
    report.value("from a card's error to its taint in the API server", took, "s", TAINT_SECONDS)


def _starts(report: Report, bench: Rig, slices: list[dict[str, Any]]) -> None:
    """From the start of the process to registered with the kubelet and all slices published, in turns."""
    content = [{key: each["spec"].get(key) or [] for key in ("devices", "sharedCounters")} for each in slices]
    bench.sides[1].program.stop()
    bench.driver.end("driver")
    seconds: dict[str, list[float]] = {OURS: [], PEER: []}
    for number in range(STARTS):
        for driver in (OURS, PEER) if number % 2 else (PEER, OURS):
            seconds[driver].append(_start(bench, driver, content))
    ours, peer = (statistics.median(seconds[driver]) for driver in (OURS, PEER))
    report.value("start to registered and published, ours, median", ours, "s", peer + LATER_SECONDS)
    report.value("start to registered and published, peer, median", peer, "s")


def _start(bench: Rig, driver: str, content: list[dict[str, Any]]) -> float:
    cluster = KubeClient.of_node(str(bench.node.cluster.kubeconfig()))
    bench.node.cluster.call("DELETE", _collection(bench, driver))
    began = time.monotonic()
    program = bench.driver.launch("driver") if driver == OURS else rig.launch_peer(bench.node, content)

    def ready() -> bool:
        published = _slices(cluster, bench, driver).count(b'"apiVersion":"resource.k8s.io/v1"') > len(content)
        return published and _registered(program)

    try:
        return _until(ready, began)
    finally:
        if driver == OURS:
            bench.driver.end("driver")
        else:
            program.stop()


def _registered(program: Program) -> bool:
    return REGISTERED in program.log.read_text()


def _until(happened: Callable[[], bool], began: float) -> float:
    wait_until(happened, "what is timed", seconds=60, pause=POLL)
    return time.monotonic() - began


def _collection(bench: Rig, driver: str) -> str:
    selector = f"spec.driver%3D{driver}%2Cspec.nodeName%3D{bench.node.name}"
    return f"/apis/resource.k8s.io/v1/resourceslices?fieldSelector={selector}"


def _slices(cluster: KubeClient, bench: Rig, driver: str) -> bytes:
    selector = f"spec.driver={driver},spec.nodeName={bench.node.name}"
    return cluster.send(requests.list_page(RESOURCE_SLICES, field_selector=selector))
