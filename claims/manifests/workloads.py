"""Workloads that use the devices of a wish, to start from, and a deployment's autoscaler. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from claims.manifests.claims import DEVICE_REQUEST, pod_claim
from claims.manifests.presets import (
    NAME_LABEL,
    claim_templates,
    container_of,
    recipe_of,
    serves,
    service_name,
    volumes_of,
)
from claims.manifests.yaml import Value, document
from claims.wish import ClassFacts, Style, Wish, Workload
from dra.extended import implicit_name

IMAGE = "registry.example/replace-me:latest"  # a valid reference to a registry that can't exist (RFC 2606)

_COPY = """\
to start from: put your own image in. For a workload
of your own copy two lists: spec.resourceClaims, and
resources.claims of each container that uses the device."""
_COPY_LIMIT = """\
to start from: put your own image in. For a workload
of your own copy resources.limits of its container."""
_TITLES = {
    Workload.POD: "A pod",
    Workload.DEPLOYMENT: "A deployment",
    Workload.JOB: "A job",
    Workload.STATEFUL_SET: "A stateful set",
    Workload.OWN: "A pod",
}
_KINDS = {
    Workload.POD: ("v1", "Pod"),
    Workload.DEPLOYMENT: ("apps/v1", "Deployment"),
    Workload.JOB: ("batch/v1", "Job"),
    Workload.STATEFUL_SET: ("apps/v1", "StatefulSet"),
    Workload.OWN: ("v1", "Pod"),
}
_CPU_TARGET = 80  # percent of the CPU that a pod requests; the autoscaler needs such a request


def workload(wish: Wish, facts: ClassFacts) -> str:
    """The workload as YAML; its container sees the devices of the wish."""
    api_version, kind = _KINDS[wish.workload]
    copy = _COPY_LIMIT if wish.style is Style.EXTENDED else _COPY
    return document(
        {
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {"name": wish.name, "namespace": wish.namespace, **_labels(wish)},
            "spec": _spec(wish, facts),
        },
        comment=f"{_TITLES[wish.workload]} {copy}",
    )


def autoscaler(wish: Wish) -> str:
    """The HorizontalPodAutoscaler of a deployment, as YAML; ValueError for a wish without."""
    if wish.autoscale is None:
        raise ValueError(f"{wish.name} has no autoscaler")
    least, most = wish.autoscale
    cpu: Value = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": _CPU_TARGET}}
    return document(
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": wish.name, "namespace": wish.namespace},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": wish.name},
                "minReplicas": least,
                "maxReplicas": most,
                "metrics": [{"type": "Resource", "resource": cpu}],
            },
        },
        comment="Each new replica takes devices of its own, as far as there are any.",
    )


def extended_resource(facts: ClassFacts) -> str:
    """The resource name by which a container asks for a device of the class: its own, else the implicit one."""
    return facts.extended_resource or implicit_name(facts.device_class)


def container_resources(wish: Wish, facts: ClassFacts) -> dict[str, Value]:
    """What a container's `resources` says."""
    if wish.style is Style.EXTENDED:
        return {"limits": {extended_resource(facts): str(wish.count)}}
    return {"claims": [{"name": DEVICE_REQUEST}]}


def _labels(wish: Wish) -> dict[str, Value]:
    """A pod by itself is found by its service; those of other workloads carry the label in their template."""
    return {"labels": {NAME_LABEL: wish.name}} if serves(wish) and wish.workload is Workload.POD else {}


def _spec(wish: Wish, facts: ClassFacts) -> Mapping[str, Value]:
    pod = _pod_spec(wish, facts)
    labels: Value = {NAME_LABEL: wish.name}
    template: Value = {"metadata": {"labels": labels}, "spec": pod}
    match wish.workload:
        case Workload.DEPLOYMENT if wish.autoscale:
            return {"selector": {"matchLabels": labels}, "template": template}
        case Workload.DEPLOYMENT:
            return {"replicas": wish.replicas, "selector": {"matchLabels": labels}, "template": template}
        case Workload.STATEFUL_SET:
            recipe = recipe_of(wish)
            name = service_name(wish) if recipe else wish.name
            head: Mapping[str, Value] = {"serviceName": name, "replicas": wish.replicas}
            tail = {"volumeClaimTemplates": claim_templates(recipe)} if recipe else {}
            return {**head, "selector": {"matchLabels": labels}, "template": template, **tail}
        case Workload.JOB:
            return {"parallelism": wish.replicas, "completions": wish.replicas, "template": template}
        case _:
            return pod


def _pod_spec(wish: Wish, facts: ClassFacts) -> dict[str, Value]:
    spec: dict[str, Value] = {}
    if wish.workload not in {Workload.DEPLOYMENT, Workload.STATEFUL_SET}:
        spec["restartPolicy"] = "Never"
    if wish.priority:
        spec["priorityClassName"] = wish.priority
    recipe = recipe_of(wish)
    if recipe:
        spec |= recipe.pod
    spec["containers"] = [_container(wish, facts)]
    if recipe:
        spec["volumes"] = volumes_of(wish, recipe)
    if wish.style is Style.CLAIMS:
        spec["resourceClaims"] = [pod_claim(wish)]
    return spec


def _container(wish: Wish, facts: ClassFacts) -> dict[str, Value]:
    resources = container_resources(wish, facts)
    if wish.autoscale:
        resources = {"requests": {"cpu": "1"}, **resources}
    recipe = recipe_of(wish)
    more = container_of(recipe) if recipe else {}
    return {"name": "main", "image": IMAGE, **more, "resources": resources}
