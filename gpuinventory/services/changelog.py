"""The change log: which revision a change belongs to, and what is gone. Rows carry their own revision.

The revision is raised first in a transaction, so writers commit in its order, and whoever has read up to a revision
misses nothing by asking for what is newer. Nothing but the revision and tombstones is written here.

A new database begins at the clock's milliseconds: a process that has outlived the last one, whose revisions rose slower
than that, meets no number again and takes none of the new ones for a change of what it has.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import F
from django.db.models.functions import Greatest
from django.utils import timezone

from gpuinventory.models import Revision, Tombstone

KEPT = 10_000  # revisions whose tombstones are kept
_PRUNED_EVERY = 1_000
_BATCH = 200


def bump_revision() -> int:
    """The revision of this transaction's changes; pages see it with the commit. Writers wait for each other here."""
    if not Revision.objects.update(value=F("value") + 1):
        # Two writers may both be the first: the later one waits here for the earlier one, and then finds its row.
        first = int(timezone.now().timestamp() * 1000)
        Revision.objects.bulk_create([Revision(value=first, forgotten=first)], ignore_conflicts=True)
        Revision.objects.update(value=F("value") + 1)
    value = Revision.objects.values_list("value", flat=True).get()
    if value % _PRUNED_EVERY == 0:
        Tombstone.objects.filter(revision__lte=value - KEPT).delete()
        Revision.objects.update(forgotten=Greatest(F("forgotten"), value - KEPT))
    return value


def record_deleted(kind: str, keys: Sequence[tuple[str, str]], at: int) -> None:
    """Remember that these objects are gone since that revision."""
    Tombstone.objects.bulk_create(
        [Tombstone(kind=kind, namespace=namespace, name=name, revision=at) for namespace, name in keys],
        batch_size=_BATCH,
        update_conflicts=True,
        unique_fields=["kind", "namespace", "name"],
        update_fields=["revision"],
    )
