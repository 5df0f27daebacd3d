"""One table over all routes and people. A route without a row fails."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from portal.models import User
from tests.portal.routetable import PEOPLE, Row
from tests.portal_fixtures import signed_in

TESTS = Path(__file__).parents[1]
TABLES = [importlib.import_module(f"tests.{path.parent.name}.route_table") for path in TESTS.glob("*/route_table.py")]
ROWS: list[Row] = [row for table in TABLES for row in table.ROWS]
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def routes(resolver: URLResolver, namespace: str = "") -> Iterator[str]:
    """The names of all routes, with their namespace."""
    for entry in resolver.url_patterns:
        if isinstance(entry, URLResolver):
            yield from routes(entry, f"{namespace}{entry.namespace}:" if entry.namespace else namespace)
        elif isinstance(entry, URLPattern):
            yield f"{namespace}{entry.name}"


@pytest.fixture
def browsers(alice: User, bob: User, charlie: User, olga: User, gus: User) -> dict[str, Client]:
    """A browser for each person."""
    people = dict(zip(PEOPLE, (alice, bob, charlie, olga, gus), strict=False))
    return {"anonymous": Client()} | {name: signed_in(user) for name, user in people.items()}


def test_every_route_has_a_row_and_every_row_a_route() -> None:
    assert sorted(set(routes(get_resolver()))) == sorted({row.route for row in ROWS})


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.method} {row.route}")
@pytest.mark.django_db
def test_who_gets_what(row: Row, browsers: dict[str, Client]) -> None:
    address = reverse(row.route, kwargs=row.arrange())
    answers = {person: getattr(browsers[person], row.method)(address, row.data) for person in PEOPLE}
    assert {person: answer.status_code for person, answer in answers.items()} == {
        person: row.expected(person) for person in PEOPLE
    }
    to_sign_in = answers["anonymous"]
    if row.anonymous == 302 and row.route != "portal:sign-out":
        assert to_sign_in["Location"].startswith("/sign-in/?next=")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.method} {row.route}")
@pytest.mark.django_db
def test_every_answer_carries_the_policy_and_an_id(row: Row, browsers: dict[str, Client]) -> None:
    address = reverse(row.route, kwargs=row.arrange())
    for person in PEOPLE:
        answer = getattr(browsers[person], row.method)(address, row.data)
        assert answer["Content-Security-Policy"] == POLICY
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer["X-Frame-Options"] == "DENY"
        assert len(answer["X-Request-ID"]) == 32
