"""Keeps the `status.devices` of this node's claims written, by server-side apply as a field manager of our own.

Level-triggered: a write says what holds at that moment, so a lost or doubled wish changes nothing, and what the claim
says already is not written again. Never in the way of prepare: a failure is logged and tried again later.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from dra.errors import DraError
from dra.kube.errors import KubeError, NotFoundError
from dra.kube.port import Cluster
from dra.kube.requests import RESOURCE_CLAIMS, get
from dra.names import ClaimRef, ClaimUID
from dra.objects import (
    AllocatedDeviceStatus,
    DeviceRequestAllocationResult,
    ResourceClaim,
    decode,
)
from nodedriver.checkpoint import CheckpointError
from nodedriver.devicestatus import (
    Ailing,
    Around,
    Seen,
    Speaks,
    allocated,
    failed_statuses,
    interrupted_statuses,
    says_ready,
    says_the_same,
    statuses_of,
    told_by,
)
from nodedriver.holding import Checkpoint, ClaimState
from nodedriver.statusapply import status_request

_log = structlog.get_logger()
RETRY_SECONDS = 5.0
GATHER_SECONDS = 0.1  # from the first wish on: claims in a row are one round, after their answers and not beside them


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusSources:
    """Where a status comes from: the checkpoint of the moment, what ails a device, when a process was last seen, and
    what its MPS daemon speaks.
    """

    read: Callable[[], Checkpoint]
    ailing: Ailing
    seen: Seen
    protocol: Speaks


@dataclass(frozen=True, slots=True)
class _Known:
    """A claim as the API server has it: what it says of our devices, and which are allocated to it."""

    ref: ClaimRef
    told: tuple[AllocatedDeviceStatus, ...]
    results: tuple[DeviceRequestAllocationResult, ...]


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why a claim could not be prepared, until that is written."""

    ref: ClaimRef
    error: str


