"""What a claim's status.devices says about our devices (KEP-4817), and the thread that keeps it written.

Level-triggered: a write says what the checkpoint holds at that moment, so a lost or doubled wish changes nothing. Never
in the way of prepare: a failure is logged and tried again later.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

import structlog

from dra.kube.errors import KubeError, NotFoundError
from dra.kube.port import Cluster
from dra.kube.requests import RESOURCE_CLAIMS, Request, apply, path_of
from dra.names import ClaimUID
from dra.objects import API_VERSION, AllocatedDeviceStatus, Condition, JsonObject
from dra.objects.meta import ApiStruct, encode
from dra.quantity import Format, Quantity
from nodedriver.checkpoint import CheckpointError
from nodedriver.holding import Checkpoint, ClaimState, PreparedClaim, PreparedDevice, limits_of, sharers
from nodedriver.sharing import EnforcedBy, enforced_by

_log = structlog.get_logger()
RETRY_SECONDS = 5.0


class _Metadata(ApiStruct, frozen=True, kw_only=True):
    name: str
    namespace: str
    uid: str  # refused with 409 when the name is another claim's by now


class _Status(ApiStruct, frozen=True, kw_only=True):
    devices: tuple[AllocatedDeviceStatus, ...]


class _AppliedClaim(ApiStruct, frozen=True, kw_only=True, omit_defaults=False):
    """The fields that we own, for server-side apply."""

    api_version: str = API_VERSION
    kind: str = RESOURCE_CLAIMS.kind
    metadata: _Metadata
    status: _Status


def status_request(driver_name: str, claim: PreparedClaim, checkpoint: Checkpoint) -> Request:
    """The server-side apply of our part of the claim's status, as the field manager that is named like the driver."""
    body = _AppliedClaim(
        metadata=_Metadata(name=claim.name, namespace=claim.namespace, uid=claim.uid),
        status=_Status(devices=tuple(_device_status(driver_name, claim, d, checkpoint) for d in claim.devices)),
    )
    path = path_of(RESOURCE_CLAIMS, namespace=claim.namespace, name=claim.name, subresource="status")
    return apply(path, encode(body), manager=driver_name)


def _device_status(
    driver_name: str, claim: PreparedClaim, device: PreparedDevice, checkpoint: Checkpoint
) -> AllocatedDeviceStatus:
    ready = Condition(
        type="Ready",
        status="True",
        reason="Prepared",
        message=f"{device.device} is prepared",
        last_transition_time=claim.prepared_at,
    )
    return AllocatedDeviceStatus(
        driver=driver_name,
        pool=device.pool,
        device=device.device,
        share_id=device.share_id,
        conditions=(ready,),
        data=_data(device, checkpoint),
    )


def _data(device: PreparedDevice, checkpoint: Checkpoint) -> JsonObject:
    """What the portal shows: the share, its limits, and who enforces them beside the neighbours of this moment."""
    data: JsonObject = {"enforcedBy": EnforcedBy.NONE, "uuid": device.uuid}
    if device.admin_access or device.mps is None:
        return data
    data |= {
        "sharePercent": device.share,
        "enforcedBy": enforced_by(device.mps, limits_of(sharers(device, checkpoint.claims.values()))),
    }
    if device.mps.thread_percentage is not None:
        data["activeThreadPercentage"] = device.mps.thread_percentage
    if device.mps.memory_limit is not None:
        data["pinnedDeviceMemoryLimit"] = str(Quantity.of(device.mps.memory_limit, Format.BINARY_SI))
    return data


class StatusWriter:
    """Writes claim statuses in a thread of its own, one after another, and repeats what failed."""

    def __init__(self, driver_name: str, cluster: Cluster, read: Callable[[], Checkpoint]) -> None:
        """`read` gives the checkpoint of the moment."""
        self._driver_name = driver_name
        self._cluster = cluster
        self._read = read
        self._wished: set[ClaimUID] = set()
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="claim-status", daemon=True)

    def start(self) -> None:
        """Begin, with all prepared claims: the last process may have ended before it wrote them."""
        self.wish(self._read().claims)
        self._thread.start()

    def stop(self) -> None:
        """End after the write that is on its way. What was not written is written by the next process."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()

    def wish(self, uids: Iterable[ClaimUID]) -> None:
        """Have these claims' statuses written soon. A claim that is not prepared by then is left alone."""
        with self._changed:
            self._wished.update(uids)
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._wished or self._stopping)
                if self._stopping:
                    return
                uids, self._wished = self._wished, set()
            failed = [uid for uid in sorted(uids) if not self._write(uid)]
            if failed:
                self._wait_before_retry(failed)

    def _wait_before_retry(self, failed: list[ClaimUID]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._stopping, timeout=RETRY_SECONDS)
            self._wished.update(failed)

    def _write(self, uid: ClaimUID) -> bool:
        """Whether nothing is left to do for this claim."""
        log = _log.bind(uid=uid)
        try:
            checkpoint = self._read()
            claim = checkpoint.claims.get(uid)
            if claim is None or claim.state is not ClaimState.COMPLETED:
                return True
            self._cluster.send(status_request(self._driver_name, claim, checkpoint))
        except NotFoundError:
            log.info("resource claim was gone before its status was written")
        except (KubeError, CheckpointError) as error:
            log.warning("claim status not written", error=str(error), retry_seconds=RETRY_SECONDS)
            return False
        return True
