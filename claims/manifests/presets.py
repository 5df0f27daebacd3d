"""Presets: what software that is known by name needs besides devices, and what a person has to change in it.

Pure. Sources: Jupyter Docker Stacks (user `jovyan`, group 100, port 8888); NVIDIA NIM for LLMs on Kubernetes (user
1000, port 8000, /v1/health, /opt/nim/.cache, secrets of NGC).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from claims.manifests.yaml import Value, document
from claims.wish import Preset, Style, Wish, Workload
from dra.names import MAX_LABEL

NAME_LABEL: Final = "app.kubernetes.io/name"
_SHARED_MEMORY: Final[Mapping[str, Value]] = {"name": "shm", "emptyDir": {"medium": "Memory"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One preset: its port, its volume as name, path and size, and what goes into the container and the pod besides."""

    port: int
    volume: str
    path: str
    size: str
    container: Mapping[str, Value]
    pod: Mapping[str, Value]
    change: str


_NOTEBOOK: Final = Recipe(
    port=8888,
    volume="home",
    path="/home/jovyan",
    size="10Gi",
    container={},
    pod={"securityContext": {"fsGroup": 100}},
    change=(
        "- `image` in `{file}`: one that starts JupyterLab on port 8888 as the user `jovyan`, such as those of the\n"
        "  Jupyter Docker Stacks with CUDA.\n"
        "- The size of the volume, {size}: /home/jovyan lies on it and outlives the pod.\n\n"
        "Open it: run the command, read the token from the pod's log, and go to http://localhost:8888.\n"
    ),
)
_NIM: Final = Recipe(
    port=8000,
    volume="cache",
    path="/opt/nim/.cache",
    size="50Gi",
    container={
        "env": [{"name": "NGC_API_KEY", "valueFrom": {"secretKeyRef": {"name": "ngc-api", "key": "NGC_API_KEY"}}}],
        # The first start loads the model, which takes many minutes.
        "startupProbe": {
            "httpGet": {"path": "/v1/health/ready", "port": "http"},
            "periodSeconds": 10,
            "failureThreshold": 180,
        },
        "readinessProbe": {"httpGet": {"path": "/v1/health/ready", "port": "http"}, "periodSeconds": 10},
        "livenessProbe": {"httpGet": {"path": "/v1/health/live", "port": "http"}, "periodSeconds": 10},
    },
    pod={
        "securityContext": {"runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 1000},
        "imagePullSecrets": [{"name": "ngc-secret"}],
    },
    change=(
        "- `image` in `{file}`: the NIM of your model, nvcr.io/nim/PUBLISHER/MODEL:TAG.\n"
        "- Two secrets with your key of NGC:\n\n"
        "      kubectl create secret docker-registry ngc-secret --namespace={namespace} \\\n"
        "        --docker-server=nvcr.io --docker-username='$oauthtoken' --docker-password=\"$NGC_API_KEY\"\n"
        "      kubectl create secret generic ngc-api --namespace={namespace} \\\n"
        '        --from-literal=NGC_API_KEY="$NGC_API_KEY"\n\n'
        "- The size of the volume, {size}: the model is kept on it, so that a second start is quick.\n\n"
        "Ask it: run the command, then `curl http://localhost:8000/v1/models`.\n"
    ),
)
RECIPES: Final[Mapping[Preset, Recipe]] = {Preset.NOTEBOOK: _NOTEBOOK, Preset.NIM: _NIM}
_PIPELINE: Final = {
    Style.EXTENDED: "`pipeline.py` holds the lines for a pipeline (kfp 2): put your own image in.\n",
    Style.CLAIMS: (
        "A step of a pipeline (kfp 2) names an extended resource and no claim: choose that style on the form, and\n"
        "`pipeline.py` is among the files. These files serve workloads beside the pipeline.\n"
    ),
}


def recipe_of(wish: Wish) -> Recipe | None:
    """What its preset adds to the files, None for nothing: a workload of one's own stays as it is."""
    return RECIPES.get(wish.preset) if wish.preset and wish.workload is not Workload.OWN else None


def serves(wish: Wish) -> bool:
    """Whether pods have an address inside the cluster: those of a job have none."""
    return recipe_of(wish) is not None and wish.workload is not Workload.JOB


def keeps(wish: Wish) -> bool:
    """Whether there is a volume beside the workload: each pod of a stateful set brings its own."""
    return recipe_of(wish) is not None and wish.workload is not Workload.STATEFUL_SET


def container_of(recipe: Recipe) -> dict[str, Value]:
    """What the container has besides image and devices."""
    return {
        "ports": [{"name": "http", "containerPort": recipe.port}],
        **recipe.container,
        "volumeMounts": [
            {"name": recipe.volume, "mountPath": recipe.path},
            {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108 # a place inside the container
        ],
    }


def volumes_of(wish: Wish, recipe: Recipe) -> list[Value]:
    """The pod's volumes: shared memory, and the one that stays unless a stateful set brings it."""
    kept: Value = {"name": recipe.volume, "persistentVolumeClaim": {"claimName": _volume_name(wish, recipe)}}
    return [kept, _SHARED_MEMORY] if keeps(wish) else [_SHARED_MEMORY]


def claim_templates(recipe: Recipe) -> list[Value]:
    """A stateful set's volumes that stay."""
    return [{"metadata": {"name": recipe.volume}, "spec": _storage(recipe)}]


def volume(wish: Wish, recipe: Recipe) -> str:
    """The PersistentVolumeClaim as YAML."""
    metadata: Value = {"name": _volume_name(wish, recipe), "namespace": wish.namespace}
    return document(
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": _storage(recipe)},
        comment="What stays when the pod goes. One node at a time can use it.",
    )


def service(wish: Wish, recipe: Recipe) -> str:
    """The Service as YAML."""
    return document(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": service_name(wish), "namespace": wish.namespace},
            "spec": {
                "selector": {NAME_LABEL: wish.name},
                "ports": [{"name": "http", "port": recipe.port, "targetPort": "http"}],
            },
        }
    )


def service_name(wish: Wish) -> str:
    """The wish's name; a Service's must begin with a letter (DNS label of RFC 1035)."""
    return wish.name if wish.name[0].isalpha() else f"s-{wish.name}"[:MAX_LABEL].rstrip("-")


def what_to_change(wish: Wish, file: str) -> str:
    """The part of the README about the preset, "" without one."""
    recipe = recipe_of(wish)
    if recipe is None:
        return f"## Kubeflow\n\n{_PIPELINE[wish.style]}\n" if wish.preset is Preset.KUBEFLOW else ""
    said = recipe.change.format(file=file, size=recipe.size, namespace=wish.namespace)
    target = f"{wish.workload}/{wish.name}"
    forward = f"    kubectl port-forward --namespace={wish.namespace} {target} {recipe.port}\n"
    return f"## What to change\n\n{said}\n{forward}\n"


def _volume_name(wish: Wish, recipe: Recipe) -> str:
    return f"{wish.name}-{recipe.volume}"


def _storage(recipe: Recipe) -> dict[str, Value]:
    return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": recipe.size}}}
