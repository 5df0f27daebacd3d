"""Names that may become an identity in the cluster, and those that may not: model, database, command, sign-in."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.management import call_command
from django.db import IntegrityError, transaction
from django.test import Client
from pytest_django.fixtures import Settings

from dra.kube.requests import Person
from portal.cluster import person_of
from portal.models import Membership, Role, Team, TeamNamespace, User
from portal.services.add_person import add_person
from portal.services.add_team import add_team
from portal.services.join_team import join_team
from tests.portal_fixtures import PASSWORD

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).parents[2]
type Command = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("username", "reason"),
    [
        pytest.param("system:admin", "names that start with system: belong to Kubernetes itself", id="Kubernetes' own"),
        pytest.param("System:masters", "names that start with system: belong to Kubernetes itself", id="in capitals"),
        pytest.param("portico:alice", "letters, digits, dots, dashes, underscores and @ only", id="a colon"),
        pytest.param("Alice", "has small letters", id="a capital"),
        pytest.param("alice smith", "letters, digits, dots", id="a space"),
        pytest.param("-alice", "starts with a letter or digit", id="a dash first"),
        pytest.param("alice\n", "letters, digits, dots", id="a line break"),
        pytest.param("a" * 64, "at most 63 characters", id="too long"),
        pytest.param("", "blank", id="nothing"),
    ],
)
def test_names_that_are_refused(username: str, reason: str) -> None:
    with pytest.raises(ValidationError) as caught:
        add_person(username=username, password=PASSWORD)
    assert reason in " ".join(caught.value.messages)
    assert not User.objects.exists()


@pytest.mark.parametrize("username", ["alice", "alice@example.org", "a.b-c_d", "7of9"])
def test_names_that_are_taken(username: str) -> None:
    assert add_person(username=username, password=PASSWORD).username == username


def test_the_database_refuses_a_colon_too() -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        User.objects.create(username="system:admin")


def test_a_name_that_came_past_every_check_does_not_act_in_the_cluster() -> None:
    with pytest.raises(PermissionDenied):
        person_of(User(pk=1, username="system:admin"))


def test_a_short_password_is_refused() -> None:
    with pytest.raises(ValidationError, match="too short"):
        add_person(username="alice", password="short")


def test_who_a_user_is_in_the_cluster(alice: User, olga: User, gus: User, settings: Settings) -> None:
    assert person_of(alice) == Person("portico:alice", ("portico:ml-team",))
    assert person_of(olga) == Person("portico:olga", ("portico:operators",))
    assert person_of(gus) == Person("portico:gus", ())
    settings.IMPERSONATION_PREFIX = "oidc:"
    assert person_of(alice) == Person("oidc:alice", ("oidc:ml-team",))


@pytest.mark.parametrize("name", ["operators", "system", "Team", "a_b", "-a", "a" * 64, ""])
def test_team_names_that_are_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        add_team(name=name, namespaces=[])
    assert not Team.objects.exists()


def test_the_database_refuses_a_reserved_team_too() -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Team.objects.create(name="operators")


def test_a_namespace_belongs_to_one_team() -> None:
    add_team(name="ml-team", namespaces=["train", "serve"])
    with pytest.raises(ValidationError, match="already exists"):
        add_team(name="other", namespaces=["train"])
    assert list(TeamNamespace.objects.values_list("team__name", "namespace")) == [
        ("ml-team", "serve"),
        ("ml-team", "train"),
    ]


def test_joining_again_changes_the_role_only(alice: User, ml_team: Team) -> None:
    join_team(user=alice, team=ml_team, role=Role.REQUESTER)
    assert list(Membership.objects.values_list("user__username", "role")) == [("alice", "requester")]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """The real command in a process of its own, on a database of its own: exit status, output, errors."""
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "PORTICO_DATABASE_URL": f"sqlite:///{tmp_path / 'db.sqlite3'}",
        "PORTICO_LOG_LEVEL": "ERROR",
    }

    def run(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
        words = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(
            words, input=stdin, capture_output=True, text=True, check=False, cwd=ROOT, env=environment
        )
        return done.returncode, done.stdout, done.stderr

    return run


def test_commands_make_teams_and_people_and_refuse_in_one_sentence(command: Command) -> None:
    assert command("migrate", "--verbosity=0")[0] == 0
    assert command("addteam", "ml-team", "--namespace", "train")[:2] == (0, "Team ml-team works in: train\n")
    made = command("addperson", "alice", "--team", "ml-team", stdin=f"{PASSWORD}\n")
    assert made == (0, "alice may sign in. Teams: ml-team\n", "")
    refused = command("addperson", "system:admin", stdin=f"{PASSWORD}\n")
    assert refused[0] == 1
    assert "system:admin can't be a user name: names that start with system: belong to Kubernetes itself" in refused[2]
    no_team = command("addperson", "bob", "--team", "nobody", stdin=f"{PASSWORD}\n")
    assert (no_team[0], "There is no team nobody" in no_team[2]) == (1, True)
    again = command("addperson", "bob", stdin=f"{PASSWORD}\n")
    assert again[:2] == (0, "bob may sign in. Teams: none\n")


def test_the_demo_s_people_may_sign_in_and_seeding_again_changes_passwords_only() -> None:
    for password in ("first password", "second password"):
        output = io.StringIO()
        call_command("seeddemo", password=password, stdout=output)
        assert Client().login(username="alice", password=password)
        assert f"alice    {password}" in output.getvalue()
    assert sorted(User.objects.values_list("username", "is_operator")) == [
        ("alice", False), ("bob", False), ("charlie", False), ("gus", False), ("olga", True),
    ]  # fmt: skip
    assert sorted(Membership.objects.values_list("user__username", "team__name", "role")) == [
        ("alice", "ml-team", "lead"), ("bob", "ml-team", "requester"), ("charlie", "inference-team", "requester"),
    ]  # fmt: skip
