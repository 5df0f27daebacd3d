"""People, teams and which namespaces a team works in. Rights follow from memberships alone.

Names become user and group names in the cluster (`<prefix><name>`), so their rules are kept by the database too.
"""

from __future__ import annotations

from typing import ClassVar

from django.contrib.auth.models import AbstractUser
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models

from dra.names import MAX_LABEL, is_dns_label

RESERVED_TEAMS = frozenset({"operators", "system"})
MAX_USERNAME = 63


def check_username(name: str) -> None:
    """Refuse names that Kubernetes keeps for itself; a person must never act as one of its own identities."""
    if name.lower().startswith("system:"):
        raise ValidationError(
            "%(name)s can't be a user name: names that start with system: belong to Kubernetes itself. "
            "Choose another name, such as alice.",
            code="system",
            params={"name": name},
        )


check_username_characters = RegexValidator(
    r"\A[a-z0-9][a-z0-9._@-]*\Z",
    "A user name has small letters, digits, dots, dashes, underscores and @ only, and starts with a letter or digit, "
    "such as alice or alice@example.org.",
    code="characters",
)


def check_dns_label(name: str) -> None:
    """Refuse what Kubernetes does not take as a namespace or a part of a name."""
    if not is_dns_label(name):
        raise ValidationError(
            "%(name)s is not a DNS label: at most 63 small letters, digits and dashes, with a letter or digit at both "
            "ends, such as ml-team.",
            code="label",
            params={"name": name},
        )


def check_team_name(name: str) -> None:
    """Refuse names whose group has a meaning of its own."""
    if name in RESERVED_TEAMS:
        raise ValidationError(
            "%(name)s is reserved: its group would be that of the portal's %(name)s. Choose another name.",
            code="reserved",
            params={"name": name},
        )


class User(AbstractUser):
    """A person. `is_operator` sees the whole fleet; everything else comes from memberships."""

    username = models.CharField(
        "user name",
        max_length=MAX_USERNAME,
        unique=True,
        validators=[check_username, check_username_characters],
        error_messages={"unique": "This user name is taken. Choose another."},
    )
    is_operator = models.BooleanField("operator", default=False)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=~models.Q(username__contains=":"),
                name="user_name_without_colon",
                violation_error_message="A user name has no colon: Kubernetes reads it as a kind of identity.",
            ),
        ]

    def __str__(self) -> str:
        return self.username


class Team(models.Model):
    """People who share namespaces. The name is a DNS label; its group in the cluster is `<prefix><name>`."""

    name = models.CharField(max_length=MAX_LABEL, unique=True, validators=[check_dns_label, check_team_name])

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.CheckConstraint(condition=~models.Q(name__in=sorted(RESERVED_TEAMS)), name="team_name_not_reserved"),
        ]

    def __str__(self) -> str:
        return self.name


class TeamNamespace(models.Model):
    """A namespace belongs to one team; a team may own several."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="namespaces")
    namespace = models.CharField(max_length=MAX_LABEL, unique=True, validators=[check_dns_label])

    class Meta:
        ordering: ClassVar = ["namespace"]

    def __str__(self) -> str:
        return self.namespace


class Role(models.TextChoices):
    """What a member may do in the team."""

    REQUESTER = "requester", "Requester"
    LEAD = "lead", "Lead"


class Membership(models.Model):
    """One person in one team."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=16, choices=Role, default=Role.REQUESTER)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "team"], name="one_membership_per_team"),
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="membership_role_known"),
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.team} as {self.role}"
