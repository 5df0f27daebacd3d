"""Who belongs where: the reads behind every right. Each is one query."""

from __future__ import annotations

from portal.models import Team, TeamNamespace, User


def teams_of(user: User) -> list[Team]:
    """The user's teams, by name."""
    return list(Team.objects.filter(memberships__user=user))


def namespaces_of(user: User) -> tuple[str, ...]:
    """The namespaces of the user's teams, by name."""
    rows = TeamNamespace.objects.filter(team__memberships__user=user)
    return tuple(rows.values_list("namespace", flat=True))


def may_use(user: User, namespace: str) -> bool:
    """Whether a team of the user works in that namespace."""
    return TeamNamespace.objects.filter(namespace=namespace, team__memberships__user=user).exists()


def teams_with_people() -> list[Team]:
    """Every team with its namespaces and members. Four queries, whatever their number."""
    return list(Team.objects.prefetch_related("namespaces", "memberships__user"))


def people_without_team() -> list[User]:
    """Operators and guests, by name. One query."""
    return list(User.objects.filter(memberships=None).order_by("username"))
