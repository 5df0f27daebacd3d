"""What only a demo has: no password on this machine, roles, hints, the simulator's time; nothing of it elsewhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.core.checks import run_checks
from django.core.management import call_command
from django.test import Client
from django.urls import NoReverseMatch, reverse
from pytest_django.fixtures import Settings

from portal.demo.people import PARTS
from portal.models import User
from tests.cluster.controlplane import free_ports

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).parents[2]
ROUTES = ("enter", "person", "time", "hint")
BANNER = "Demo data. Nothing here touches a cluster."


def kubeconfig(path: Path) -> Path:
    """A simulator's file; nobody listens at its address."""
    (port,) = free_ports(1)
    cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}
    user = {"name": "admin", "user": {"token": "t"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "admin"}}
    path.write_text(json.dumps({"clusters": [cluster], "users": [user], "contexts": [context], "current-context": "c"}))
    return path


@pytest.fixture
def demo(settings: Settings, tmp_path: Path) -> Client:
    """A demo with its people, and a browser that comes for the first time."""
    settings.DEMO = settings.KUBECONFIG = str(kubeconfig(tmp_path / "admin.kubeconfig"))
    settings.ROOT_URLCONF = "portal.demourls"
    call_command("seeddemo", stdout=StringIO())
    return Client()


def me(browser: Client) -> str:
    """Who is signed in there."""
    return str(User.objects.get(pk=browser.session["_auth_user_id"]))


def test_the_first_visit_is_the_developers_and_leads_where_it_was_going(demo: Client) -> None:
    page = demo.get("/requests/", follow=True)
    assert [address for address, _ in page.redirect_chain] == ["/sign-in/?next=%2Frequests%2F", "/requests/"]
    assert me(demo) == "bob"
    assert BANNER in page.content.decode()


def test_every_part_is_a_person_of_the_demo_and_can_be_played(demo: Client) -> None:
    assert {part.username for part in PARTS} == {str(user) for user in User.objects.all()}
    for part in PARTS:
        answer = demo.post("/demo/person/", {"person": part.username, "next": "/capacity/"})
        assert (answer.status_code, answer["Location"]) == (303, "/capacity/")
        assert me(demo) == part.username
        page = demo.get("/capacity/").content.decode()
        assert f'value="{part.username}" aria-current="true"' in page
        assert page.count('aria-current="true"') == 1
    assert "sign-out" not in page


def test_nobody_else_can_be_played(demo: Client) -> None:
    User.objects.create_user("root")
    assert demo.post("/demo/person/", {"person": "root"}).status_code == 404
    assert "_auth_user_id" not in demo.session


def test_a_form_leads_back_into_the_portal_only(demo: Client) -> None:
    answer = demo.post("/demo/person/", {"person": "olga", "next": "https://evil.example/"})
    assert answer["Location"] == "/"


def test_it_changes_by_post_with_a_token_only(demo: Client) -> None:
    strict = Client(enforce_csrf_checks=True)
    for route, data in (("person", {"person": "olga"}), ("time", {"rate": "0"}), ("hint", {"number": "0"})):
        assert demo.get(f"/demo/{route}/").status_code == 405
        assert strict.post(f"/demo/{route}/", data).status_code == 403


@pytest.mark.parametrize("address", ["10.0.0.7", "2001:db8::1", "", "unix:"])
def test_callers_from_elsewhere_are_not_signed_in(demo: Client, address: str) -> None:
    far = Client(REMOTE_ADDR=address)
    assert "on the machine that it runs on" in far.get("/", follow=True).content.decode()
    assert far.get("/sign-in/").status_code == 403
    assert far.post("/demo/person/", {"person": "olga"}).status_code == 403
    assert "_auth_user_id" not in far.session


def test_five_hints_one_after_the_other_until_they_are_dismissed(demo: Client) -> None:
    demo.get("/", follow=True)
    for number in range(1, 6):
        page = demo.get("/").content.decode()
        assert f'aria-label="Hint {number} of 5"' in page
        following = re.findall(r'<button name="number" value="(\d)">', page)
        assert following == ([str(number + 1), "0"] if number < 5 else ["0"])
        demo.post("/demo/hint/", {"number": following[0], "next": "/"})
    assert 'aria-label="Hint' not in demo.get("/").content.decode()
    demo.post("/demo/person/", {"person": "alice"})
    assert 'aria-label="Hint' not in demo.get("/").content.decode()
    demo.post("/demo/hint/", {"number": "1"})
    assert 'aria-label="Hint 1 of 5"' in demo.get("/").content.decode()


def test_a_simulator_that_is_away_is_told_and_stops_nothing(demo: Client) -> None:
    page = demo.get("/", follow=True).content.decode()
    assert "The simulator does not say how fast it goes." in page
    assert 'aria-pressed="true"' not in page
    page = demo.post("/demo/time/", {"rate": "10", "next": "/"}, follow=True).content.decode()
    assert "The time goes on as before, since the simulator did not take it: no answer from http://127.0.0.1" in page


@pytest.mark.parametrize("rate", ["", "2", "-1", "10.0", "fast"])
def test_a_rate_that_the_clock_does_not_have_is_none(demo: Client, rate: str) -> None:
    assert demo.post("/demo/time/", {"rate": rate}).status_code == 404


def test_without_the_setting_there_is_no_route_and_no_banner(as_alice: Client, anonymous: Client) -> None:
    for route in ROUTES:
        with pytest.raises(NoReverseMatch):
            reverse(f"demo:{route}")
    for address in ("/demo/person/", "/demo/time/", "/demo/hint/"):
        assert as_alice.post(address, {"person": "olga", "rate": "0", "number": "0"}).status_code == 404
    assert BANNER not in as_alice.get("/").content.decode()
    assert 'name="password"' in anonymous.get("/sign-in/").content.decode()


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        pytest.param({"ALLOWED_HOSTS": ["localhost", "portal.example.org"]}, ["portal.E006"], id="a public name"),
        pytest.param({"ALLOWED_HOSTS": ["*"]}, ["portal.E006", "portal.W001"], id="any name"),
        pytest.param({"KUBECONFIG": ""}, ["portal.E007"], id="in a cluster"),
        pytest.param({"DEMO": "/nonexistent"}, ["portal.E008"], id="no such file"),
    ],
)
def test_a_demo_that_others_could_reach_is_refused(
    demo: Client, settings: Settings, changed: dict[str, object], found: list[str]
) -> None:
    settings.ALLOWED_HOSTS = ["localhost"]  # the test runner adds a name of its own
    assert run_checks() == []
    for name, value in changed.items():
        setattr(settings, name, value)
    messages = run_checks()
    assert sorted(message.id or "" for message in messages) == found
    assert all(message.hint for message in messages)


def test_a_demo_is_served_on_loopback_only(tmp_path: Path) -> None:
    simulator = str(kubeconfig(tmp_path / "admin.kubeconfig"))
    environment = {**os.environ, "PORTICO_DEMO": simulator, "DJANGO_SETTINGS_MODULE": "portal.settings"}
    command = [sys.executable, "-m", "portal.embedded", "--host", "0.0.0.0", "--port", "0"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "a demo has no login, so it is served on loopback only, not on 0.0.0.0" in done.stderr


def test_neither_chart_nor_image_can_make_a_demo() -> None:
    files = [path for folder in ("helm", "images") for path in (ROOT / folder).rglob("*") if path.is_file()]
    assert len(files) > 10
    assert [path for path in files if "PORTICO_DEMO" in path.read_text(errors="replace")] == []
