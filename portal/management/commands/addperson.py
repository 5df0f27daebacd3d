"""`manage.py addperson alice --team ml-team`: asks for the password, or reads a line of standard input."""

from __future__ import annotations

import getpass
import sys
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from portal.models import Role, Team
from portal.services.add_person import add_person
from portal.services.join_team import join_team


class Command(BaseCommand):
    """Make a local user, and a member of teams."""

    help = "Make a local user. The password is asked for, or read as one line where standard input is no terminal."

    def add_arguments(self, parser: CommandParser) -> None:
        """Name, teams, rights."""
        parser.add_argument("username")
        parser.add_argument("--team", action="append", default=[], help="a team to join; repeatable")
        parser.add_argument("--role", choices=Role.values, default=Role.REQUESTER, help="the role in these teams")
        parser.add_argument("--operator", action="store_true", help="sees devices and claims of the whole cluster")

    def handle(self, *, username: str, team: list[str], role: str, operator: bool, **_: Any) -> None:
        """All or nothing: a team that does not exist leaves no user behind."""
        try:
            with transaction.atomic():
                user = add_person(username=username, password=_password(), is_operator=operator)
                for name in team:
                    join_team(user=user, team=Team.objects.get(name=name), role=Role(role))
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        except Team.DoesNotExist as error:
            raise CommandError(f"There is no team {name}. Make it first: manage.py addteam {name}") from error
        self.stdout.write(f"{user} may sign in. Teams: {', '.join(team) or 'none'}")


def _password() -> str:
    if sys.stdin.isatty():
        return getpass.getpass("Password: ")
    return sys.stdin.readline().rstrip("\n")
