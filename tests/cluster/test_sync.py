"""The read model against a real API server, with the rights that the chart gives to the worker."""

from __future__ import annotations

import dataclasses
import json
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from dra.kube.client import KubeClient
from gpuinventory.models import AllocatedDevice, ClusterObject, Device, Pool, StreamCursor
from gpuinventory.selectors import clock_ahead, clocks, kind_states, revision
from gpuinventory.services import lease
from gpuinventory.services.stream import Stream, list_by_pages, run_stream
from tests.cluster.chart import apply_roles
from tests.cluster.cluster import Cluster
from tests.gpuinventory.fleet import DRIVER, slices_of

pytestmark = pytest.mark.django_db
API = "/apis/resource.k8s.io/v1"
SLICES = f"{API}/resourceslices"


@pytest.fixture(scope="module")
def worker(cluster: Cluster) -> Path:
    """The kubeconfig of the worker's ServiceAccount."""
    accounts = apply_roles(
        cluster, namespace="portico-system", teams={"ml-team": ["ml-team"]}, driver_name=DRIVER, prefix="portico:"
    )
    return cluster.service_account_kubeconfig(accounts.namespace, accounts.worker)


@pytest.fixture
def node_name(cluster: Cluster) -> Iterator[str]:
    """A name of a node that no other test uses; its slices are gone after the test."""
    name = f"sync-{uuid.uuid4().hex[:8]}"
    yield name
    cluster.call("DELETE", f"{SLICES}?fieldSelector=spec.nodeName%3D{name}")


@pytest.fixture
def run(worker: Path) -> Callable[..., bool]:
    """Run the stream of a kind once."""

    def once(kind: str = "ResourceSlice", *, stopping: Callable[[], bool] = lambda: False) -> bool:
        return run_stream(stream(worker, kind, stopping=stopping))

    return once


def stream(
    kubeconfig: Path, kind: str, *, holder: str = "test", stopping: Callable[[], bool] = lambda: False
) -> Stream:
    def connect() -> KubeClient:
        return KubeClient.from_environment(str(kubeconfig))

    def clock() -> datetime:
        return timezone.now()

    return Stream(kind=kind, holder=holder, connect=connect, clock=clock, seconds=2, stopping=stopping)


def publish(cluster: Cluster, node: str, *, cards: int = 2) -> list[str]:
    """Create the slices of a node; their names."""
    names = []
    for body in slices_of(node, cards=cards):
        content: dict[str, Any] = json.loads(body)
        content["metadata"] = {"name": content["metadata"]["name"]}  # no owner: there is no such Node to go with
        names.append(cluster.call("POST", SLICES, content)["metadata"]["name"])
    return names


def devices_of(node: str) -> dict[str, str]:
    return dict(Device.objects.filter(pool__name=node).values_list("name", "state"))


def test_a_first_run_lists_and_the_next_ones_follow(cluster: Cluster, node_name: str, run: Callable[..., bool]) -> None:
    names = publish(cluster, node_name)
    assert run() is True
    assert Pool.objects.get(name=node_name).state == "complete"
    assert devices_of(node_name)["gpu-0"] == "free"
    cluster.call("DELETE", f"{SLICES}/{names[-1]}")
    assert run() is True
    assert (Pool.objects.get(name=node_name).reason, devices_of(node_name)["gpu-0"]) == (
        "2 of 3 slices of generation 1 seen",
        "unknown",
    )
    cluster.call("DELETE", f"{SLICES}?fieldSelector=spec.nodeName%3D{node_name}")
    assert run() is True
    assert devices_of(node_name) == {}


def test_bytes_are_kept_as_they_came(cluster: Cluster, node_name: str, run: Callable[..., bool]) -> None:
    (name, *_) = publish(cluster, node_name)
    run()
    stored = ClusterObject.objects.get(kind="ResourceSlice", name=name)
    assert json.loads(bytes(stored.body)) == cluster.call("GET", f"{SLICES}/{name}")


