"""The files of a wish, as bytes. Page, download, API and the body that is POSTed all come from here.

Pure and deterministic: no time and no person in them; the same wish, facts and number give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from types import MappingProxyType

from claims.manifests.around import kubectl_line, kustomization, pipeline, readme
from claims.manifests.claims import claim_template, resource_claim
from claims.manifests.presets import keeps, recipe_of, serves, service, volume
from claims.manifests.quotas import quota
from claims.manifests.workloads import autoscaler, workload
from claims.wish import ClassFacts, Owner, Preset, Style, Wish, Workload

REQUEST_LABEL = "portico.dev/request"

# The file of what is created: each pod gets a claim of its own, or all share one.
OBJECT_FILES: Mapping[Owner, str] = {Owner.OWN: "template.yaml", Owner.SHARED: "claim.yaml"}
_NONE: Mapping[str, ClassFacts] = MappingProxyType({})
_WORKLOAD_FILES = {
    Workload.POD: "pod.yaml",
    Workload.DEPLOYMENT: "deployment.yaml",
    Workload.JOB: "job.yaml",
    Workload.STATEFUL_SET: "statefulset.yaml",
    Workload.OWN: "workload.yaml",
}


@dataclass(frozen=True, slots=True)
class File:
    """One file under its name."""

    name: str
    text: str

    @property
    def content(self) -> bytes:
        """The bytes, UTF-8."""
        return self.text.encode()

    @property
    def digest(self) -> str:
        """SHA-256 of the bytes, in hex."""
        return sha256(self.content).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """What a wish becomes: the object that is created, a workload that uses it, and a quota for an administrator.

    `template` is a ResourceClaim where pods share one. By extended resource nothing is created: then it only says what
    the scheduler will ask, and is not among `applied`.
    """

    template: File
    pod: File
    quota: File
    applied: tuple[File, ...]
    around: tuple[File, ...]
    command: str

    @property
    def creatable(self) -> bool:
        """Whether there is anything that the portal can create: by extended resource there is not."""
        return self.template in self.applied

    @property
    def all(self) -> tuple[File, ...]:
        """Every file, as the tabs show them and the archive holds them."""
        return (*self.applied, *self.around, self.quota)

    @property
    def together(self) -> File:
        """All that is applied as one file of several documents."""
        return File("manifest.yaml", "---\n".join(file.text for file in self.applied))


def render(
    wish: Wish, facts: ClassFacts, key: str, *, others: Mapping[str, ClassFacts] = _NONE, own: File | None = None
) -> Files:
    """The files of a wish. `key` is the form's number; it stands in the template's label, so that we know it again.

    `others` has the facts of its alternatives' classes; one that is not there is a DeviceClass.
    `own` is the workload that was pasted, patched by `claims.pasted`; without it the wish's own one is written.
    """
    template = _template(wish, {**others, wish.device_class: facts}, {REQUEST_LABEL: key})
    pod = own or File(workload_file(wish), workload(wish, facts))
    scaler = (File("autoscaler.yaml", autoscaler(wish)),) if wish.autoscale and not own else ()
    claims = (template,) if wish.style is Style.CLAIMS else ()
    applied = (*claims, *_beside(wish), pod, *scaler)
    return Files(
        template=template,
        pod=pod,
        quota=File("quota.yaml", quota(wish, facts)),
        applied=applied,
        around=_around(wish, facts, tuple(file.name for file in applied)),
        command=kubectl_line(wish, [file.name for file in applied]),
    )


def _beside(wish: Wish) -> tuple[File, ...]:
    """What a preset's workload needs beside it."""
    recipe = recipe_of(wish)
    if recipe is None:
        return ()
    kept = (File("volume.yaml", volume(wish, recipe)),) if keeps(wish) else ()
    return (*kept, File("service.yaml", service(wish, recipe))) if serves(wish) else kept


def workload_file(wish: Wish) -> str:
    """The name of the workload's file."""
    return _WORKLOAD_FILES[wish.workload]


def _template(wish: Wish, classes: Mapping[str, ClassFacts], labels: Mapping[str, str]) -> File:
    write = resource_claim if wish.owner is Owner.SHARED else claim_template
    return File(OBJECT_FILES[wish.owner], write(wish, classes, labels))


def _around(wish: Wish, facts: ClassFacts, names: tuple[str, ...]) -> tuple[File, ...]:
    files = (
        File("kustomization.yaml", kustomization(wish, names)),
        File("README.md", readme(wish, names, workload_file(wish))),
    )
    if wish.preset is Preset.KUBEFLOW and wish.style is Style.EXTENDED:
        return (*files, File("pipeline.py", pipeline(wish, facts)))
    return files
