"""Follow one kind for a while: take the lease, list if need be, watch, and write each batch with its cursor.

One transaction holds rows, cursor, lease and revision, so a worker that dies at any point leaves a state to go on
from. Steps: 1. lease; 2. without a version: list, by initial events or by pages, and forget what is gone; 3. else watch
from the version; 4. release. 410 Gone asks for a new list; every other fault is recorded and tried again later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

import structlog
from django.db import transaction

from dra.errors import DraError
from dra.kube.errors import GoneError, InvalidError, KubeError, NotFoundError
from dra.kube.port import Cluster, list_all
from dra.kube.requests import watch
from dra.kube.responses import Header
from dra.kube.watch import WatchEvent, parse_event
from dra.objects import decode
from dra.pools import PoolID
from gpuinventory.kinds import CAPABILITIES, FOLLOWED
from gpuinventory.models import StreamCursor
from gpuinventory.services import lease
from gpuinventory.services.changelog import bump_revision
from gpuinventory.services.ingest import Seen, forget_others, ingest
from gpuinventory.services.lag import Measured
from gpuinventory.services.pools import dirty_pools, project_pools
from gpuinventory.services.reader import LineReader

LIST_SECONDS = 600  # how long a whole list may take; a watch ends sooner
POOLS = 20  # brought up to date in one transaction: short enough for others to write in between
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """What one run needs: `connect` gives the way to the cluster, `stopping` says when to leave early."""

    kind: str
    holder: str
    connect: Callable[[], Cluster]
    clock: Callable[[], datetime]
    seconds: int
    stopping: Callable[[], bool]


def run_stream(stream: Stream) -> bool:
    """Run once; whether a successor shall follow at once. False if another has the lease, or after a fault."""
    cursor = lease.take(stream.kind, stream.holder, stream.clock())
    if cursor is None:
        return False
    try:
        _run(stream, cursor)
        if cursor.failures:  # it was away and may have come back as another version
            lease.recall(CAPABILITIES)
    except lease.LeaseLostError:
        _log.warning("lease lost", kind=stream.kind)
        return False
    except NotFoundError:
        _not_served(stream)
        return False
    except (KubeError, DraError) as error:
        lease.fail(stream.kind, stream.holder, stream.clock(), str(error))
        _log.warning("stream failed", kind=stream.kind, failures=cursor.failures + 1, error=str(error))
        return False
    finally:
        lease.release(stream.kind, stream.holder)
    return not stream.stopping()


def _run(stream: Stream, cursor: StreamCursor) -> None:
    cluster = stream.connect()
    try:
        if cursor.resource_version:
            _follow(stream, cluster, cursor)
        else:
            _list(stream, cluster)
    except GoneError:
        _log.info("version too old, listing anew", kind=stream.kind)
        _commit(stream, [], version="")


def _follow(stream: Stream, cluster: Cluster, cursor: StreamCursor) -> None:
    version = cursor.resource_version
    measured = Measured(changed_at=cursor.changed_at, lag=cursor.lag, clock_ahead=cursor.clock_ahead)
    request = watch(FOLLOWED[stream.kind], resource_version=version, seconds=stream.seconds)
    for lines in LineReader(cluster, request).batches():
        events = [parse_event(line) for line in lines]
        if events:
            version = events[-1].resource_version
            measured = measured.after(events, cluster.server_time(), stream.clock())
            _commit(stream, _objects(events), version=version, measured=measured)
        if stream.stopping():
            return
    measured = measured.after([], cluster.server_time(), stream.clock())
    _commit(stream, [], version=version, measured=measured)  # a silent watch is a word from the cluster too


def _list(stream: Stream, cluster: Cluster) -> None:
    try:
        _list_by_events(stream, cluster)
    except InvalidError:  # this server can't send initial events
        list_by_pages(stream, cluster)


def _list_by_events(stream: Stream, cluster: Cluster) -> None:
    request = watch(FOLLOWED[stream.kind], initial_events=True, seconds=LIST_SECONDS)
    listed: set[tuple[str, str]] = set()
    for lines in LineReader(cluster, request).batches():
        events = [parse_event(line) for line in lines]
        end = next((i for i, event in enumerate(events) if event.ends_list), len(events))
        seen = list(_objects(events[:end]))
        listed |= {each.key for each in seen}
        if seen:
            _commit_listed(stream, seen)
        if end < len(events):
            _end_list(stream, listed, events[end].resource_version)
            return
        if stream.stopping():
            return


def list_by_pages(stream: Stream, cluster: Cluster) -> None:
    """List in pages of 100, for servers without streaming lists (KEP-3157)."""
    listed: set[tuple[str, str]] = set()
    for page in list_all(cluster, FOLLOWED[stream.kind]):
        seen = [Seen(decode(body, Header).metadata, body) for body in page.items]
        listed |= {each.key for each in seen}
        _commit_listed(stream, seen)
        if not page.continue_token:
            _end_list(stream, listed, page.resource_version)
        elif stream.stopping():
            return


@transaction.atomic
def _commit_listed(stream: Stream, seen: Iterable[Seen]) -> None:
    lease.keep(stream.kind, stream.holder, stream.clock())
    ingest(stream.kind, seen, settle=False)


def _not_served(stream: Stream) -> None:
    """The cluster does not know this kind (yet): its rows go, and somebody looks again after a while."""
    with transaction.atomic():
        lease.set_absent(stream.kind, stream.holder, stream.clock())
        gone = forget_others(stream.kind, set())
    while pools := dirty_pools(POOLS):
        _settle(stream, pools)
    _log.info("kind not served", kind=stream.kind, gone=gone)


def _end_list(stream: Stream, listed: set[tuple[str, str]], version: str) -> None:
    """Forget what is not in the list, bring the marked pools up to date, and only then set the cursor.

    Whoever dies in between leaves no cursor, so the list is read again, and the marks are still there.
    """
    with transaction.atomic():
        lease.keep(stream.kind, stream.holder, stream.clock())
        gone = forget_others(stream.kind, listed)
    while pools := dirty_pools(POOLS):
        _settle(stream, pools)
    _commit(stream, [], version=version)
    _log.info("kind listed", kind=stream.kind, objects=len(listed), gone=gone, version=version)


@transaction.atomic
def _settle(stream: Stream, pools: Iterable[PoolID]) -> None:
    lease.renew(stream.kind, stream.holder, stream.clock())
    bump_revision()
    project_pools(pools)


@transaction.atomic
def _commit(stream: Stream, seen: Iterable[Seen], *, version: str, measured: Measured | None = None) -> None:
    """Rows and cursor together."""
    lease.keep(stream.kind, stream.holder, stream.clock(), version, measured)
    ingest(stream.kind, seen)


def _objects(events: Iterable[WatchEvent]) -> Iterator[Seen]:
    for event in events:
        if event.type != "BOOKMARK":
            body = None if event.type == "DELETED" else event.object
            yield Seen(decode(event.object, Header).metadata, body)
