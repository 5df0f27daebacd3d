"""Teams and people of the demo. Run again, it changes nothing but the passwords."""

from __future__ import annotations

import secrets
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from portal.models import Role, User
from portal.services.add_person import add_person
from portal.services.add_team import add_team
from portal.services.join_team import join_team

TEAMS = {"ml-team": ["ml-team"], "inference-team": ["inference-team"]}
MEMBERS = {
    "alice": ("ml-team", Role.LEAD),
    "bob": ("ml-team", Role.REQUESTER),
    "charlie": ("inference-team", Role.REQUESTER),
}
OPERATOR = "olga"
GUEST = "gus"


class Command(BaseCommand):
    """Alice and Bob of ml-team, Charlie of inference-team, Olga the operator, Gus the guest."""

    help = "Make the demo's teams and people, and print how to sign in."

    def add_arguments(self, parser: CommandParser) -> None:
        """One password for all, so that a demo is easy to show."""
        parser.add_argument("--password", default="", help="for everyone; a random one is made without it")

    def handle(self, *, password: str, **_: Any) -> None:
        """People first, then who belongs where."""
        password = password or secrets.token_urlsafe(9)
        teams = {name: add_team(name=name, namespaces=spaces) for name, spaces in TEAMS.items()}
        for username in (*MEMBERS, OPERATOR, GUEST):
            user = _person(username, password)
            if username in MEMBERS:
                team, role = MEMBERS[username]
                join_team(user=user, team=teams[team], role=role)
            self.stdout.write(f"  {username:<8} {password}")


def _person(username: str, password: str) -> User:
    user = User.objects.filter(username=username).first()
    if user is None:
        return add_person(username=username, password=password, is_operator=username == OPERATOR)
    user.set_password(password)
    user.save(update_fields=["password"])
    return user
