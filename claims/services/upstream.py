"""What the cluster's no means to the person who asked: an error of the door to a refusal with the server's sentence.

The wording of quota, policy and webhook refusals is matched by substring only (apiserver admission).
"""

from __future__ import annotations

from dataclasses import dataclass

from claims.refusals import Code, Refusal, refuse
from dra.kube.errors import (
    AlreadyExistsError,
    BusyError,
    ForbiddenError,
    KubeError,
    UnauthorizedError,
    UnreachableError,
)
from dra.kube.requests import Person


@dataclass(frozen=True, slots=True)
class Attempt:
    """What was tried, on which resource and as whom; `namespace` "" for one of the whole cluster."""

    verb: str
    person: Person
    namespace: str
    name: str
    resource: str

    @property
    def check(self) -> str:
        """The command by which an administrator sees whether the person may."""
        groups = "".join(f" --as-group={group}" for group in self.person.groups)
        space = f" --namespace={self.namespace}" if self.namespace else ""
        return f"kubectl auth can-i {self.verb} {self.resource}{space} --as={self.person.username}{groups}"


def refusal_of(error: KubeError, attempt: Attempt) -> Refusal:
    """The refusal that a person can act on."""
    upstream = str(error)
    match error:
        case UnreachableError():
            return refuse(Code.CLUSTER_SILENT, upstream=upstream)
        case BusyError():
            return refuse(Code.CLUSTER_BUSY, upstream=upstream)
        case AlreadyExistsError():
            return refuse(Code.NAME_TAKEN, "name", name=attempt.name, namespace=attempt.namespace, upstream=upstream)
        case _:
            return _no(error, upstream, attempt)


def _no(error: KubeError, upstream: str, attempt: Attempt) -> Refusal:
    if "denied request" in upstream or "denied the request" in upstream:
        return refuse(Code.DENIED, upstream=upstream)
    if isinstance(error, UnauthorizedError) or "impersonate" in upstream:
        return refuse(Code.PORTAL_FORBIDDEN, upstream=upstream)
    if "exceeded quota" in upstream:
        return refuse(Code.OVER_QUOTA, namespace=attempt.namespace, upstream=upstream)
    if isinstance(error, ForbiddenError):
        return refuse(Code.FORBIDDEN, upstream=upstream, command=attempt.check)
    return refuse(Code.INVALID, upstream=upstream)
