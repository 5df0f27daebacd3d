"""The last word from the cluster, and whether it is old."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from django.conf import settings
from django.utils import timezone

from gpuinventory.kinds import KINDS
from gpuinventory.models import Revision, StreamCursor


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """When every kind was last in step with the cluster. `silent` asks for the bar; `error` is the reason.

    `read` says how many of the followed kinds were read at least once.
    """

    synced_at: datetime | None
    age: timedelta
    silent: bool
    error: str
    read: int

    @property
    def tone(self) -> Literal["live", "old", "never"]:
        """The token of the badge."""
        if self.synced_at is None:
            return "never"
        return "old" if self.silent else "live"

    @property
    def word(self) -> str:
        """The badge's text: short, and with an absolute time once it is old."""
        if self.synced_at is None:
            return f"reading {self.read}/{len(KINDS)}"
        return f"as of {self.synced_at:%H:%M:%S}" if self.silent else "live"

    @property
    def sentence(self) -> str:
        """What happened, since when, and what is shown."""
        if self.synced_at is None:
            return f"Reading the cluster: {self.read} of {len(KINDS)} kinds so far. {self._what_fills}"
        moment = f"{self.synced_at:%Y-%m-%d %H:%M:%S} UTC"
        if not self.silent:
            return f"In step with the cluster. Last word at {moment}."
        return f"No word from the cluster since {moment} ({_length(self.age)}). Showing the last known state."

    @property
    def _what_fills(self) -> str:
        if self.error:
            return "The last try failed; it is tried again."
        return "Pages fill by themselves." if self.read else "Pages fill when a worker reaches it."


@dataclass(frozen=True, slots=True, kw_only=True)
class KindState:
    """How a kind's stream stands. `age` is the time since the last word from the cluster about it."""

    kind: str
    synced_at: datetime | None
    age: timedelta
    served: bool
    old: bool
    error: str

    @property
    def tone(self) -> Literal["live", "old", "never"]:
        """The token of the badge."""
        if self.synced_at is None or not self.served:
            return "never"
        return "old" if self.old else "live"

    @property
    def word(self) -> str:
        """The state in two words at most."""
        if not self.served:
            return "not served"
        if self.synced_at is None:
            return "not read"
        return "behind" if self.old else "live"

    @property
    def length(self) -> str:
        """The age for people."""
        return _length(self.age) if self.synced_at else "never"


def kind_states() -> tuple[KindState, ...]:
    """Every followed kind in the order in which they are followed. One query."""
    cursors = {cursor.kind: cursor for cursor in StreamCursor.objects.filter(kind__in=KINDS)}
    return tuple(_kind_state(kind, cursors.get(kind)) for kind in KINDS)


def _kind_state(kind: str, cursor: StreamCursor | None) -> KindState:
    synced_at = cursor.synced_at if cursor else None
    age = timezone.now() - synced_at if synced_at else timedelta(0)
    error = cursor.last_error if cursor else ""
    return KindState(
        kind=kind,
        synced_at=synced_at,
        age=age,
        served=cursor.served if cursor else True,
        old=bool(error) or age > timedelta(seconds=settings.SILENT_SECONDS),
        error=error,
    )


def freshness() -> Freshness:
    """One query."""
    cursors = list(StreamCursor.objects.filter(kind__in=KINDS))
    times = [cursor.synced_at for cursor in cursors]
    known = [time for time in times if time is not None]
    synced_at = min(known) if len(known) == len(KINDS) else None
    age = timezone.now() - synced_at if synced_at else timedelta(0)
    error = next((cursor.last_error for cursor in cursors if cursor.last_error), "")
    old = synced_at is None or age > timedelta(seconds=settings.SILENT_SECONDS)
    return Freshness(synced_at=synced_at, age=age, silent=old or bool(error), error=error, read=len(known))


def revision() -> int:
    """A number that grows with every change of the read model; pages poll with it. One query."""
    return Revision.objects.values_list("value", flat=True).first() or 0


def _length(age: timedelta) -> str:
    seconds = int(age.total_seconds())
    for size, word in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {word}"
    return f"{seconds} s"
