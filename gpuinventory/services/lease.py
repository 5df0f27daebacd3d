"""One stream per kind in the whole installation: a lease in the database, kept by conditional updates only.

An update that matches no row means that somebody else has the lease; nothing is locked while a stream waits.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q

from gpuinventory.models import StreamCursor
from gpuinventory.services.lag import Measured

# Longer than any wait for the cluster between two renewals, so a live worker never loses it; a dead one's lease ends
# by itself.
LEASE = timedelta(seconds=90)
_LOOK_AGAIN = timedelta(seconds=60)  # for a kind that is not served
_LONGEST_PAUSE = timedelta(seconds=60)
_MAX_DOUBLINGS = 6


class LeaseLostError(Exception):
    """Somebody else streams this kind now: stop, and leave the rows to them."""


def take(kind: str, holder: str, now: datetime) -> StreamCursor | None:
    """The cursor if the lease was free or ran out, else None."""
    StreamCursor.objects.get_or_create(kind=kind)
    free = Q(lease_holder="") | Q(lease_until__lt=now) | Q(lease_until=None)
    taken = StreamCursor.objects.filter(free, kind=kind).update(lease_holder=holder, lease_until=now + LEASE)
    return StreamCursor.objects.get(kind=kind) if taken else None


def keep(
    kind: str, holder: str, now: datetime, resource_version: str | None = None, measured: Measured | None = None
) -> None:
    """Record a word from the cluster and renew; with a version, go on from there. LeaseLostError if it is not ours."""
    changes: dict[str, object] = {
        "lease_until": now + LEASE, "synced_at": now, "last_error": "", "failures": 0, "due_at": None,
        "served": True,
    }  # fmt: skip
    if resource_version is not None:
        changes["resource_version"] = resource_version
    if measured is not None:
        changes |= {"changed_at": measured.changed_at, "lag": measured.lag, "clock_ahead": measured.clock_ahead}
    if not StreamCursor.objects.filter(kind=kind, lease_holder=holder).update(**changes):
        raise LeaseLostError(kind)


def renew(kind: str, holder: str, now: datetime) -> None:
    """Keep the lease without a word from the cluster. LeaseLostError if it is not ours."""
    if not StreamCursor.objects.filter(kind=kind, lease_holder=holder).update(lease_until=now + LEASE):
        raise LeaseLostError(kind)


def set_absent(kind: str, holder: str, now: datetime) -> None:
    """Record that the cluster serves no such kind, which is a word from it; look again in a minute. LeaseLostError."""
    changed = StreamCursor.objects.filter(kind=kind, lease_holder=holder).update(
        served=False, resource_version="", synced_at=now, last_error="", failures=0, due_at=now + _LOOK_AGAIN
    )
    if not changed:
        raise LeaseLostError(kind)


def rest(kind: str, holder: str, now: datetime, pause: timedelta) -> None:
    """Record a word from the cluster, after which nothing is due for a while. LeaseLostError if it is not ours."""
    keep(kind, holder, now)
    StreamCursor.objects.filter(kind=kind, lease_holder=holder).update(due_at=now + pause)


def recall(kind: str) -> None:
    """End the pause: it is due at once."""
    StreamCursor.objects.filter(kind=kind).update(due_at=None)


def release(kind: str, holder: str) -> None:
    """Let others go on at once. Releasing what is not ours changes nothing."""
    StreamCursor.objects.filter(kind=kind, lease_holder=holder).update(lease_holder="", lease_until=None)


def fail(kind: str, holder: str, now: datetime, error: str) -> None:
    """Record what went wrong; the next try comes after a pause that doubles up to a minute."""
    cursor = StreamCursor.objects.get(kind=kind)
    pause = min(timedelta(seconds=2 ** min(cursor.failures, _MAX_DOUBLINGS)), _LONGEST_PAUSE)
    StreamCursor.objects.filter(kind=kind, lease_holder=holder).update(
        last_error=error[:1000], failures=cursor.failures + 1, due_at=now + pause
    )


def due_kinds(kinds: tuple[str, ...], now: datetime) -> list[str]:
    """The kinds that nobody streams and whose pause is over."""
    busy = StreamCursor.objects.filter(Q(lease_until__gte=now) | Q(due_at__gt=now), kind__in=kinds)
    taken = set(busy.values_list("kind", flat=True))
    return [kind for kind in kinds if kind not in taken]
