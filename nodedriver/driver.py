"""The driver's two verbs for one resource claim, prepare and unprepare; the kubelet calls them often, in any order.

Prepare: fetch the claim, plan, checkpoint "started", act, checkpoint "completed". Unprepare knows the checkpoint only,
since the claim may be gone. Nothing is fetched while a lock is held. No verb raises: a claim's failure is its answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import structlog

from dra.errors import InvalidObjectError
from dra.kube.errors import KubeError
from dra.kube.port import Cluster
from dra.kube.requests import RESOURCE_CLAIMS, get
from dra.names import ClaimRef, ClaimUID
from dra.objects import ResourceClaim, decode
from nodedriver.boundary import boundary
from nodedriver.checkpoint import CheckpointError
from nodedriver.deadline import of_call
from nodedriver.facts import PciAddress
from nodedriver.hands import Hands, take_back
from nodedriver.holding import ClaimState, PreparedClaim, neighbours, why_not
from nodedriver.inventory import DeviceRecord
from nodedriver.locks import Locks, LockTimeoutError
from nodedriver.metrics import PREPARE, UNPREPARE, Requests
from nodedriver.plan import PlanRefusal, PlanRules, PreparePlan, plan_claim
from nodedriver.ports import GpuError, MpsError
from nodedriver.prepared import PreparedClaims

_log = structlog.get_logger()
_ACTING_ERRORS = (GpuError, MpsError, OSError)


class ClaimError(Exception):
    """This claim can't be prepared as things are. The text goes to the pod's events."""

    @property
    def type(self) -> str:
        """The class of the error behind it, for metrics."""
        cause = self.__cause__
        return cause.type if isinstance(cause, ClaimError) else type(cause or self).__name__


_ERRORS = (ClaimError, KubeError, InvalidObjectError, CheckpointError, LockTimeoutError, *_ACTING_ERRORS)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenDevice:
    """One device of the answer to the kubelet. `device_request` is the base name (`main` of `main/sub`)."""

    device_request: str
    pool: str
    device: str
    share_id: str | None
    cdi_device_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Prepared:
    """The claim's devices, in the order of its allocation."""

    devices: tuple[GivenDevice, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """Why the claim is not prepared; the kubelet tries again."""

    error: str


type PrepareResult = Prepared | Failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the driver works with. `statuses` takes the uids of claims whose status is to be written anew, `seen` each
    claim as it was read for prepare, `failed` why one of them could not be prepared.
    """

    cluster: Cluster
    records: Mapping[str, DeviceRecord]
    rules: PlanRules
    locks: Locks
    prepared: PreparedClaims
    hands: Hands
    statuses: Callable[[Iterable[ClaimUID]], None]
    requests: Requests = field(default_factory=Requests)
    seen: Callable[[ResourceClaim], None] = lambda _claim: None
    failed: Callable[[ClaimRef, str], None] = lambda _ref, _error: None


class Driver:
    """The verbs. Safe to call from many threads, and beside another driver process on the same node."""

    def __init__(self, parts: Parts) -> None:
        self._cluster = parts.cluster
        self._records = parts.records
        self._rules = parts.rules
        self._locks = parts.locks
        self._prepared = parts.prepared
        self._hands = parts.hands
        self._statuses = parts.statuses
        self._requests = parts.requests
        self._seen = parts.seen
        self._failed = parts.failed

    def prepare(self, ref: ClaimRef) -> PrepareResult:
        """Make the claim's devices ready. Repeating verifies the hardware, repairs it, answers the same."""
        try:
            with self._requests.running(PREPARE):
                claim = _logged("resource claim prepared", ref, self._prepare)
        except ClaimError as error:
            self._requests.failed(PREPARE, error.type)
            self._failed(ref, str(error))
            return Failed(str(error))
        return Prepared(
            tuple(
                GivenDevice(
                    device_request=device.device_request,
                    pool=device.pool,
                    device=device.device,
                    share_id=device.share_id,
                    cdi_device_ids=(device.cdi_device_id,),
                )
                for device in claim.devices
            )
        )

    def unprepare(self, ref: ClaimRef) -> str:
        """Undo all that was done for the claim; "" when nothing is left, also for a claim that we do not know."""
        try:
            with self._requests.running(UNPREPARE):
                _logged("resource claim unprepared", ref, self._unprepare)
        except ClaimError as error:
            self._requests.failed(UNPREPARE, error.type)
            return str(error)
        return ""

    def _prepare(self, ref: ClaimRef) -> PreparedClaim:
        plan = plan_claim(self._fetch(ref), self._records, self._rules)
        if isinstance(plan, PlanRefusal):
            raise ClaimError(plan.reason)
        known = self._prepared.read().claims.get(ref.uid)
        gpus = {device.record.gpu for device in plan.devices} | (known.gpus if known else frozenset())
        with self._locks.gpus(gpus):
            claim = self._repeat(ref.uid, plan) or self._prepare_anew(ref, plan)
        self._statuses([ref.uid, *self._neighbour_uids(ref.uid, gpus)])
        return claim

    def _unprepare(self, ref: ClaimRef) -> PreparedClaim | None:
        known = self._prepared.read().claims.get(ref.uid)
        if known is None:
            return None
        with self._locks.gpus(known.gpus):
            self._take_back(ref.uid)
        self._statuses(self._neighbour_uids(ref.uid, known.gpus))
        return known

    def _fetch(self, ref: ClaimRef) -> ResourceClaim:
        """The allocated claim of exactly this uid, before any lock."""
        body = self._cluster.send(get(RESOURCE_CLAIMS, ref.name, namespace=ref.namespace))
        claim = decode(body, ResourceClaim)
        if claim.metadata.uid != ref.uid:
            raise ClaimError(
                f"resource claim {ref} has uid {claim.metadata.uid} now and the pod uses {ref.uid}: "
                "it was deleted and made anew; delete the pod"
            )
        if claim.status.allocation is None:
            raise ClaimError(
                f"resource claim {ref} is not allocated (any more): the scheduler has to allocate it first"
            )
        self._seen(claim)
        return claim

    def _repeat(self, uid: ClaimUID, plan: PreparePlan) -> PreparedClaim | None:
        """The claim that is prepared already, made whole again; None where it has to be prepared anew.

        A claim that was only started is taken back first, likewise one whose MIG instance is gone or that was allocated
        to other devices since.
        """
        checkpoint = self._prepared.read()
        known = checkpoint.claims.get(uid)
        if known is None:
            return None
        if known.state is ClaimState.COMPLETED and _same_devices(known, plan) and self._hands.still_there(known):
            return self._hands.act(known, neighbours(checkpoint, uid, known.gpus), self._prepared.save)
        self._take_back(uid)
        return None

    def _prepare_anew(self, ref: ClaimRef, plan: PreparePlan) -> PreparedClaim:
        checkpoint = self._prepared.read()
        others = neighbours(checkpoint, ref.uid, {device.record.gpu for device in plan.devices})
        claim = PreparedClaim(
            namespace=ref.namespace,
            name=ref.name,
            uid=ref.uid,
            state=ClaimState.STARTED,
            devices=self._hands.entries(ref.uid, plan.devices),
            pod_claim_name=plan.pod_claim_name,
        )
        if reason := why_not(checkpoint, claim):
            raise ClaimError(reason)
        claim = self._hands.announce(claim, others)
        self._prepared.save(claim)
        try:
            claim = self._hands.act(claim, others, self._prepared.save)
            claim = replace(claim, state=ClaimState.COMPLETED, prepared_at=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")
            self._prepared.save(claim)
            boundary(ref.uid, "answer")
        except _ACTING_ERRORS as error:
            raise self._after_failure(ref.uid, error) from error
        return claim

    def _after_failure(self, uid: ClaimUID, error: Exception) -> ClaimError:
        """Take back what was done; what can't be stays in the checkpoint for the next call."""
        try:
            self._take_back(uid)
        except _ACTING_ERRORS as second:
            return ClaimError(f"{error} (undoing the steps before it failed too and is tried again: {second})")
        return ClaimError(str(error))

    def _take_back(self, uid: ClaimUID) -> None:
        take_back(uid, self._prepared, self._hands)

    def _neighbour_uids(self, uid: ClaimUID, gpus: AbstractSet[PciAddress]) -> list[ClaimUID]:
        return [claim.uid for claim in neighbours(self._prepared.read(), uid, gpus)]


def _same_devices(claim: PreparedClaim, plan: PreparePlan) -> bool:
    held = [
        (d.device_request, d.device, d.share_id, d.share, d.slots, d.mps, d.interval, d.vfio) for d in claim.devices
    ]
    return held == [
        (d.device_request, d.record.name, d.share_id, d.share, d.slots, d.mps, d.interval, d.vfio) for d in plan.devices
    ]


def _logged[T](done: str, ref: ClaimRef, work: Callable[[ClaimRef], T]) -> T:
    """Do the work and log `done`, or why not; every error becomes a ClaimError, with the words for the pod's events."""
    log = _log.bind(namespace=ref.namespace, name=ref.name, uid=ref.uid)
    began = time.monotonic()
    try:
        with of_call():
            result = work(ref)
    except _ERRORS as error:
        log.warning("resource claim call failed", error=str(error), duration_ms=_since(began))
        raise ClaimError(str(error)) from error
    except Exception as error:
        # A fault of ours in one claim must not become a gRPC error, which would fail all claims of the call.
        log.exception("resource claim call met a fault", duration_ms=_since(began))
        raise ClaimError(f"fault in the node driver ({type(error).__name__}): its log has the details") from error
    log.info(done, devices=_names(result), duration_ms=_since(began))
    return result


def _names(result: object) -> list[str]:
    return [device.device for device in result.devices] if isinstance(result, PreparedClaim) else []


def _since(began: float) -> int:
    return round((time.monotonic() - began) * 1000)
