"""Settings to the way to the cluster, and a user to the person it knows. The only place where they meet.

Reads run as the portal's own identity; every write is sent as a person (`Request.as_person`).
"""

from __future__ import annotations

from functools import lru_cache

from django.conf import settings
from django.core.exceptions import PermissionDenied

from dra.kube.client import KubeClient
from dra.kube.requests import Person
from portal import selectors
from portal.models import User

OPERATORS = "operators"


def kube_client() -> KubeClient:
    """This process's client; made on first use. UnreachableError if there is no usable configuration."""
    return _client(settings.KUBECONFIG)


@lru_cache(maxsize=4)
def _client(kubeconfig: str) -> KubeClient:
    return KubeClient.from_environment(kubeconfig or None)


def client_of(kubeconfig: str, *, timeout: float) -> KubeClient:
    """A client with that file's credentials, such as a simulator's administrator; waits so many seconds at most."""
    return KubeClient.from_environment(kubeconfig, timeout=timeout)


def person_of(user: User) -> Person:
    """The user and groups that the API server shall check: every name carries the prefix.

    PermissionDenied for a name with a colon: with any prefix it must not read as an identity of Kubernetes itself.
    """
    if ":" in user.username:
        raise PermissionDenied(f"{user.username} can't act in the cluster: the name belongs to Kubernetes itself.")
    prefix = settings.IMPERSONATION_PREFIX
    teams = [team.name for team in selectors.teams_of(user)]
    groups = [*teams, OPERATORS] if user.is_operator else teams
    return Person(f"{prefix}{user.username}", tuple(f"{prefix}{group}" for group in groups))
