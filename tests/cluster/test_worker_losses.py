"""What a real worker does when something that it needs goes away and comes back: itself, Redis, the API server.

A version that is too old (410), and a stream that is told to stop, are in test_sync.py; leases in tests/gpuinventory.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from gpuinventory.kinds import KINDS
from gpuinventory.models import ClusterObject, StreamCursor
from gpuinventory.selectors import capabilities, freshness
from tests.cluster.cluster import Cluster
from tests.cluster.test_worker import CLASSES, kubeconfig, running_worker, wait_until
from tests.services import free_port, running

__all__ = ["kubeconfig"]  # a fixture
pytestmark = pytest.mark.django_db(transaction=True)


FOLLOWED_HERE = len(KINDS) - 2  # at least: without CRDs two kinds are not served


@pytest.fixture
def make_class(cluster: Cluster) -> Iterator[Callable[[], str]]:
    """Makes a DeviceClass; all are gone after the test."""
    made = []

    def make() -> str:
        made.append(f"loss-{uuid.uuid4().hex[:8]}")
        cluster.call("POST", CLASSES, {"kind": "DeviceClass", "metadata": {"name": made[-1]}})
        return made[-1]

    yield make
    for name in made:
        cluster.raw("DELETE", f"{CLASSES}/{name}")


def known(name: str) -> bool:
    return ClusterObject.objects.filter(kind="DeviceClass", name=name).exists()


def in_step() -> bool:
    return not freshness().silent


def test_a_worker_that_was_killed_leaves_what_its_successor_goes_on_from(
    cluster: Cluster, kubeconfig: Path, make_class: Callable[[], str], tmp_path: Path
) -> None:
    before, log = make_class(), tmp_path / "first"
    with running_worker("memory://", kubeconfig, log) as process:
        wait_until(lambda: in_step() and known(before), log, 40)
        wait_until(lambda: StreamCursor.objects.exclude(lease_holder="").count() >= FOLLOWED_HERE, log, 20)
        process.kill()
        process.wait()
    versions = dict(StreamCursor.objects.filter(served=True, kind__in=KINDS).values_list("kind", "resource_version"))
    assert "" not in versions.values()
    cluster.call("DELETE", f"{CLASSES}/{before}")
    made = make_class()
    # The dead worker's leases run out by themselves, after a minute and a half.
    assert StreamCursor.objects.filter(lease_until__gt=timezone.now()).count() >= FOLLOWED_HERE
    StreamCursor.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    log = tmp_path / "second"
    with running_worker("memory://", kubeconfig, log):
        wait_until(lambda: known(made) and not known(before), log, 20)
    assert "kind listed" not in log.read_text(), "the successor went on from the cursor and listed nothing anew"


@contextmanager
def redis_at(port: int, folder: Path) -> Iterator[None]:
    arguments = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    folder.mkdir()
    with running(arguments, port, folder):
        yield


@pytest.mark.redis
def test_a_worker_outlives_its_redis(kubeconfig: Path, make_class: Callable[[], str], tmp_path: Path) -> None:
    """All nudges are lost with it: the sweep starts anew what nobody streams."""
    log, port = tmp_path / "log", free_port()
    with running_worker(f"redis://127.0.0.1:{port}/0", kubeconfig, log, PORTICO_WATCH_SECONDS="2") as process:
        with redis_at(port, tmp_path / "redis-1"):
            wait_until(in_step, log, 60)
        wait_until(lambda: not StreamCursor.objects.exclude(lease_holder="").exists(), log, 30)
        made = make_class()
        with redis_at(port, tmp_path / "redis-2"):
            wait_until(lambda: known(made), log, 60)
            assert process.poll() is None
            process.terminate()
            assert process.wait(20) == 0


def test_a_worker_tells_that_the_api_server_is_away_and_goes_on_when_it_is_back(
    cluster: Cluster, kubeconfig: Path, make_class: Callable[[], str], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with running_worker("memory://", kubeconfig, log):
        wait_until(lambda: in_step() and capabilities().is_known, log, 40)
        rows, seen = ClusterObject.objects.count(), capabilities().checked_at
        cluster.stop_program("kube-apiserver")
        try:
            wait_until(lambda: bool(freshness().error), log, 40)
            assert freshness().error.startswith(("no answer from https://127.0.0.1:", "the stream from "))
            assert ClusterObject.objects.count() >= rows  # nothing is forgotten
        finally:
            cluster.start_program("kube-apiserver")
        made = make_class()
        wait_until(lambda: known(made), log, 90)
        wait_until(lambda: capabilities().checked_at != seen, log, 60)  # it may have come back as another version