def test_a_run_without_news_writes_no_row_but_is_a_word_from_the_cluster(
    cluster: Cluster, node_name: str, run: Callable[..., bool]
) -> None:
    publish(cluster, node_name)
    run()
    before, cursor = revision(), StreamCursor.objects.get(kind="ResourceSlice")
    run()
    after = StreamCursor.objects.get(kind="ResourceSlice")
    assert revision() == before
    assert after.synced_at and cursor.synced_at and after.synced_at > cursor.synced_at  # noqa: PT018 - types, then time


def test_a_version_that_is_too_old_asks_for_a_new_list(
    cluster: Cluster, node_name: str, run: Callable[..., bool]
) -> None:
    """A server that was started anew remembers no event from before: it answers 410 to a version of then."""
    names = publish(cluster, node_name)
    run()
    StreamCursor.objects.update(resource_version="1")
    cluster.call("DELETE", f"{SLICES}/{names[-1]}")
    cluster.stop_program("kube-apiserver")
    assert run() is False
    assert StreamCursor.objects.get(kind="ResourceSlice").last_error.startswith("no answer from https://127.0.0.1:")
    assert Pool.objects.get(name=node_name).state == "complete"
    cluster.start_program("kube-apiserver")
    assert run() is True
    assert StreamCursor.objects.get(kind="ResourceSlice").resource_version == ""
    assert run() is True
    assert Pool.objects.get(name=node_name).state == "incomplete"


def test_a_new_list_writes_only_the_difference(cluster: Cluster, node_name: str, run: Callable[..., bool]) -> None:
    names = publish(cluster, node_name)
    run()
    before = revision()
    StreamCursor.objects.update(resource_version="")
    run()
    assert revision() == before
    cluster.call("DELETE", f"{SLICES}/{names[-1]}")
    StreamCursor.objects.update(resource_version="")
    run()
    assert not ClusterObject.objects.filter(name=names[-1]).exists()
    assert revision() > before


def test_pages_end_in_the_same_rows_as_initial_events(cluster: Cluster, node_name: str, worker: Path) -> None:
    publish(cluster, node_name)
    by_events, by_pages = stream(worker, "ResourceSlice"), stream(worker, "ResourceSlice")
    assert run_stream(by_events)
    rows = sorted(ClusterObject.objects.values_list("name", "resource_version"))
    ClusterObject.objects.all().delete()
    Pool.objects.all().delete()
    lease.take("ResourceSlice", by_pages.holder, by_pages.clock())
    list_by_pages(by_pages, by_pages.connect())
    assert sorted(ClusterObject.objects.values_list("name", "resource_version")) == rows
    assert devices_of(node_name)["gpu-0"] == "free"
    version = StreamCursor.objects.get(kind="ResourceSlice").resource_version
    assert version
    assert run_stream(stream(worker, "ResourceSlice", holder="test")) is False  # the lease of the pages is still held


def test_a_claim_with_its_allocation(cluster: Cluster, node_name: str, run: Callable[..., bool]) -> None:
    publish(cluster, node_name)
    run()
    claims = f"{API}/namespaces/ml-team/resourceclaims"
    name = f"claim-{node_name}"
    made = cluster.call("POST", claims, claim_of(name))
    run("ResourceClaim")
    made["status"] = {"allocation": {"devices": {"results": [given(node_name)]}}}
    cluster.call("PUT", f"{claims}/{name}/status", made)
    run("ResourceClaim")
    assert devices_of(node_name)["gpu-0"] == "partly"
    row = AllocatedDevice.objects.get(claim_name=name)
    assert (row.device, row.consumed["sharePercent"]) == ("gpu-0", "25")
    cluster.call("DELETE", f"{claims}/{name}")
    run("ResourceClaim")
    assert devices_of(node_name)["gpu-0"] == "free"


def claim_of(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "any"}}]}},
    }


def given(node: str) -> dict[str, Any]:
    return {
        "request": "gpu",
        "driver": DRIVER,
        "pool": node,
        "device": "gpu-0",
        "shareID": str(uuid.uuid4()),
        "consumedCapacity": {"sharePercent": "25", "memory": "0"},
    }


