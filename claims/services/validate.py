"""What the API server would say to each object of a wish, asked as the person: dry runs, nothing is stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import yaml

from claims.manifests import File
from claims.refusals import Code, Refusal, RefusalError, refuse
from claims.services.upstream import Attempt, refusal_of
from claims.wish import Wish
from dra.kube import requests
from dra.kube.errors import KubeError
from dra.kube.port import Cluster
from dra.kube.requests import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, Person, Resource

_KINDS: Final[Mapping[str, Resource]] = {
    resource.kind: resource
    for resource in (
        RESOURCE_CLAIM_TEMPLATES,
        RESOURCE_CLAIMS,
        PODS,
        Resource("", "v1", "services", "Service", namespaced=True),
        Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", namespaced=True),
        Resource("apps", "v1", "deployments", "Deployment", namespaced=True),
        Resource("apps", "v1", "statefulsets", "StatefulSet", namespaced=True),
        Resource("apps", "v1", "daemonsets", "DaemonSet", namespaced=True),
        Resource("apps", "v1", "replicasets", "ReplicaSet", namespaced=True),
        Resource("batch", "v1", "jobs", "Job", namespaced=True),
        Resource("batch", "v1", "cronjobs", "CronJob", namespaced=True),
        Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", namespaced=True),
    )
}
_NO_ANSWER: Final = frozenset({Code.CLUSTER_SILENT, Code.CLUSTER_BUSY})


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the API server says to one object; no refusal: it would take it."""

    file: str
    kind: str
    name: str
    refusal: Refusal | None

    @property
    def tried(self) -> bool:
        """Whether the portal may try objects of this kind at all."""
        return self.refusal is None or self.refusal.code is not Code.UNTRIED


def validate(files: Iterable[File], wish: Wish, *, person: Person, cluster: Cluster) -> tuple[Verdict, ...]:
    """One verdict for each file that would be applied, in their order. RefusalError: the cluster does not answer."""
    return tuple(_verdicts(files, wish, person, cluster))


def _verdicts(files: Iterable[File], wish: Wish, person: Person, cluster: Cluster) -> Iterator[Verdict]:
    for file in files:
        document = yaml.load(file.text, Loader=yaml.CSafeLoader)
        resource, name = _KINDS[document["kind"]], str(document["metadata"]["name"])
        attempt = Attempt("create", person, wish.namespace, name, resource.full_name)
        refusal = _try(file, resource, attempt, cluster)
        if refusal and refusal.code in _NO_ANSWER:
            raise RefusalError(refusal)
        yield Verdict(file.name, resource.kind, name, refusal)


def _try(file: File, resource: Resource, attempt: Attempt, cluster: Cluster) -> Refusal | None:
    request = requests.create(resource, file.content, namespace=attempt.namespace, yaml=True, dry_run=True)
    try:
        cluster.send(request.as_person(attempt.person))
    except KubeError as error:
        refusal = refusal_of(error, attempt)
        ours = resource in (RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS)
        return (
            refusal if ours or refusal.code is not Code.PORTAL_FORBIDDEN else _untried(error, file, resource, attempt)
        )
    return None


def _untried(error: KubeError, file: File, resource: Resource, attempt: Attempt) -> Refusal:
    """The portal lacks the right to try this kind: a choice of the administrator's, and no fault of the file."""
    command = f"kubectl create --dry-run=server --namespace={attempt.namespace} --filename={file.name}"
    return refuse(Code.UNTRIED, kind=resource.kind, upstream=str(error), command=command)
