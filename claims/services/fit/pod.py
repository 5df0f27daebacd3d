"""What the pods of a wish ask of their nodes besides devices, read out of the workload's file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import yaml

from claims.manifests import Files
from dra.allocation import Snapshot
from dra.extended import serving_classes
from dra.fleet import PodNeeds, pod_needs
from dra.objects import ObjectMeta, Pod, PodSpec, decode


def needs_of(files: Files, snapshot: Snapshot) -> PodNeeds:
    """The needs of one pod. InvalidObjectError or InvalidQuantityError where the workload asks for what can't be read.

    Extended resources that device classes answer for are left out: the claim of the file asks for those.
    """
    pod = Pod(metadata=ObjectMeta(name="pod"), spec=_pod_spec(files.pod.text))
    extended = any("/" in name for each in pod.spec.containers for name in each.resources.requests)
    return pod_needs(pod, serving_classes(snapshot.classes.values()) if extended else ())


@lru_cache(maxsize=64)
def _pod_spec(text: str) -> PodSpec:
    document = yaml.load(text, Loader=yaml.CSafeLoader)
    return decode(json.dumps(_inner(document["spec"]), default=str).encode(), PodSpec)


def _inner(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """A pod's spec has containers; those of workloads hold it in a template, a CronJob's in that of its jobs."""
    while "containers" not in spec:
        spec = (spec.get("template") or spec["jobTemplate"])["spec"]
    return spec
