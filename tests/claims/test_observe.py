"""What the read model says about requests, and what it may not say."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from claims import tasks
from claims.lifecycle import State
from claims.models import GpuRequest, GpuRequestEvent, Verb
from claims.services import advance, observe
from portal.models import Team, User
from tests.claims.rows import KEY, gpu_request, put, template
from tests.gpuinventory.fleet import claim

LATER = timedelta(minutes=2)


def state(row: GpuRequest) -> str:
    row.refresh_from_db()
    return row.state


def test_a_created_template_that_the_read_model_has_is_seen_once(alice: User, ml_team: Team) -> None:
    row = gpu_request(alice, ml_team, state=State.CREATED)
    put("ResourceClaimTemplate", template("ml-team", "trainer"))
    observe.observe()
    observe.observe()
    assert state(row) == State.SEEN
    assert [(event.verb, event.result, event.username) for event in row.events.all()] == [("observe", "seen", "")]


def test_a_claim_that_pods_share_is_seen_as_a_template_is(alice: User, ml_team: Team) -> None:
    row = gpu_request(alice, ml_team, state=State.CREATED)
    GpuRequest.objects.update(query=f"{row.query}&claim=shared", template_uid="uid-of-the-claim")
    observe.observe()
    assert state(row) == State.CREATED
    put("ResourceClaim", claim("ml-team", "trainer", uid="uid-of-the-claim"))
    observe.observe()
    assert state(row) == State.SEEN
    assert advance.due(timezone.now()) == []


def test_another_template_of_the_same_name_is_not_it(alice: User, ml_team: Team) -> None:
    row = gpu_request(alice, ml_team, state=State.CREATED)
    row.template_uid = "another"
    row.save()
    put("ResourceClaimTemplate", template("ml-team", "trainer"))
    observe.observe()
    assert state(row) == State.CREATED


def test_absence_from_the_read_model_is_no_verdict(alice: User, ml_team: Team) -> None:
    rows = [gpu_request(alice, ml_team, name, state=now, key=f"{KEY}{name}") for name, now in
            (("a", State.CREATED), ("b", State.SEEN))]  # fmt: skip
    observe.observe()
    assert [state(row) for row in rows] == [State.CREATED, State.SEEN]


def test_due_are_those_whose_outcome_is_not_known(alice: User, ml_team: Team) -> None:
    rows = {now: gpu_request(alice, ml_team, now.replace(" ", "-"), state=now, key=f"{KEY}{now[:3]}") for now in State}
    put("ResourceClaimTemplate", template("ml-team", "created"))
    now = timezone.now()
    assert advance.due(now) == [rows[State.SEEN].pk]
    put("ResourceClaimTemplate", template("ml-team", "seen"))
    assert advance.due(now) == []
    assert set(advance.due(now + LATER)) == {rows[State.SUBMITTING].pk, rows[State.CREATED].pk}


def test_an_audit_line_is_written_once(alice: User, ml_team: Team) -> None:
    event = GpuRequestEvent.objects.create(
        gpu_request=gpu_request(alice, ml_team), username="alice", namespace="ml-team", name="x", verb=Verb.SUBMIT
    )
    with pytest.raises(TypeError, match="not changed"):
        event.save()
    with pytest.raises(TypeError, match="not deleted"):
        event.delete()


def test_the_database_knows_no_other_state_and_no_second_row_for_a_template(alice: User, ml_team: Team) -> None:
    row = gpu_request(alice, ml_team)
    with pytest.raises(IntegrityError), transaction.atomic():
        GpuRequest.objects.filter(pk=row.pk).update(state="lost")
    other = gpu_request(alice, ml_team, "other", key=f"{KEY}2")
    with pytest.raises(IntegrityError), transaction.atomic():
        GpuRequest.objects.filter(pk=other.pk).update(template_uid=row.template_uid)
    with pytest.raises(IntegrityError), transaction.atomic():
        GpuRequest.objects.filter(pk=other.pk).update(key=row.key)


def test_a_cluster_that_does_not_say_leaves_the_row_as_it_is(alice: User, ml_team: Team, away: str) -> None:
    row = gpu_request(alice, ml_team, state=State.SUBMITTING)
    tasks.advance_gpu_request(row.pk)
    assert state(row) == State.SUBMITTING
    assert not row.events.exists()


def test_the_sweep_sees_what_the_read_model_has(alice: User, ml_team: Team) -> None:
    row = gpu_request(alice, ml_team, state=State.CREATED)
    put("ResourceClaimTemplate", template("ml-team", "trainer"))
    tasks.sweep()
    assert state(row) == State.SEEN
