"""What the form's POST refuses before the cluster is asked, or when it is away. Nothing is created, no row is written.

Creating in a real cluster is tested in tests/cluster/test_claims_cluster.py.
"""

from __future__ import annotations

from html import unescape
from urllib.parse import parse_qsl

import pytest
from django.http import HttpResponse
from django.test import Client
from pytest_django.fixtures import Settings

from claims.manifests import render
from claims.models import GpuRequest, GpuRequestEvent
from claims.wish import ClassFacts, read
from portal.models import Team, User
from tests.claims.rows import CLASS, KEY, QUERY, gpu_request

pytestmark = pytest.mark.usefixtures("fleet", "away")
WISH = read(QUERY).wish
assert WISH is not None
TEMPLATE = render(WISH, ClassFacts(name=CLASS, driver="gpu.portico.dev"), KEY).template


def post(client: Client, **changes: str) -> HttpResponse:
    values = dict(parse_qsl(QUERY)) | {"form": KEY, "digest": TEMPLATE.digest, "shown": TEMPLATE.text} | changes
    answer: HttpResponse = client.post("/requests/", {key: value for key, value in values.items() if value != "absent"})  # type: ignore[assignment] # the test client adds to the answer
    assert not GpuRequest.objects.exclude(name="earlier").exists()
    return answer


def said(answer: HttpResponse) -> str:
    return unescape(answer.content.decode())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"count": "33"}, "One resource claim takes 1 to 32 devices"),
        ({"share": "7"}, "in steps of 5"),
        ({"name": "absent"}, "Name is missing"),
        ({"class": ""}, "GPU class is missing"),
        ({"ns": "inference-team"}, "None of your teams works in a namespace of that name"),
        ({"class": "h200"}, "The cluster has no GPU class of that name"),
        ({"count": "2", "share": "50"}, "so it can't use shares of two devices"),
    ],
)
def test_wrong_or_missing_values_are_422_and_create_nothing(
    as_alice: Client, changes: dict[str, str], words: str
) -> None:
    answer = post(as_alice, **changes)
    assert answer.status_code == 422
    assert words in said(answer)
    assert 'aria-invalid="true"' in said(answer) or 'id="error-class"' in said(answer)
    assert "Nothing was created" in said(answer)


def test_what_a_pod_asks_by_itself_is_not_created(as_alice: Client) -> None:
    answer = post(as_alice, style="extended")
    assert answer.status_code == 422
    assert "trainer asks by an extended resource, which a pod does by itself" in said(answer)


def test_a_claim_that_changed_is_409_with_the_difference_as_a_template_is(as_alice: Client) -> None:
    answer = post(as_alice, claim="shared", count="2", digest="0" * 64, shown="kind: ResourceClaim\n")
    assert answer.status_code == 409
    assert '<span class="sign">+</span>         count: 2' in said(answer)
    assert "Create the claim" in said(answer)


def test_a_file_that_is_not_the_one_last_seen_is_409_with_the_difference(as_alice: Client) -> None:
    before = TEMPLATE.text.replace("count: 1", "count: 2")
    answer = post(as_alice, digest="0" * 64, shown=before.replace("\n", "\r\n"))
    assert answer.status_code == 409
    assert '<span class="sign">-</span>           count: 2' in said(answer)
    assert '<span class="sign">+</span>           count: 1' in said(answer)
    assert f'name="digest" value="{TEMPLATE.digest}"' in said(answer)


def test_a_form_without_a_number_gets_one(as_alice: Client) -> None:
    answer = post(as_alice, form="absent")
    assert answer.status_code == 422
    assert "The form came without its number" in said(answer)
    assert 'name="form" value="' in said(answer)


def test_a_number_that_somebody_else_used_is_refused_and_replaced(as_bob: Client, alice: User, ml_team: Team) -> None:
    gpu_request(alice, ml_team, "earlier")
    answer = post(as_bob)
    assert answer.status_code == 409
    assert "This form was used before" in said(answer)
    assert f'value="{KEY}"' not in said(answer)


def test_a_number_that_was_used_for_another_wish_is_refused(as_alice: Client, alice: User, ml_team: Team) -> None:
    gpu_request(alice, ml_team, "earlier")
    assert post(as_alice).status_code == 409


def test_a_cluster_that_is_away_is_503_with_its_address_and_nothing_half_written(as_alice: Client, away: str) -> None:
    answer = post(as_alice)
    assert answer.status_code == 503
    assert f"no answer from {away}" in said(answer)
    assert "The files can be previewed and downloaded all the same" in said(answer)
    assert 'value="trainer"' in said(answer)


def test_a_try_that_the_cluster_did_not_answer_stands_in_the_audit(as_alice: Client) -> None:
    post(as_alice)
    event = GpuRequestEvent.objects.get()
    assert (event.username, event.verb, event.result) == ("alice", "submit", "cluster.silent")
    assert (event.namespace, event.name) == ("ml-team", "trainer")
    assert len(event.request_id) == 32


def test_no_configuration_at_all_is_said(as_alice: Client, settings: Settings) -> None:
    settings.KUBECONFIG = "/nonexistent/kubeconfig"
    answer = post(as_alice)
    assert answer.status_code == 503
    assert "no usable configuration" in said(answer)


def test_another_team_can_not_create_here(as_charlie: Client) -> None:
    answer = post(as_charlie)
    assert answer.status_code == 422
    assert "You can't ask for GPUs in “ml-team”" in said(answer)


def test_guests_and_operators_without_a_team_create_nothing(as_gus: Client, as_olga: Client) -> None:
    for client in (as_gus, as_olga):
        answer = post(client)
        assert answer.status_code == 403
        assert "You are a member of no team" in said(answer)


def test_nobody_signed_in_is_sent_to_sign_in(anonymous: Client) -> None:
    assert post(anonymous).status_code == 302


def test_a_post_from_elsewhere_is_refused(alice: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    assert post(client).status_code == 403