class StatusWriter:
    """Writes claim statuses in a thread of its own, one after another, and repeats what failed."""

    def __init__(self, driver_name: str, cluster: Cluster, sources: StatusSources) -> None:
        self._driver_name = driver_name
        self._cluster = cluster
        self._sources = sources
        self._known: dict[ClaimUID, _Known] = {}
        self._failures: dict[ClaimUID, _Failure] = {}
        self._wished: set[ClaimUID] = set()
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="claim-status", daemon=True)

    def start(self) -> None:
        """Begin, with all prepared claims: the last process may have ended before it wrote them."""
        self.wish_all()
        self._thread.start()

    def stop(self) -> None:
        """End after the write that is on its way. What was not written is written by the next process."""
        self._stopping.set()
        with self._changed:
            self._changed.notify()
        self._thread.join()

    def wish(self, uids: Iterable[ClaimUID]) -> None:
        """Have these claims' statuses written soon. A claim that is neither prepared nor failed is left alone."""
        with self._changed:
            self._wished.update(uids)
            self._changed.notify()

    def wish_all(self) -> None:
        """Have every prepared claim looked at, and forget the others. CheckpointError as at reading."""
        claims = self._sources.read().claims
        with self._changed:
            self._known = {uid: known for uid, known in self._known.items() if uid in claims or uid in self._failures}
        self.wish(claims)

    def saw(self, claim: ResourceClaim) -> None:
        """Take notice of the claim as it was just read, which saves reading it again."""
        self._noticed(claim)

    def _noticed(self, claim: ResourceClaim) -> _Known:
        allocation = claim.status.allocation
        known = _Known(
            claim.ref,
            told_by(self._driver_name, claim.status.devices),
            tuple(each for each in (allocation.devices.results if allocation else ()) if self._is_ours(each)),
        )
        with self._changed:
            self._known[claim.ref.uid] = known
        return known

    def failed(self, ref: ClaimRef, error: str) -> None:
        """Have it said that the claim could not be prepared, and why. One that nobody could read is left alone."""
        with self._changed:
            if ref.uid not in self._known and ref.uid not in self._failures:
                return
            self._failures[ref.uid] = _Failure(ref, error)
        self.wish([ref.uid])

    def _is_ours(self, result: DeviceRequestAllocationResult) -> bool:
        return result.driver == self._driver_name

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._wished or self._stopping.is_set())
            if self._stopping.wait(GATHER_SECONDS):
                return
            with self._changed:
                uids, self._wished = self._wished, set()
            try:
                failed = self._keep_all(sorted(uids))
            except Exception:  # noqa: BLE001 - a fault of ours must not end the writing
                _log.exception("claim statuses met a fault")
                failed = list(uids)
            if failed:
                self._wait_before_retry(failed)

    def _wait_before_retry(self, failed: Collection[ClaimUID]) -> None:
        self._stopping.wait(RETRY_SECONDS)
        with self._changed:
            self._wished.update(failed)

    def _keep_all(self, uids: Sequence[ClaimUID]) -> Sequence[ClaimUID]:
        """Write what differs; the claims for which that failed."""
        try:
            around = self._around()
        except (CheckpointError, OSError) as error:
            _log.warning("claim statuses not written", error=str(error), retry_seconds=RETRY_SECONDS)
            return uids
        return [uid for uid in uids if not self._keep(uid, around)]

    def _keep(self, uid: ClaimUID, around: Around) -> bool:
        """Whether nothing is left to do for this claim."""
        log = _log.bind(uid=uid)
        failure = self._failures.get(uid)
        try:
            self._write(uid, failure, around)
        except NotFoundError:
            log.info("resource claim was gone before its status was written")
        except (KubeError, DraError) as error:
            log.warning("claim status not written", error=str(error), retry_seconds=RETRY_SECONDS)
            self._known.pop(uid, None)  # it may have changed: read it anew
            return False
        with self._changed:
            if self._failures.get(uid) is failure:  # and no newer one came meanwhile, which is written next
                self._failures.pop(uid, None)
        return True

    def _write(self, uid: ClaimUID, failure: _Failure | None, around: Around) -> None:
        claim = around.checkpoint.claims.get(uid)
        if claim is not None and claim.state is ClaimState.COMPLETED:
            known = self._known_or_fetched(claim.ref)
            self._tell(known, statuses_of(claim, known.told, around))
        elif failure is not None:
            known = self._known_or_fetched(failure.ref)
            self._tell(known, failed_statuses(known.results, known.told, failure.error, around.now))
        elif claim is not None and claim.prepared_at:  # begun anew by a reboot: prepare has no such time before its end
            known = self._known_or_fetched(claim.ref)
            if says_ready(known.told):  # a failure since then says more
                self._tell(known, interrupted_statuses(known.results, known.told, around.now))

    def _around(self) -> Around:
        return Around(
            driver_name=self._driver_name,
            checkpoint=self._sources.read(),
            ailing=self._sources.ailing,
            seen=self._sources.seen,
            protocol=self._sources.protocol,
            now=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        )

    def _known_or_fetched(self, ref: ClaimRef) -> _Known:
        return self._known.get(ref.uid) or self._fetched(ref)

    def _fetched(self, ref: ClaimRef) -> _Known:
        """The claim as it is now; one that has another uid by now has nothing of ours."""
        claim = decode(self._cluster.send(get(RESOURCE_CLAIMS, ref.name, namespace=ref.namespace)), ResourceClaim)
        if claim.metadata.uid != ref.uid:
            return _Known(ref, (), ())
        return self._noticed(claim)

    def _tell(self, known: _Known, statuses: tuple[AllocatedDeviceStatus, ...]) -> None:
        """Write what differs. What is not allocated to the claim any more can't stand in its status (API rule)."""
        wanted = allocated(statuses, known.results)
        if says_the_same(known.told, wanted):
            return
        self._cluster.send(status_request(self._driver_name, known.ref, wanted))
        with self._changed:
            self._known[known.ref.uid] = _Known(known.ref, wanted, known.results)
