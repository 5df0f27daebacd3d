"""The operators' page of people: it lists who belongs where, and adds a person or says why not."""

from __future__ import annotations

import pytest
from django.test import Client
from pytest_django.fixtures import DjangoAssertNumQueries

from portal.models import Membership, Team, User
from portal.selectors import people_without_team, teams_with_people

pytestmark = pytest.mark.django_db
FORM = {"username": "dora", "password": "a long enough one", "role": "lead", "team": ""}


def test_it_lists_teams_and_who_has_none(as_olga: Client, alice: User, charlie: User, gus: User) -> None:
    page = as_olga.get("/people/").content.decode()
    for word in ("ml-team", "inference-team", "alice", "charlie", "gus", "olga"):
        assert word in page


def test_a_person_is_added_to_a_team_and_may_sign_in(as_olga: Client, ml_team: Team) -> None:
    answer = as_olga.post("/people/", FORM | {"team": str(ml_team.pk)}, follow=True)
    assert answer.redirect_chain == [("/people/", 303)]
    assert "dora may sign in and belongs to ml-team." in answer.content.decode()
    assert list(Membership.objects.values_list("user__username", "role")) == [("dora", "lead")]
    assert Client().login(username="dora", password=FORM["password"])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        pytest.param(
            {"username": "system:admin"},
            "names that start with system: belong to Kubernetes itself",
            id="Kubernetes' own",
        ),
        pytest.param({"username": "olga"}, "This user name is taken. Choose another.", id="taken"),
        pytest.param({"username": ""}, "This field is required.", id="no name"),
        pytest.param({"password": "short"}, "This password is too short.", id="a short password"),
        pytest.param(
            {"username": "dora.explorer", "password": "dora.explorer1"},
            "The password is too similar to the user name.",
            id="a password like the name",
        ),
        pytest.param({"role": "king"}, "Select a valid choice.", id="an unknown role"),
        pytest.param({"team": "999"}, "Select a valid choice.", id="an unknown team"),
    ],
)
def test_what_is_wrong_is_said_at_the_field_and_nothing_is_made(
    as_olga: Client, change: dict[str, str], sentence: str
) -> None:
    answer = as_olga.post("/people/", FORM | change)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert page.count(sentence) == 2  # in the summary and at the field
    assert User.objects.count() == 1


@pytest.mark.usefixtures("alice", "charlie", "gus")
def test_its_reads_do_not_grow_with_the_number_of_teams(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(4):
        assert [team.name for team in teams_with_people()] == ["inference-team", "ml-team"]
    with django_assert_num_queries(1):
        assert [person.username for person in people_without_team()] == ["gus"]
