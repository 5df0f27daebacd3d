"""Nudges for the sync. A doubled or lost one changes nothing: the lease and the cursor say what is due."""

from __future__ import annotations

import threading
import uuid
from typing import Any

from celery import shared_task, signals
from django.conf import settings
from django.utils import timezone

from gpuinventory.kinds import CAPABILITIES, KINDS
from gpuinventory.services import lease
from gpuinventory.services.capabilities import Look, refresh
from gpuinventory.services.stream import Stream, run_stream
from portal.cluster import kube_client

_stopping = threading.Event()


@signals.worker_shutting_down.connect  # type: ignore[untyped-decorator] # celery has no types
def stop_streams(**_: Any) -> None:
    """Streams leave within a second, their cursor written: a worker stops warm."""
    _stopping.set()


@shared_task  # type: ignore[untyped-decorator] # celery has no types
def stream(kind: str) -> None:
    """Follow one kind for a while, and nudge the successor."""
    run = Stream(
        kind=kind,
        holder=uuid.uuid4().hex,
        connect=kube_client,
        clock=timezone.now,
        seconds=settings.WATCH_SECONDS,
        stopping=_stopping.is_set,
    )
    if run_stream(run):
        stream.delay(kind)


@shared_task  # type: ignore[untyped-decorator] # celery has no types
def look() -> None:
    """See what the cluster can do."""
    refresh(
        Look(
            holder=uuid.uuid4().hex,
            connect=kube_client,
            clock=timezone.now,
            namespace=settings.PROBE_NAMESPACE,
        )
    )


@shared_task  # type: ignore[untyped-decorator] # celery has no types
def sweep() -> None:
    """Nudge every kind that nobody streams, and the look at the cluster when it is due."""
    for kind in lease.due_kinds(KINDS, timezone.now()):
        stream.delay(kind)
    if lease.due_kinds((CAPABILITIES,), timezone.now()):
        look.delay()
