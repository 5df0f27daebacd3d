"""Manifests as published, with what this cluster can't have replaced: images, commands, CPU and memory sizes.

And one field of the pod: the host's network, since the test node has no pod network. Nothing about devices changes.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

IMAGE = "localhost/portico-cuda:1"  # busybox, and a CUDA program for the stand-in silicon
FOLDER = Path(__file__).parent / "manifests"
# As pid 1 a bare `sleep` would sit out SIGTERM. A grace period of 0 is no way out: the pod's object would be gone
# before the kubelet has unprepared anything.
SLEEP = ("/bin/sh", "-c", "trap 'exit 0' TERM; sleep 2147483647 & wait")
SIZES = {"cpu": "1m", "memory": "1Mi"}
LIMITS = {"cpu": "1", "memory": "64Mi"}
type Document = dict[str, Any]


def manifests(name: str) -> list[Document]:
    """The documents of a published file, unchanged."""
    return [document for document in yaml.safe_load_all((FOLDER / name).read_text()) if document]


def overlaid(document: Document, command: Sequence[str] = SLEEP) -> Document:
    """The same document, fit to run here."""
    changed = copy.deepcopy(document)
    for spec in _pod_specs(changed):
        spec["hostNetwork"] = True
        for container in spec["containers"]:
            container.pop("args", None)
            container |= {"image": IMAGE, "command": list(command)}
            _resize(container.get("resources", {}))
    return changed


def _pod_specs(document: Document) -> list[Document]:
    if document["kind"] == "Pod":
        return [document["spec"]]
    template = document.get("spec", {}).get("template")
    return [template["spec"]] if template else []


def _resize(resources: Document) -> None:
    for field, sizes in (("requests", SIZES), ("limits", LIMITS)):
        given = resources.get(field, {})
        given |= {name: size for name, size in sizes.items() if name in given}
