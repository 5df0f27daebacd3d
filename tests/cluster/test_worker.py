"""A real Celery worker with a real Redis fills the read model, goes on by itself, and stops warm."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connection

from gpuinventory.kinds import CAPABILITIES, KINDS
from gpuinventory.models import ClusterObject, StreamCursor
from gpuinventory.selectors import capabilities, freshness
from tests.cluster.chart import apply_roles
from tests.cluster.cluster import Cluster

ROOT = Path(__file__).parents[2]
CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"


def database_url() -> str:
    """The database of this test, as another process names it."""
    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{settings['NAME']}"
    return f"postgres://{settings['USER']}@{settings['HOST']}:{settings['PORT']}/{settings['NAME']}"


@contextmanager
def running_worker(redis: str, kubeconfig: Path, log: Path, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "portal.settings",
        "PORTICO_DATABASE_URL": database_url(),
        "PORTICO_BROKER_URL": redis,
        "PORTICO_KUBECONFIG": str(kubeconfig),
        "PORTICO_PROBE_NAMESPACE": "portico-system",
        "PORTICO_SWEEP_SECONDS": "1",
        "PORTICO_WATCH_SECONDS": "30",
        **settings,
    }
    command = [sys.executable, "-m", "celery", "-A", "portal", "worker", "-P", "threads", "-c", "20"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_until(condition: Callable[[], bool], log: Path, seconds: float) -> float:
    """Seconds until it held; the end of the worker's log if it never did."""
    started = time.monotonic()
    while time.monotonic() - started < seconds:
        if condition():
            return time.monotonic() - started
        time.sleep(0.05)
    pytest.fail(f"not within {seconds} s:\n{log.read_text(errors='replace')[-3000:]}")


@pytest.fixture
def kubeconfig(cluster: Cluster) -> Path:
    """That of the worker's ServiceAccount, with the rights of the chart."""
    teams = {"ml-team": ["ml-team"]}
    accounts = apply_roles(
        cluster, namespace="portico-system", teams=teams, driver_name="gpu.portico.dev", prefix="portico:"
    )
    return cluster.service_account_kubeconfig(accounts.namespace, accounts.worker)


@pytest.mark.django_db(transaction=True)
def test_a_worker_follows_the_cluster_and_stops_warm(
    cluster: Cluster, kubeconfig: Path, redis: str, tmp_path: Path
) -> None:
    name, log = f"worker-{uuid.uuid4().hex[:8]}", tmp_path / "log"
    device_class = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}}

    def known() -> bool:
        return ClusterObject.objects.filter(kind="DeviceClass", name=name).exists()

    with running_worker(redis, kubeconfig, log) as process:
        wait_until(lambda: not freshness().silent, log, 40)
        wait_until(lambda: capabilities().is_known, log, 10)
        assert set(StreamCursor.objects.values_list("kind", flat=True)) == {*KINDS, CAPABILITIES}
        assert {gate.state for gate in capabilities().gates} == {"on", "off"}

        cluster.call("POST", CLASSES, device_class)
        wait_until(known, log, 5)
        cluster.call("DELETE", f"{CLASSES}/{name}")
        wait_until(lambda: not known(), log, 5)

        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0
    assert set(StreamCursor.objects.values_list("lease_holder", flat=True)) == {""}
    assert "" not in StreamCursor.objects.filter(served=True, kind__in=KINDS).values_list("resource_version", flat=True)


@pytest.mark.django_db(transaction=True)
def test_a_single_worker_needs_no_broker(kubeconfig: Path, tmp_path: Path) -> None:
    """With `memory://` its own timer nudges its own streams."""
    log = tmp_path / "log"
    with running_worker("memory://", kubeconfig, log) as process:
        wait_until(lambda: not freshness().silent, log, 40)
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0
