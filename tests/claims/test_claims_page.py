"""The resource claims of my namespaces."""

from __future__ import annotations

import json
from html import unescape

import pytest
from django.test import Client

from portal.models import Team, TeamNamespace
from tests.claims.rows import put
from tests.gpuinventory.fleet import claim, device

pytestmark = pytest.mark.usefixtures("fleet")
HTMX = {"HX-Request": "true", "HX-Request-Type": "partial"}


@pytest.fixture(autouse=True)
def claims(ml_team: Team, inference_team: Team) -> None:
    """One held and one waiting claim of ml-team, one in its second namespace, one of inference-team."""
    TeamNamespace.objects.create(team=ml_team, namespace="ml-serve")
    held = claim("ml-team", "held-1", [device("node-1", "gpu-0", percent=25)], pods=["trainer"])
    put("ResourceClaim", held, claim("ml-team", "waits-1"), claim("ml-serve", "serves-1"))
    put("ResourceClaim", claim("inference-team", "theirs-1", [device("node-1", "gpu-1")]))


def html(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return unescape(answer.content.decode())


def test_my_claims_say_their_state_and_devices(as_alice: Client) -> None:
    text = html(as_alice, "/claims/")
    assert "Held by pod trainer." in text
    assert "node-1/gpu-0" in text
    assert "25 %" in text
    assert "A claim gets devices only when a pod uses it" in text
    assert "3 claims with 1 device" in text


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (
            {"mode": "Physical", "lastProcessSeen": "2020-01-01T08:00:00Z"},
            'last process seen <time datetime="2020',
        ),
        ({"mode": "Physical", "lastProcessSeen": ""}, "no process seen yet"),
    ],
)
def test_a_device_that_is_held_without_a_process_says_so(as_alice: Client, data: dict[str, str], said: str) -> None:
    assert "process" not in html(as_alice, "/claims/")
    held = json.loads(claim("ml-team", "held-1", [device("node-1", "gpu-0", percent=25)], pods=["trainer"]))
    held["metadata"]["resourceVersion"] = "2"
    result = held["status"]["allocation"]["devices"]["results"][0]
    own = {key: result[key] for key in ("driver", "pool", "device", "shareID")}
    held["status"]["devices"] = [own | {"data": data}]
    put("ResourceClaim", json.dumps(held).encode())
    assert said in html(as_alice, "/claims/")


def test_claims_of_other_teams_do_not_appear(as_alice: Client, as_charlie: Client) -> None:
    assert "theirs-1" not in html(as_alice, "/claims/")
    assert "held-1" not in html(as_charlie, "/claims/")


@pytest.mark.parametrize("asked", ["inference-team", "no-such"])
def test_a_namespace_that_is_not_mine_shows_nothing_of_it(as_alice: Client, asked: str) -> None:
    text = html(as_alice, f"/claims/?ns={asked}")
    assert "theirs-1" not in text
    assert "No claims yet" in text


def test_the_address_narrows_the_list(as_alice: Client) -> None:
    assert "serves-1" not in html(as_alice, "/claims/?ns=ml-team")
    only = html(as_alice, "/claims/?state=in-use")
    assert "held-1" in only
    assert "waits-1" not in only
    assert "No claim is like that" in html(as_alice, "/claims/?state=allocated")


def test_fifty_claims_are_a_page(as_alice: Client) -> None:
    put("ResourceClaim", *(claim("ml-team", f"c{number:02}") for number in range(60)))
    assert "1\N{EN DASH}50 of 63" in html(as_alice, "/claims/")
    assert "51\N{EN DASH}63 of 63" in html(as_alice, "/claims/?page=2")
    assert "51\N{EN DASH}63 of 63" in html(as_alice, "/claims/?page=900")


def test_a_poll_is_answered_with_nothing_until_something_changed(as_alice: Client) -> None:
    part = as_alice.get("/claims/", headers=HTMX).content.decode()
    since = part.split("since=")[1].split('"')[0]
    assert as_alice.get(f"/claims/?since={since}", headers=HTMX).status_code == 204
    put("ResourceClaim", claim("ml-team", "new-1"))
    assert "new-1" in as_alice.get(f"/claims/?since={since}", headers=HTMX).content.decode()


def test_guests_read_how_to_get_access(as_gus: Client, as_olga: Client) -> None:
    for client in (as_gus, as_olga):
        text = html(client, "/claims/")
        assert "You are a member of no team" in text
        assert "held-1" not in text
