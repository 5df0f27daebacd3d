"""Signing in and out, the namespace switch, health, and pages for errors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from portal.models import Team, TeamNamespace, User
from tests.portal_fixtures import PASSWORD

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).parents[2]


def test_signing_in_leads_to_where_one_wanted_to_go(alice: User, anonymous: Client) -> None:
    asked = anonymous.get("/devices/?state=free")
    assert asked["Location"] == "/sign-in/?next=%2Fdevices%2F%3Fstate%3Dfree"
    form = {"username": "alice", "password": PASSWORD, "next": "/devices/?state=free"}
    assert anonymous.post("/sign-in/", form)["Location"] == "/devices/?state=free"
    assert anonymous.get("/devices/").status_code == 200


def test_signing_in_leads_nowhere_else(alice: User, anonymous: Client) -> None:
    form = {"username": "alice", "password": PASSWORD, "next": "https://evil.example/"}
    assert anonymous.post("/sign-in/", form)["Location"] == "/"


def test_a_wrong_password_says_so_and_not_which_part_was_wrong(alice: User, anonymous: Client) -> None:
    wrong = anonymous.post("/sign-in/", {"username": "alice", "password": "wrong"})
    unknown = anonymous.post("/sign-in/", {"username": "nobody", "password": "wrong"})
    assert wrong.status_code == unknown.status_code == 200
    sentences = [re.search(r'role="alert">(.*?)</div>', page.content.decode(), re.DOTALL) for page in (wrong, unknown)]
    assert sentences[0] and sentences[1] and sentences[0][1] == sentences[1][1]  # noqa: PT018 - found, then equal


def test_signing_out_takes_a_form_and_ends_the_session(as_alice: Client) -> None:
    assert as_alice.get("/sign-out/").status_code == 405
    assert as_alice.post("/sign-out/")["Location"] == "/sign-in/"
    assert as_alice.get("/").status_code == 302


def test_a_part_that_is_asked_for_after_the_session_ended_sends_the_page_to_sign_in(anonymous: Client) -> None:
    headers = {"HX-Request": "true", "HX-Current-URL": "http://testserver/devices/?page=2"}
    answer = anonymous.get("/devices/?page=2&since=7", headers=headers)
    assert (answer.status_code, answer["HX-Redirect"]) == (200, "/sign-in/?next=%2Fdevices%2F%3Fpage%3D2")


def test_a_form_without_its_token_is_refused_in_words(alice: User) -> None:
    browser = Client(enforce_csrf_checks=True)
    answer = browser.post("/sign-in/", {"username": "alice", "password": PASSWORD})
    assert answer.status_code == 403
    assert "This form was opened before you signed in" in answer.content.decode()


def test_the_namespace_switch_is_there_for_several_and_is_remembered(as_alice: Client, ml_team: Team) -> None:
    assert '<select id="space"' not in as_alice.get("/").content.decode()
    TeamNamespace.objects.create(team=ml_team, namespace="ml-lab")
    assert '<option value="ml-lab" selected>' in as_alice.get("/").content.decode()
    back = as_alice.post("/namespace/", {"namespace": "ml-team", "next": "/devices/?page=2"})
    assert back["Location"] == "/devices/?page=2"
    assert '<option value="ml-team" selected>' in as_alice.get("/").content.decode()


def test_a_namespace_of_others_is_refused_in_words(as_charlie: Client, ml_team: Team) -> None:
    answer = as_charlie.post("/namespace/", {"namespace": "ml-team"})
    assert answer.status_code == 403
    assert "No team of yours works in the namespace ml-team." in answer.content.decode()


def test_an_unknown_address_is_told_without_the_names_of_our_routes(as_alice: Client) -> None:
    page = as_alice.get("/nowhere/").content.decode()
    assert "There is no page at this address." in page
    assert "sign-in/" not in page


def test_the_id_of_a_proxy_is_kept_and_anything_else_is_replaced(anonymous: Client) -> None:
    kept = anonymous.get("/version", headers={"X-Request-ID": "req-0123456789"})
    assert kept["X-Request-ID"] == "req-0123456789"
    replaced = anonymous.get("/version", headers={"X-Request-ID": "two words and more"})
    assert re.fullmatch(r"[0-9a-f]{32}", replaced["X-Request-ID"])


def test_a_fault_of_ours_shows_its_id_and_nothing_of_the_code(as_alice: Client) -> None:
    browser = Client(raise_request_exception=False)
    browser.cookies = as_alice.cookies
    with connection.cursor() as cursor:  # the table of a page is gone: a real fault
        cursor.execute("ALTER TABLE gpuinventory_device RENAME TO gpuinventory_device_gone")
    answer = browser.get("/")
    page = answer.content.decode()
    assert answer.status_code == 500
    assert answer["X-Request-ID"] in page
    assert "Traceback" not in page
    assert "gpuinventory_device" not in page


def test_ready_means_database_and_tables_and_not_the_cluster(anonymous: Client) -> None:
    assert anonymous.get("/readyz").status_code == 200
    MigrationRecorder(connection).record_unapplied("portal", "0001_people_and_teams")
    unready = anonymous.get("/readyz")
    assert (unready.status_code, unready.content.decode().splitlines()[0][:13]) == (503, "not migrated:")
    assert "portal.0001_people_and_teams" in unready.content.decode()


def test_version(anonymous: Client) -> None:
    assert anonymous.get("/version").json() == {"name": "portico", "version": "0.1.0"}


def test_no_template_has_an_inline_style_or_script() -> None:
    """The policy would keep them from working; htmx attributes that need eval are kept out for the same reason."""
    banned = re.compile(
        r"\sstyle=|<style|<script(?![^>]*\ssrc=)|\son\w+=|hx-on|javascript:|\bjs:|hx-trigger=\"[^\"]*\["
    )
    found = {
        f"{path.relative_to(ROOT)}: {match[0].strip()}"
        for path in (ROOT / "templates").rglob("*.html")
        for match in banned.finditer(path.read_text())
    }
    assert found == set()