def test_a_stream_that_is_told_to_stop_leaves_its_cursor_and_no_successor(
    cluster: Cluster, node_name: str, run: Callable[..., bool]
) -> None:
    publish(cluster, node_name)
    run()
    assert run(stopping=lambda: True) is False
    cursor = StreamCursor.objects.get(kind="ResourceSlice")
    assert (bool(cursor.resource_version), cursor.lease_holder) == (True, "")


def test_rights_that_lack_are_told_in_the_server_s_own_words(cluster: Cluster) -> None:
    kubeconfig = cluster.user_kubeconfig("portico:nobody")
    assert run_stream(stream(kubeconfig, "ResourceSlice")) is False
    error = StreamCursor.objects.get(kind="ResourceSlice").last_error
    assert 'User "portico:nobody" cannot' in error
    assert 'resource "resourceslices"' in error


def test_a_kind_that_is_not_served_is_a_state_and_is_looked_at_again(run: Callable[..., bool]) -> None:
    """No CRD for it is installed here."""
    assert run("PhysicalGPU") is False
    cursor = StreamCursor.objects.get(kind="PhysicalGPU")
    assert (cursor.served, cursor.last_error, cursor.failures, cursor.lease_holder) == (False, "", 0, "")
    assert cursor.synced_at and cursor.due_at and cursor.due_at > cursor.synced_at  # noqa: PT018 - types, then time
    (state,) = (each for each in kind_states() if each.kind == "PhysicalGPU")
    assert (state.word, state.error) == ("not served", "")


def test_lag_and_clocks_are_told_by_the_cluster_s_clock_whatever_ours_shows(
    cluster: Cluster, node_name: str, worker: Path
) -> None:
    """The worker's clock is ten minutes fast."""
    fast = dataclasses.replace(
        stream(worker, "ResourceSlice"), clock=lambda: timezone.now() + timedelta(minutes=10), seconds=3
    )
    assert run_stream(fast)
    cursor = StreamCursor.objects.get(kind="ResourceSlice")
    assert (cursor.lag, cursor.changed_at) == (None, None)  # a list is no change
    late = threading.Timer(1.0, publish, (cluster, node_name))
    late.start()
    assert run_stream(fast)
    late.join()
    cursor = StreamCursor.objects.get(kind="ResourceSlice")
    assert cursor.lag is not None
    assert 0 <= cursor.lag < 3
    assert cursor.changed_at is not None
    assert abs((cursor.changed_at - timezone.now()).total_seconds()) < 10
    assert cursor.clock_ahead == pytest.approx(-600, abs=3)
    assert clock_ahead() == cursor.clock_ahead
    (state,) = (each for each in kind_states() if each.kind == "ResourceSlice")
    assert (state.age, state.word) == (timedelta(0), "live")  # never heard from in the future
    told = [re.sub(r"\d+ min", "N min", sentence.split(".")[0]) for sentence in clocks().sentences]
    assert told == [
        "The cluster's clock is N min behind the worker's",
        "The worker's clock is N min ahead of this web server's",
    ]


def test_a_resumed_stream_tells_how_late_it_was(cluster: Cluster, node_name: str, worker: Path) -> None:
    assert run_stream(stream(worker, "ResourceSlice"))
    publish(cluster, node_name)
    time.sleep(4)
    assert run_stream(stream(worker, "ResourceSlice"))
    lag = StreamCursor.objects.get(kind="ResourceSlice").lag
    assert lag is not None
    assert 3 <= lag < 20


@pytest.mark.parametrize(
    "kind", ["DeviceTaintRule", "Node", "Pod", "ResourceQuota", "Namespace", "PriorityClass", "Event"]
)
def test_every_kind_that_kubernetes_has_is_listed_with_the_worker_s_rights(kind: str, run: Callable[..., bool]) -> None:
    assert run(kind) is True
    cursor = StreamCursor.objects.get(kind=kind)
    assert (cursor.served, bool(cursor.resource_version), cursor.last_error) == (True, True, "")
