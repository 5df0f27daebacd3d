"""The last word from the cluster, and whether it is old."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from django.conf import settings
from django.utils import timezone

from gpuinventory.kinds import KINDS
from gpuinventory.models import Revision, StreamCursor

LEAST = 2.0  # seconds: what the API server tells of times is in whole ones, and an answer takes its time


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
    """How a kind's stream stands. `age` is the time since the last word from the cluster about it, by our clock.

    `lag` is how many seconds the newest change took from the API server to our row, by the cluster's clock alone;
    `changed_at` is that change. None while no change was seen.
    """

    kind: str
    synced_at: datetime | None
    age: timedelta
    lag: float | None
    changed_at: datetime | None
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

    @property
    def lag_length(self) -> str:
        """The lag for people. The API server tells times in whole seconds, so less than two is not told apart."""
        if self.lag is None:
            return "no change seen yet"
        return "under 2 s" if self.lag < LEAST else _length(timedelta(seconds=self.lag))


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """How many seconds the cluster's clock is ahead of the worker's, and the worker's of this process's; None where
    that is not known. Differences under two seconds are not told: times come in whole seconds.
    """

    cluster: float | None
    worker: float

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is wrong with clocks, and what is done about it."""
        told = []
        if self.cluster is not None and abs(self.cluster) >= LEAST:
            told.append(
                f"The cluster's clock is {_apart(self.cluster)} the worker's. Ages of objects are reckoned by the "
                "cluster's clock."
            )
        if self.worker >= LEAST:
            told.append(
                f"The worker's clock is {_apart(self.worker)} this web server's. Times of the last word are the "
                "worker's."
            )
        return tuple(told)


def kind_states() -> tuple[KindState, ...]:
    """Every followed kind in the order in which they are followed. One query."""
    cursors = {cursor.kind: cursor for cursor in StreamCursor.objects.filter(kind__in=KINDS)}
    return tuple(_kind_state(kind, cursors.get(kind)) for kind in KINDS)


def clocks() -> Clocks:
    """By the newest word of each clock. One query."""
    cursors = list(StreamCursor.objects.filter(kind__in=KINDS).exclude(synced_at=None).order_by("-synced_at"))
    cluster = next((cursor.clock_ahead for cursor in cursors if cursor.clock_ahead is not None), None)
    latest = next((cursor.synced_at for cursor in cursors), None)
    return Clocks(cluster=cluster, worker=(latest - timezone.now()).total_seconds() if latest else 0.0)


def clock_ahead() -> float:
    """Seconds to add to our clock to have the cluster's, 0 where that is not known or too little. One query."""
    ahead = StreamCursor.objects.filter(kind__in=KINDS).exclude(clock_ahead=None).order_by("-synced_at")
    found = ahead.values_list("clock_ahead", flat=True).first() or 0.0
    return found if abs(found) >= LEAST else 0.0


def _age(synced_at: datetime | None) -> timedelta:
    """Never negative: a worker whose clock is ahead would else be heard from in the future."""
    return max(timezone.now() - synced_at, timedelta(0)) if synced_at else timedelta(0)


def _kind_state(kind: str, cursor: StreamCursor | None) -> KindState:
    synced_at = cursor.synced_at if cursor else None
    age = _age(synced_at)
    error = cursor.last_error if cursor else ""
    return KindState(
        kind=kind,
        synced_at=synced_at,
        age=age,
        lag=cursor.lag if cursor else None,
        changed_at=cursor.changed_at if cursor else None,
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
    age = _age(synced_at)
    error = next((cursor.last_error for cursor in cursors if cursor.last_error), "")
    old = synced_at is None or age > timedelta(seconds=settings.SILENT_SECONDS)
    return Freshness(synced_at=synced_at, age=age, silent=old or bool(error), error=error, read=len(known))


def revision() -> int:
    """A number that grows with every change of the read model; pages poll with it. One query."""
    return Revision.objects.values_list("value", flat=True).first() or 0


def _apart(seconds: float) -> str:
    return f"{_length(timedelta(seconds=abs(seconds)))} {'ahead of' if seconds > 0 else 'behind'}"


def _length(age: timedelta) -> str:
    seconds = int(age.total_seconds())
    for size, word in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {word}"
    return f"{seconds} s"
