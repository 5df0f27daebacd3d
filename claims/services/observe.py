"""Mark the requests whose object the read model has. Repeating it changes nothing.

It draws no conclusion from absence: the read model may be behind, or be built anew. `advance` asks the cluster then.
"""

from __future__ import annotations

from django.db import transaction

from claims import selectors
from claims.lifecycle import Event, State, move
from claims.models import GpuRequest, Verb
from claims.services.audit import Deed, record


@transaction.atomic
def observe() -> None:
    """Every row that is created and has been seen since then is moved to seen."""
    rows = list(GpuRequest.objects.select_for_update().filter(state=State.CREATED))
    there = selectors.object_uids({row.namespace for row in rows}) if rows else frozenset()
    for row in rows:
        if row.template_uid in there:
            row.state = move(State.CREATED, Event.SEE)
            row.save(update_fields=["state", "changed_at"])
            record(Deed(Verb.OBSERVE), row)
