"""Lag and clocks: what is measured of a watch, and what pages say of it. On a real API server: tests/cluster."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from dra.kube.watch import WatchEvent, parse_event
from gpuinventory.kinds import KINDS
from gpuinventory.models import ClusterObject
from gpuinventory.selectors import clock_ahead, clocks, freshness, kind_states
from gpuinventory.services import lease
from gpuinventory.services.ingest import ingest
from gpuinventory.services.lag import Measured
from portal.templatetags.portal_ui import moment
from tests.gpuinventory.fleet import claim, seen

SERVER = datetime(2026, 11, 30, 9, 0, 30, tzinfo=UTC)
BY_CLUSTER = "Ages of objects are reckoned by the cluster's clock."
BY_WORKER = "Times of the last word are the worker's."
OURS = SERVER + timedelta(minutes=10)  # our clock is wrong


def changed(second: int, kind: str = "MODIFIED") -> WatchEvent:
    metadata = {"name": "a", "managedFields": [{"time": f"2026-11-30T09:00:{second:02}Z"}]}
    return parse_event(json.dumps({"type": kind, "object": {"metadata": metadata}}).encode())


def test_lag_goes_by_the_clock_that_wrote_the_change() -> None:
    found = Measured().after([changed(20), changed(28)], SERVER, OURS)
    assert found == Measured(changed_at=SERVER - timedelta(seconds=2), lag=2.0, clock_ahead=-600.0)


def test_a_change_that_tells_of_an_earlier_write_only_says_nothing() -> None:
    """As a pod's binding, which leaves no trace in its managed fields: it would look minutes late."""
    before = Measured(changed_at=SERVER - timedelta(seconds=10), lag=0.4, clock_ahead=0.0)
    assert before.after([changed(20), changed(3)], SERVER, SERVER) == before
    assert before.after([changed(25, "DELETED")], SERVER, SERVER) == before


def test_without_the_server_s_time_lag_is_not_known_and_what_was_known_of_clocks_stays() -> None:
    before = Measured(changed_at=None, lag=None, clock_ahead=7.0)
    assert before.after([changed(20)], None, OURS) == Measured(
        changed_at=SERVER - timedelta(seconds=10), lag=None, clock_ahead=7.0
    )


def test_a_change_from_the_future_has_no_negative_lag() -> None:
    """Two API servers whose clocks differ."""
    assert Measured().after([changed(45)], SERVER, SERVER).lag == 0.0


def heard(ahead: float | None, *, worker: timedelta = timedelta(0), lag: float | None = None) -> None:
    """Every kind was heard of just now, by a worker whose clock is so far ahead of ours."""
    now = timezone.now() + worker
    measured = Measured(changed_at=now if lag is not None else None, lag=lag, clock_ahead=ahead)
    for kind in KINDS:
        lease.take(kind, "test", now)
        lease.keep(kind, "test", now, "1", measured)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("lag", "words"), [(None, "no change seen yet"), (0.3, "under 2 s"), (2.5, "2 s"), (130.0, "2 min")]
)
def test_the_lag_of_a_kind_in_words(lag: float | None, words: str) -> None:
    heard(0.0, lag=lag)
    assert {state.lag_length for state in kind_states()} == {words}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("ahead", "worker", "sentences"),
    [
        (None, 0, []),
        (1.5, 0, []),
        (-1.9, -500, []),  # a worker that is behind can't be told from one that was silent
        (600.5, 0, [f"The cluster's clock is 10 min ahead of the worker's. {BY_CLUSTER}"]),
        (-90.0, 0, [f"The cluster's clock is 1 min behind the worker's. {BY_CLUSTER}"]),
        (0.0, 7200.5, [f"The worker's clock is 2 h ahead of this web server's. {BY_WORKER}"]),
    ],
)  # fmt: skip
def test_clocks_that_differ_are_told(ahead: float | None, worker: float, sentences: list[str]) -> None:
    heard(ahead, worker=timedelta(seconds=worker))
    assert list(clocks().sentences) == sentences


@pytest.mark.django_db
def test_nobody_is_heard_from_in_the_future() -> None:
    heard(0.0, worker=timedelta(hours=1))
    assert (freshness().age, freshness().word) == (timedelta(0), "live")
    assert {(state.age, state.word, state.length) for state in kind_states()} == {(timedelta(0), "live", "0 s")}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("ahead", "age"), [(None, "1 h"), (0.0, "1 h"), (1.9, "1 h"), (3600.0, "2 h"), (-3599.0, "1 s")]
)
def test_ages_of_objects_go_by_the_cluster_s_clock(ahead: float | None, age: str, as_alice: Client) -> None:
    heard(ahead)
    written = (timezone.now() - timedelta(hours=1, seconds=0.2)).isoformat()
    ingest("ResourceClaim", seen([claim("ml-team", "c", creationTimestamp=written)]))
    assert f">{age} ago</time>" in moment(written, clock_ahead())
    assert f">{age} ago</time>" in as_alice.get("/claims/").content.decode()
    assert f">{age} ago</time>" in as_alice.get("/").content.decode()


@pytest.mark.django_db
def test_the_page_tells_age_and_lag_of_each_kind_and_keeps_telling(as_gus: Client) -> None:
    heard(600.5, lag=5.0)
    for answer in (
        as_gus.get("/sync/"),
        as_gus.get("/sync/", headers={"HX-Request": "true", "HX-Request-Type": "partial"}),
    ):
        page = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))
        assert "ResourceSlice live 0 s ago at" in page
        assert "5 s at the change of" in page
        assert "The cluster&#x27;s clock is 10 min ahead" in page
    assert not ClusterObject.objects.exists()
