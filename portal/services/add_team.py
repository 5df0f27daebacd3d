"""Make a team and say which namespaces it works in."""

from __future__ import annotations

from collections.abc import Sequence

import structlog
from django.db import transaction

from portal.models import Team, TeamNamespace

_log = structlog.get_logger(__name__)


@transaction.atomic
def add_team(*, name: str, namespaces: Sequence[str]) -> Team:
    """The team with at least these namespaces; one that exists is extended.

    ValidationError names the rule that a name breaks, or that a namespace belongs to another team.
    """
    team = Team.objects.filter(name=name).first() or Team(name=name)
    team.full_clean()
    team.save()
    for namespace in namespaces:
        if not team.namespaces.filter(namespace=namespace).exists():
            row = TeamNamespace(team=team, namespace=namespace)
            row.full_clean()
            row.save()
    _log.info("team added", team=name, namespaces=list(namespaces))
    return team
