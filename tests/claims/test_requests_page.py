"""My requests, one request, and taking it back as far as that needs no cluster."""

from __future__ import annotations

from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from claims.lifecycle import State
from claims.models import GpuRequest
from portal.models import Membership, Team, User
from tests.claims.rows import KEY, QUERY, claims_from, gpu_request, put
from tests.gpuinventory.fleet import device

pytestmark = pytest.mark.usefixtures("fleet")
HTMX = {"HX-Request": "true", "HX-Request-Type": "partial"}


@pytest.fixture
def row(alice: User, ml_team: Team) -> GpuRequest:
    """What Alice asked for."""
    return gpu_request(alice, ml_team)


def html(client: Client, address: str, status: int = 200) -> str:
    answer = client.get(address)
    assert answer.status_code == status
    return unescape(answer.content.decode())


def test_my_requests_are_listed_with_what_can_be_done(as_alice: Client, row: GpuRequest) -> None:
    text = html(as_alice, "/requests/")
    assert f'href="/requests/{row.pk}/"' in text
    assert f'href="/requests/{row.pk}/template.yaml"' in text
    assert f'href="/request/?{QUERY}"' in text
    assert f'href="/requests/{row.pk}/withdraw/"' in text
    assert "Waiting for a pod" in text


def test_what_is_withdrawn_can_be_asked_for_again_and_not_deleted(as_alice: Client, row: GpuRequest) -> None:
    GpuRequest.objects.update(state=State.WITHDRAWN)
    text = html(as_alice, "/requests/")
    assert "Withdrawn" in text
    assert f'href="/request/?{QUERY}"' in text
    assert "/withdraw/" not in text


def test_others_do_not_see_it_among_theirs(as_bob: Client, as_charlie: Client, row: GpuRequest) -> None:
    for client in (as_bob, as_charlie):
        assert "You have asked for nothing yet" in html(client, "/requests/")


def test_someone_who_left_the_team_no_longer_sees_it(as_alice: Client, alice: User, row: GpuRequest) -> None:
    Membership.objects.filter(user=alice).delete()
    assert "trainer" not in html(as_alice, "/requests/")
    assert as_alice.get(f"/requests/{row.pk}/").status_code == 404


@pytest.mark.parametrize("state", State)
def test_every_state_has_its_page(as_alice: Client, row: GpuRequest, state: State) -> None:
    GpuRequest.objects.update(state=state)
    text = html(as_alice, f"/requests/{row.pk}/")
    assert ("Delete the template" in text) is (state in (State.CREATED, State.SEEN))
    polls = f'hx-get="/requests/{row.pk}/' in text
    assert polls is (state not in (State.WITHDRAWN, State.GONE, State.NOT_CREATED))


def test_a_teammate_sees_the_request_and_can_not_take_it_back(as_bob: Client, row: GpuRequest) -> None:
    text = html(as_bob, f"/requests/{row.pk}/")
    assert "Asked for by alice" in text
    assert "Delete the template" not in text
    refused = html(as_bob, f"/requests/{row.pk}/withdraw/", 403)
    assert "a request is taken back by the person who made it" in refused
    assert as_bob.post(f"/requests/{row.pk}/withdraw/").status_code == 403
    row.refresh_from_db()
    assert row.state == State.SEEN


@pytest.mark.parametrize("path", ["", "template.yaml", "withdraw/"])
def test_other_teams_operators_and_guests_do_not_learn_that_it_exists(
    as_charlie: Client, as_olga: Client, as_gus: Client, row: GpuRequest, path: str
) -> None:
    for client in (as_charlie, as_olga, as_gus):
        assert client.get(f"/requests/{row.pk}/{path}").status_code == 404
    assert as_charlie.post(f"/requests/{row.pk}/withdraw/").status_code == 404


def test_the_file_is_the_one_that_was_sent(as_alice: Client, row: GpuRequest) -> None:
    answer = as_alice.get(f"/requests/{row.pk}/template.yaml")
    assert answer.content == row.template.encode()
    assert answer["Content-Disposition"] == 'attachment; filename="trainer-template.yaml"'


