"""Find out by reading what became of a request whose outcome is not known. It never writes to the cluster.

Due are a submit whose answer was lost, an object that the read model did not show in time, and one that it shows no
more: only the cluster itself may say that something is gone.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from claims import selectors
from claims.lifecycle import Event, State, can, move
from claims.models import GpuRequest, Verb
from claims.services.audit import Deed, record
from claims.services.objects import own_object
from dra.kube.port import Cluster

# Far longer than a POST can be on its way: the door's timeouts are seconds.
PATIENCE = timedelta(minutes=1)
UNCERTAIN = (State.SUBMITTING, State.CREATED)


def due(now: datetime) -> list[int]:
    """Keys of the rows to be looked after."""
    uncertain = GpuRequest.objects.filter(state__in=UNCERTAIN, changed_at__lt=now - PATIENCE)
    seen = list(GpuRequest.objects.filter(state=State.SEEN))
    there = selectors.object_uids({row.namespace for row in seen}) if seen else frozenset()
    return [row.pk for row in uncertain] + [row.pk for row in seen if row.template_uid not in there]


def advance(pk: int, *, cluster: Cluster) -> None:
    """Bring one row to what the cluster holds, read as the portal itself. KubeError where the cluster does not say."""
    row = GpuRequest.objects.filter(pk=pk, state__in=[*UNCERTAIN, State.SEEN]).first()
    if row is None:
        return
    found = own_object(cluster, row.wish, key=row.key)
    if found is None:
        _settle(pk, Event.MISS, row.template_uid)
    else:
        _settle(pk, Event.CONFIRM, found.uid)


@transaction.atomic
def _settle(pk: int, event: Event, uid: str) -> None:
    row = GpuRequest.objects.select_for_update().get(pk=pk)
    before = State(row.state)
    if not can(before, event):
        return
    row.state, row.template_uid = move(before, event), uid
    row.save(update_fields=["state", "template_uid", "changed_at"])
    if row.state != before:
        record(Deed(Verb.OBSERVE), row)
