"""`manage.py addteam ml-team --namespace ml-train --namespace ml-serve`."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.services.add_team import add_team


class Command(BaseCommand):
    """Make a team, or give it more namespaces."""

    help = "Make a team and say which namespaces it works in."

    def add_arguments(self, parser: CommandParser) -> None:
        """Name and namespaces."""
        parser.add_argument("name", help="DNS label; the team's group in the cluster is the prefix and this name")
        parser.add_argument("--namespace", action="append", default=[], help="a namespace of the team; repeatable")

    def handle(self, *, name: str, namespace: list[str], **_: Any) -> None:
        """One service, one line."""
        try:
            team = add_team(name=name, namespaces=namespace)
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        spaces = ", ".join(row.namespace for row in team.namespaces.all())
        self.stdout.write(f"Team {team} works in: {spaces or 'no namespace yet'}")