def test_the_checklist_follows_the_claims(as_alice: Client, row: GpuRequest) -> None:
    address = f"/requests/{row.pk}/"
    assert "Start a pod that names it" in html(as_alice, address)
    put("ResourceClaim", *claims_from(KEY, "ml-team", ["trainer-1"]))
    assert "1 claim" in html(as_alice, address)
    given = [device("node-1", "gpu-0")]
    put("ResourceClaim", *claims_from(KEY, "ml-team", ["trainer-2"], devices=given, pods=["trainer"]))
    text = html(as_alice, address)
    assert "1 of 2 claims" in text
    assert "node-1/gpu-0" in text
    assert "Held by pod trainer." in text


def test_a_pod_that_waits_for_its_device_to_be_made_ready_is_told_so(as_alice: Client, row: GpuRequest) -> None:
    late = [device("node-1", "gpu-0") | {"bindingConditions": ["x/ready"], "bindingFailureConditions": ["x/failed"]}]
    put("ResourceClaim", *claims_from(KEY, "ml-team", ["trainer-1"], devices=late, pods=["trainer"]))
    text = html(as_alice, f"/requests/{row.pk}/")
    assert text.count("Being made ready") == 2
    assert "The device is being made ready for pod trainer, which can start then." in text
    assert "A device is being made ready; the claim below says what it waits for." in text
    assert "Being made ready" in html(as_alice, "/requests/")
    assert "Being made ready" in html(as_alice, "/").partition('id="waiting"')[2]


def test_a_claim_that_pods_share_has_a_checklist_and_a_command_of_its_own(as_alice: Client, row: GpuRequest) -> None:
    GpuRequest.objects.update(query=f"{row.query}&claim=shared")
    text = html(as_alice, f"/requests/{row.pk}/")
    assert "The claim exists" in text
    assert "A pod asks for it" not in text
    assert "All pods share 1 whole device of physical-gpu" in text
    assert "describe resourceclaim trainer" in text
    put(
        "ResourceClaim", *claims_from(KEY, "ml-team", ["trainer"], devices=[device("node-1", "gpu-0")], pods=["a", "b"])
    )
    assert "Held by pods a, b." in html(as_alice, f"/requests/{row.pk}/")
    assert "shared by all pods" in html(as_alice, "/requests/")
    assert "While pods use it, it stays with them until those end" in html(as_alice, f"/requests/{row.pk}/withdraw/")
    assert as_alice.get(f"/requests/{row.pk}/template.yaml")["Content-Disposition"].endswith('"trainer-claim.yaml"')


def test_claims_of_another_request_are_not_counted(as_alice: Client, row: GpuRequest) -> None:
    put("ResourceClaim", *claims_from("0123456789abcdef", "ml-team", ["other-1"]))
    put("ResourceClaim", *claims_from(KEY, "inference-team", ["theirs-1"]))
    text = html(as_alice, f"/requests/{row.pk}/")
    assert "other-1" not in text
    assert "theirs-1" not in text


def test_a_poll_is_answered_with_nothing_until_something_changed(as_alice: Client, row: GpuRequest) -> None:
    address = f"/requests/{row.pk}/"
    part = as_alice.get(address, headers=HTMX).content.decode()
    since = part.split(f"{address}?since=")[1].split('"')[0]
    assert as_alice.get(f"{address}?since={since}", headers=HTMX).status_code == 204
    put("ResourceClaim", *claims_from(KEY, "ml-team", ["trainer-1"]))
    assert as_alice.get(f"{address}?since={since}", headers=HTMX).status_code == 200
    row.refresh_from_db()
    row.state = State.GONE
    row.save()
    assert "It was deleted in another way" in as_alice.get(f"{address}?since={since}", headers=HTMX).content.decode()


def test_the_list_asks_the_database_as_often_for_two_as_for_one(as_alice: Client, alice: User, ml_team: Team) -> None:
    counts = []
    for number in range(2):
        gpu_request(alice, ml_team, f"n{number}", key=f"key-{number}-0000")
        with CaptureQueriesContext(connection) as queries:
            as_alice.get("/requests/")
        counts.append(len(queries))
    assert counts == [12, 12]
