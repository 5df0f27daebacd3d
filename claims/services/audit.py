"""Write the audit line of a deed, and the log line beside it. Called by the other services inside their transaction."""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from claims.models import ClassVerb, GPUClassEvent, GpuRequest, GpuRequestEvent, Verb
from claims.refusals import Refusal

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Deed:
    """Who did what, and in which web request; both names are empty where the portal looked by itself."""

    verb: Verb | ClassVerb
    username: str = ""
    request_id: str = ""


def record(deed: Deed, gpu_request: GpuRequest) -> None:
    """The deed brought the request to the state it is in now."""
    _write(deed, gpu_request, (gpu_request.namespace, gpu_request.name), gpu_request.state, "")


def record_refusal(deed: Deed, about: tuple[str, str], refusal: Refusal, gpu_request: GpuRequest | None = None) -> None:
    """The deed was refused. `about` is namespace and name."""
    _write(deed, gpu_request, about, refusal.code, _said(refusal))


def record_class(deed: Deed, name: str, result: str, detail: str = "") -> None:
    """The deed about the GPU class of that name ended so. It holds nothing of what the class says."""
    GPUClassEvent.objects.create(
        username=deed.username, name=name, verb=deed.verb, result=result, detail=detail, request_id=deed.request_id
    )
    _log.info("gpu class changed", verb=deed.verb, user=deed.username, name=name, result=result)


def record_class_refusal(deed: Deed, name: str, refusal: Refusal) -> None:
    """The deed about that GPU class was refused."""
    record_class(deed, name, refusal.code, _said(refusal))


def _said(refusal: Refusal) -> str:
    return dict(refusal.facts).get("upstream", "")


def _write(deed: Deed, gpu_request: GpuRequest | None, about: tuple[str, str], result: str, detail: str) -> None:
    namespace, name = about
    GpuRequestEvent.objects.create(
        gpu_request=gpu_request,
        username=deed.username,
        namespace=namespace,
        name=name,
        verb=deed.verb,
        result=result,
        detail=detail,
        request_id=deed.request_id,
    )
    _log.info(
        "gpu request changed", verb=deed.verb, user=deed.username, namespace=namespace, name=name, result=result,
        gpu_request=gpu_request.pk if gpu_request else None,
    )  # fmt: skip
