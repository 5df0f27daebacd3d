"""The lease, and what a stream does where no cluster answers. Streams that meet a real API server: tests/cluster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dra.kube.client import KubeClient
from gpuinventory.kinds import KINDS
from gpuinventory.models import StreamCursor
from gpuinventory.selectors import freshness
from gpuinventory.services import lease
from gpuinventory.services.stream import Stream, run_stream
from tests.services import free_port

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
KIND = "ResourceSlice"


def stream(holder: str, *, now: datetime = NOW, kubeconfig: str = "") -> Stream:
    return Stream(
        kind=KIND,
        holder=holder,
        connect=lambda: KubeClient.from_environment(kubeconfig or None, timeout=2),
        clock=lambda: now,
        seconds=1,
        stopping=lambda: False,
    )


@pytest.fixture
def nowhere(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A kubeconfig of an API server that does not listen."""
    path = tmp_path_factory.mktemp("kube") / "config"
    path.write_text(
        f"""
apiVersion: v1
kind: Config
current-context: c
clusters: [{{name: c, cluster: {{server: "http://127.0.0.1:{free_port()}"}}}}]
users: [{{name: u, user: {{}}}}]
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
"""
    )
    return str(path)


def test_a_lease_is_one_s_own_until_it_is_released_or_runs_out() -> None:
    assert lease.take(KIND, "first", NOW)
    assert lease.take(KIND, "second", NOW) is None
    lease.release(KIND, "second")
    assert lease.take(KIND, "second", NOW) is None
    assert lease.take(KIND, "second", NOW + lease.LEASE + timedelta(seconds=1))
    with pytest.raises(lease.LeaseLostError):
        lease.keep(KIND, "first", NOW)
    lease.release(KIND, "second")
    assert lease.take(KIND, "third", NOW)


def test_only_what_nobody_streams_and_nothing_delays_is_due() -> None:
    assert lease.due_kinds(KINDS, NOW) == list(KINDS)
    lease.take("Node", "somebody", NOW)
    lease.take("DeviceClass", "somebody", NOW)
    lease.fail("DeviceClass", "somebody", NOW, "no answer")
    lease.release("DeviceClass", "somebody")
    assert set(KINDS) - set(lease.due_kinds(KINDS, NOW)) == {"Node", "DeviceClass"}
    assert set(KINDS) - set(lease.due_kinds(KINDS, NOW + timedelta(seconds=1))) == {"Node"}


def test_pauses_after_faults_double_up_to_a_minute() -> None:
    lease.take(KIND, "holder", NOW)
    pauses = []
    for _ in range(8):
        lease.fail(KIND, "holder", NOW, "no answer")
        due_at = StreamCursor.objects.get(kind=KIND).due_at
        assert due_at
        pauses.append(int((due_at - NOW).total_seconds()))
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]


def test_an_api_server_that_is_away_is_recorded_and_nothing_is_lost(nowhere: str) -> None:
    lease.take(KIND, "before", NOW)
    lease.keep(KIND, "before", NOW, "42")
    lease.release(KIND, "before")
    assert run_stream(stream("holder", now=NOW + timedelta(minutes=3), kubeconfig=nowhere)) is False
    cursor = StreamCursor.objects.get(kind=KIND)
    assert (cursor.resource_version, cursor.synced_at, cursor.failures) == ("42", NOW, 1)
    assert cursor.last_error.startswith("no answer from http://127.0.0.1:")
    assert cursor.lease_holder == ""


def test_without_any_configuration_the_fault_is_told_too() -> None:
    assert run_stream(stream("holder", kubeconfig="/nonexistent")) is False
    assert StreamCursor.objects.get(kind=KIND).last_error.startswith("no usable configuration for a cluster")


def test_a_doubled_nudge_changes_nothing(nowhere: str) -> None:
    lease.take(KIND, "first", NOW)
    assert run_stream(stream("second", kubeconfig=nowhere)) is False
    cursor = StreamCursor.objects.get(kind=KIND)
    assert (cursor.lease_holder, cursor.failures) == ("first", 0)


def test_freshness_is_that_of_the_oldest_kind() -> None:
    assert (freshness().word, freshness().silent) == ("reading 0/13", True)
    now = datetime.now(UTC)
    for age, kind in enumerate(KINDS):
        lease.take(kind, "holder", now)
        lease.keep(kind, "holder", now - timedelta(seconds=age))
    fresh = freshness()
    assert (fresh.word, fresh.silent, fresh.synced_at) == ("live", False, now - timedelta(seconds=len(KINDS) - 1))


def test_a_silent_cluster_is_told_with_its_time() -> None:
    then = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=7)
    for kind in KINDS:
        lease.take(kind, "holder", then)
        lease.keep(kind, "holder", then)
    fresh = freshness()
    assert fresh.silent
    assert fresh.sentence == (
        f"No word from the cluster since {then:%Y-%m-%d %H:%M:%S} UTC (7 min). Showing the last known state."
    )


def test_a_fault_is_told_at_once() -> None:
    now = datetime.now(UTC)
    for kind in KINDS:
        lease.take(kind, "holder", now)
        lease.keep(kind, "holder", now)
    lease.fail("Node", "holder", now, "nodes is forbidden")
    assert (freshness().silent, freshness().error) == (True, "nodes is forbidden")
