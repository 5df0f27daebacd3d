"""Make a person a member of a team, or change the role."""

from __future__ import annotations

import structlog

from portal.models import Membership, Role, Team, User

_log = structlog.get_logger(__name__)


def join_team(*, user: User, team: Team, role: Role = Role.REQUESTER) -> Membership:
    """The membership with that role; doing it again changes nothing."""
    membership, _ = Membership.objects.update_or_create(user=user, team=team, defaults={"role": role})
    _log.info("person joined team", username=user.username, team=team.name, role=role)
    return membership
