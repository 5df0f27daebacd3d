"""Nudges for GPU requests. Each task calls one service; what is due stands in the rows."""

from __future__ import annotations

import structlog
from celery import shared_task
from django.utils import timezone

from claims.services import advance, observe
from dra.kube.errors import KubeError
from portal.cluster import kube_client

_log = structlog.get_logger(__name__)


@shared_task  # type: ignore[untyped-decorator] # celery has no types
def sweep() -> None:
    """See what became of every request, and nudge those whose outcome is unknown."""
    observe.observe()
    for pk in advance.due(timezone.now()):
        advance_gpu_request.delay(pk)


@shared_task  # type: ignore[untyped-decorator] # celery has no types
def advance_gpu_request(pk: int) -> None:
    """Find out by reading what became of this request; where the cluster is away the next sweep asks again."""
    try:
        advance.advance(pk, cluster=kube_client())
    except KubeError as error:
        _log.warning("gpu request not advanced", gpu_request=pk, error=str(error))
