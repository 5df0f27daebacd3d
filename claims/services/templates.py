"""One request's ResourceClaimTemplate in the cluster: whether it is there and whether it is ours. Reads only."""

from __future__ import annotations

from claims.manifests import REQUEST_LABEL
from dra.kube import requests
from dra.kube.errors import NotFoundError
from dra.kube.port import Cluster
from dra.kube.requests import RESOURCE_CLAIM_TEMPLATES, Person
from dra.kube.responses import Header
from dra.objects import ObjectMeta, decode


def own_template(
    cluster: Cluster, *, namespace: str, name: str, key: str, person: Person | None = None
) -> ObjectMeta | None:
    """The template's metadata if it exists and carries this form's number; anything else of the name is not ours.

    Read as that person, or as the portal itself. KubeError where the cluster does not say.
    """
    request = requests.get(RESOURCE_CLAIM_TEMPLATES, name, namespace=namespace)
    try:
        body = cluster.send(request.as_person(person) if person else request)
    except NotFoundError:
        return None
    metadata = decode(body, Header).metadata
    return metadata if metadata.labels.get(REQUEST_LABEL) == key else None
