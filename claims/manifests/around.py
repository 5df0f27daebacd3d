"""What lies around the objects of a wish: kustomization.yaml, README.md, a pipeline's lines.

Pure; no times and no names of people.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from claims.manifests.presets import keeps, what_to_change
from claims.manifests.workloads import IMAGE, extended_resource
from claims.manifests.yaml import document
from claims.wish import ClassFacts, Owner, Style, Wish, Workload

_PIPELINE = '''\
"""A step of a Kubeflow pipeline that asks for GPUs: put your own image in."""

from kfp import dsl


@dsl.container_component
def step():
    return dsl.ContainerSpec(image={image})


@dsl.pipeline(name={name})
def pipeline():
    step().set_accelerator_type({resource}).set_accelerator_limit({count})
'''


def kustomization(wish: Wish, names: Sequence[str]) -> str:
    """The files that `kubectl apply -k` applies, in this order."""
    return document(
        {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "namespace": wish.namespace,
            "resources": list(names),
        }
    )


def kubectl_line(wish: Wish, names: Sequence[str]) -> str:
    """The command that applies the files, typed in their folder."""
    return f"kubectl apply --namespace={wish.namespace} {' '.join(f'--filename={name}' for name in names)}"


def readme(wish: Wish, names: Sequence[str], workload: str) -> str:
    """What to change, how to apply the files and how to take them back. `workload` is the name of its file."""
    listed = "".join(f"- `{name}`\n" for name in names)
    return (
        f"# {wish.name}\n\n"
        f"GPUs of the class `{wish.device_class}` in the namespace `{wish.namespace}`.\n\n"
        f"{_cost(wish)}\n\n"
        f"{what_to_change(wish, workload)}"
        f"## Apply\n\n{_first(wish, workload)}In this folder:\n\n"
        f"    kubectl apply -k .\n\nor\n\n    {kubectl_line(wish, names)}\n\nThis applies:\n\n{listed}\n"
        "`quota.yaml` is for an administrator and is not applied with the rest.\n\n"
        f"## Take back\n\n    kubectl delete -k .\n{_lost(wish)}"
    )


def _first(wish: Wish, workload: str) -> str:
    if wish.workload is Workload.OWN:
        return f"`{workload}` is your own manifest with the devices put into its first container. "
    return f"Put your own image into `{workload}`. "


def _lost(wish: Wish) -> str:
    return "\nThe volume goes too, with all that is on it.\n" if keeps(wish) else ""


def _cost(wish: Wish) -> str:
    if wish.style is Style.EXTENDED:
        return "A pod holds its devices from the moment it is placed until it ends."
    if wish.owner is Owner.SHARED:
        return "The claim is charged to the quota once it is applied; its devices are held while pods use it."
    return (
        "The file of the claim costs nothing by itself: devices are held from the moment a pod is placed until it ends."
    )


def pipeline(wish: Wish, facts: ClassFacts) -> str:
    """Lines for a Kubeflow pipeline (kfp 2): a task asks by the extended resource that the class serves."""
    name = json.dumps(extended_resource(facts))
    return _PIPELINE.format(image=json.dumps(IMAGE), name=json.dumps(wish.name), resource=name, count=wish.count)
