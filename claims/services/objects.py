"""One request's object in the cluster: of which kind it is, whether it is there and whether it is ours. Reads only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from claims.manifests import REQUEST_LABEL
from claims.wish import Owner, Wish
from dra.kube import requests
from dra.kube.errors import NotFoundError
from dra.kube.port import Cluster
from dra.kube.requests import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, Person, Resource
from dra.kube.responses import Header
from dra.objects import ObjectMeta, decode

_RESOURCES: Final[Mapping[Owner, Resource]] = {
    Owner.OWN: RESOURCE_CLAIM_TEMPLATES,
    Owner.SHARED: RESOURCE_CLAIMS,
}


def resource_of(wish: Wish) -> Resource:
    """What is created for a wish: a template from which each pod gets a claim, or the one claim that pods share."""
    return _RESOURCES[wish.owner]


def own_object(cluster: Cluster, wish: Wish, *, key: str, person: Person | None = None) -> ObjectMeta | None:
    """The object's metadata if it exists and carries this form's number; anything else of the name is not ours.

    Read as that person, or as the portal itself. KubeError where the cluster does not say.
    """
    request = requests.get(resource_of(wish), wish.name, namespace=wish.namespace)
    try:
        body = cluster.send(request.as_person(person) if person else request)
    except NotFoundError:
        return None
    metadata = decode(body, Header).metadata
    return metadata if metadata.labels.get(REQUEST_LABEL) == key else None
