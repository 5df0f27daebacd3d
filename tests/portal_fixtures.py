"""The people of the tests, and a signed-in client for each.

Alice leads and Bob belongs to ml-team, Charlie belongs to inference-team, Olga is the operator, Gus is a guest: signed
in, in no team. Namespaces have the names of the teams.
"""

from __future__ import annotations

import pytest
from django.test import Client

from gpuinventory.selectors import held
from portal.models import Membership, Role, Team, TeamNamespace, User

PASSWORD = "a password of the tests"


@pytest.fixture(autouse=True)
def _no_fleet_of_another_test(request: pytest.FixtureRequest) -> None:
    """Each test has a database of its own, whose revisions come to the numbers of another's with other rows."""
    if {"db", "transactional_db", "live_server"} & set(request.fixturenames) or request.node.get_closest_marker(
        "django_db"
    ):
        held.forget()


@pytest.fixture
def ml_team(db: None) -> Team:
    """Alice's and Bob's team."""
    return _team("ml-team")


@pytest.fixture
def inference_team(db: None) -> Team:
    """Charlie's team."""
    return _team("inference-team")


@pytest.fixture
def alice(ml_team: Team) -> User:
    """The person whose things are asked for."""
    return _person("alice", ml_team, Role.LEAD)


@pytest.fixture
def bob(ml_team: Team) -> User:
    """Of the same team."""
    return _person("bob", ml_team, Role.REQUESTER)


@pytest.fixture
def charlie(inference_team: Team) -> User:
    """Of another team."""
    return _person("charlie", inference_team, Role.REQUESTER)


@pytest.fixture
def olga(db: None) -> User:
    """The operator, of no team."""
    return User.objects.create_user("olga", password=PASSWORD, is_operator=True)


@pytest.fixture
def gus(db: None) -> User:
    """A guest: signed in, in no team."""
    return User.objects.create_user("gus", password=PASSWORD)


@pytest.fixture
def as_alice(alice: User) -> Client:
    """Alice's browser."""
    return signed_in(alice)


@pytest.fixture
def as_bob(bob: User) -> Client:
    """Bob's browser."""
    return signed_in(bob)


@pytest.fixture
def as_charlie(charlie: User) -> Client:
    """Charlie's browser."""
    return signed_in(charlie)


@pytest.fixture
def as_olga(olga: User) -> Client:
    """Olga's browser."""
    return signed_in(olga)


@pytest.fixture
def as_gus(gus: User) -> Client:
    """Gus's browser."""
    return signed_in(gus)


@pytest.fixture
def anonymous(db: None) -> Client:
    """A browser in which nobody is signed in."""
    return Client()


def signed_in(user: User) -> Client:
    """A browser in which that user is signed in."""
    client = Client()
    client.force_login(user)
    return client


def _team(name: str) -> Team:
    team = Team.objects.create(name=name)
    TeamNamespace.objects.create(team=team, namespace=name)
    return team


def _person(username: str, team: Team, role: Role) -> User:
    user = User.objects.create_user(username, password=PASSWORD)
    Membership.objects.create(user=user, team=team, role=role)
    return user
