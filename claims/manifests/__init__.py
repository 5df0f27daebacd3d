"""The files of a wish, as bytes. Page, download, API and the body that is POSTed all come from here.

Pure and deterministic: no time and no person in them; the same wish, facts and number give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

from claims.manifests.claims import claim_template
from claims.manifests.quotas import quota
from claims.manifests.workloads import pod
from claims.wish import ClassFacts, Wish

REQUEST_LABEL = "portico.dev/request"


@dataclass(frozen=True, slots=True)
class File:
    """One YAML document under its name."""

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


@dataclass(frozen=True, slots=True)
class Files:
    """What a wish becomes: the template that is created, a pod that uses it, and a quota for an administrator."""

    template: File
    pod: File
    quota: File

    def __iter__(self) -> Iterator[File]:
        return iter((self.template, self.pod, self.quota))


def render(wish: Wish, facts: ClassFacts, key: str) -> Files:
    """The files of a wish. `key` is the form's number; it stands in the template's label, so that we know it again."""
    labels = {REQUEST_LABEL: key}
    return Files(
        template=File("template.yaml", claim_template(wish, facts, labels)),
        pod=File("pod.yaml", pod(wish)),
        quota=File("quota.yaml", quota(wish, facts)),
    )
