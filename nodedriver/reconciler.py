"""Compares checkpoint, API server, CDI folder and hardware at the start and every few minutes, and puts right what
differs, as the table in `comparing` says.

One claim after another, each under the locks of its cards; a failure is logged and tried again at the next look. What
takes something back is done only when two looks in a row found the same: a claim may be on its way.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import structlog

from dra.errors import DraError
from dra.kube.errors import KubeError, NotFoundError
from dra.kube.requests import RESOURCE_CLAIMS, get
from dra.names import ClaimUID
from dra.objects import ResourceClaim, decode
from nodedriver.checkpoint import CheckpointError
from nodedriver.claimspecs import ClaimSpecs
from nodedriver.comparing import Allocation, Entry, Found, Verdict, row_of
from nodedriver.driver import Parts
from nodedriver.hands import take_back
from nodedriver.holding import ClaimState, PreparedClaim, neighbours
from nodedriver.locks import LockTimeoutError
from nodedriver.ports import GpuError, MpsError

_log = structlog.get_logger()
_ERRORS = (GpuError, MpsError, OSError, CheckpointError, LockTimeoutError)
_ENTRIES = {ClaimState.STARTED: Entry.STARTED, ClaimState.COMPLETED: Entry.COMPLETED}


class Reconciler:
    """Keeps what claims have in step with what they should have."""

    def __init__(self, parts: Parts, specs: ClaimSpecs) -> None:
        self._cluster = parts.cluster
        self._rules = parts.rules
        self._locks = parts.locks
        self._prepared = parts.prepared
        self._hands = parts.hands
        self._specs = specs
        self._doubted: frozenset[ClaimUID] = frozenset()  # what the last look would have taken back
        self._is_over: Callable[[], bool] = lambda: False

    def within(self, rounds: Rounds) -> Rounds:
        """These rounds, whose end ends a look after the claim that is on its way: one may take seconds."""
        self._is_over = rounds.is_stopping
        return rounds

    def look(self) -> dict[ClaimUID, Verdict]:
        """Look at every claim once and act; what was decided, for those that are not as they should be."""
        known = self._prepared.read().claims
        claims = self._specs.noted() | known
        looked = ((uid, self._look_at(claim)) for uid, claim in claims.items() if not self._is_over())
        decided = {uid: verdict for uid, verdict in looked if verdict}
        self._doubted = frozenset(uid for uid, verdict in decided.items() if verdict is Verdict.TAKE_BACK)
        return decided

    def _look_at(self, claim: PreparedClaim) -> Verdict | None:
        allocation = self._allocation(claim)  # before any lock
        log = _log.bind(namespace=claim.namespace, name=claim.name, uid=claim.uid)
        try:
            with self._locks.gpus(claim.gpus):
                row = row_of(self._found(claim, allocation))
                if row.verdict is Verdict.LEAVE:
                    return None
                done = self._act(claim, row.verdict)
        except _ERRORS as error:
            log.warning("resource claim not put right", error=str(error))
            return None
        if done:
            log.info("resource claim put right", found=row.name, done=row.verdict)
        return row.verdict

    def _found(self, claim: PreparedClaim, allocation: Allocation) -> Found:
        """The locks of its cards are held."""
        known = self._prepared.read().claims.get(claim.uid)
        return Found(
            entry=_ENTRIES[known.state] if known else Entry.ABSENT,
            allocation=allocation,
            file=self._specs.exists(claim.uid),
            silicon=self._hands.all_there(known or claim),
        )

    def _act(self, claim: PreparedClaim, verdict: Verdict) -> bool:
        """Whether it was done; a claim that is doubted for the first time waits for the next look."""
        if verdict is Verdict.TAKE_BACK and claim.uid not in self._doubted:
            return False
        match verdict:
            case Verdict.RESTORE:
                self._prepared.restore(claim)
            case Verdict.REPAIR:
                self._repair(claim.uid)
            case Verdict.TAKE_BACK:
                take_back(claim.uid, self._prepared, self._hands)
        return True

    def _repair(self, uid: ClaimUID) -> None:
        checkpoint = self._prepared.read()
        claim = checkpoint.claims[uid]
        self._hands.act(claim, neighbours(checkpoint, uid, claim.gpus), self._prepared.save)

    def _allocation(self, claim: PreparedClaim) -> Allocation:
        try:
            body = self._cluster.send(get(RESOURCE_CLAIMS, claim.name, namespace=claim.namespace))
            found = decode(body, ResourceClaim)
        except NotFoundError:
            return Allocation.GONE
        except (KubeError, DraError) as error:
            _log.info("resource claim not compared", uid=claim.uid, error=str(error))
            return Allocation.UNKNOWN
        return Allocation.OURS if self._is_ours(claim.uid, found) else Allocation.GONE

    def _is_ours(self, uid: ClaimUID, found: ResourceClaim) -> bool:
        """Whether it is this very claim, and devices of this node and driver are allocated to it."""
        allocation = found.status.allocation
        if found.metadata.uid != uid or allocation is None:
            return False
        ours = self._rules.driver_name, self._rules.pool
        return any((result.driver, result.pool) == ours for result in allocation.devices.results)


class Rounds:
    """Calls a look at once and then every so many seconds, in a thread of its own, until it is stopped."""

    def __init__(self, look: Callable[[], object], *, seconds: float, name: str = "reconciler") -> None:
        self._look = look
        self._seconds = seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the look that is on its way."""
        self._stopping.set()
        self._thread.join()

    def is_stopping(self) -> bool:
        """Whether no further look is wanted."""
        return self._stopping.is_set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._look()
            except Exception:  # noqa: BLE001 - a fault of ours must not end the rounds
                _log.exception("look at the resource claims met a fault", thread=self._thread.name)
            self._stopping.wait(self._seconds)
