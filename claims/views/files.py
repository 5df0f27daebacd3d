"""Files as pages show them, one under each tab, and as they are downloaded: the same bytes. Nothing is made here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from django.http import HttpResponse
from django.utils.html import escape
from django.utils.safestring import SafeString

from claims.manifests import File
from claims.views.highlight import yaml

_MEDIA: Final = {"yaml": "application/yaml", "md": "text/markdown; charset=utf-8", "py": "text/x-python; charset=utf-8"}
_MOST_MARKED: Final = 50_000  # characters
_START: Final = "To start from: put your own image in."
# By the name of the file: its tab, and what to know of it.
_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "template.yaml": ("Template", "What is created. Each pod that names it gets devices of its own."),
    "claim.yaml": ("Claim", "What is created. All pods that name it share its devices."),
    "pod.yaml": ("Pod", "A pod to start from, or to copy two lists from into a workload of your own."),
    "deployment.yaml": ("Deployment", _START),
    "job.yaml": ("Job", _START),
    "statefulset.yaml": ("StatefulSet", _START),
    "workload.yaml": ("Workload", "Your own manifest with the devices put in."),
    "autoscaler.yaml": ("Autoscaler", "Follows the load, as far as there are devices."),
    "service.yaml": ("Service", "The address of the pods inside the cluster."),
    "volume.yaml": ("Volume", "What stays when the pod goes."),
    "kustomization.yaml": ("Kustomization", "Applies all of it: kubectl apply -k ."),
    "README.md": ("README", "What to change, how to apply it and how to take it back."),
    "pipeline.py": ("Pipeline", "Lines for a Kubeflow pipeline."),
    "quota.yaml": ("Quota", "For an administrator: how many devices of the class the namespace may have."),
}


@dataclass(frozen=True, slots=True)
class ShownFile:
    """One file under its tab. `address` is where it is downloaded, where that is not the form's own address."""

    file: File
    address: str = ""

    @property
    def slot(self) -> str:
        """The part of ids that is this file's, such as `template`."""
        return self.file.name.partition(".")[0].lower()

    @property
    def tab(self) -> str:
        """The word on the tab."""
        return _WORDS[self.file.name][0]

    @property
    def note(self) -> str:
        """What to know of the file."""
        return _WORDS[self.file.name][1]

    @property
    def prose(self) -> bool:
        """Whether its lines may be broken where the screen ends."""
        return self.file.name.endswith(".md")

    @property
    def html(self) -> SafeString:
        """The text, escaped; of YAML with its parts marked for CSS, which takes long for long texts."""
        marked = self.file.name.endswith(".yaml") and len(self.file.text) <= _MOST_MARKED
        return yaml(self.file.text) if marked else escape(self.file.text)


def shown(files: Iterable[File]) -> tuple[ShownFile, ...]:
    """The tabs."""
    return tuple(ShownFile(file) for file in files)


def download(file: File, name: str) -> HttpResponse:
    """The file's bytes, to be saved under the request's name."""
    return attachment(file.content, f"{name}-{file.name}", _MEDIA[file.name.rpartition(".")[2]])


def attachment(content: bytes, name: str, media: str) -> HttpResponse:
    """Bytes to be saved. Names are labels of DNS and names of ours, so they need no quoting."""
    response = HttpResponse(content, content_type=media)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
