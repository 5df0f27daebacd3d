"""Which devices of this node claims wait for, by a watch of resource claims.

A claim has no field or label that says on which node it is allocated, and the pod is bound to none yet, so all claims
have to be followed. Only a driver that publishes such devices does so, and it looks into a claim only where its bytes
name a binding condition of ours.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

import structlog

from dra.errors import DraError
from dra.kube import requests
from dra.kube.errors import GoneError, KubeError
from dra.kube.port import Cluster, list_all
from dra.kube.requests import RESOURCE_CLAIMS
from dra.kube.responses import Header
from dra.kube.watch import WatchEvent, parse_event
from dra.names import ClaimUID
from dra.objects import ResourceClaim, decode
from nodedriver.inventory import DeviceRecord, Inventory, ServerFeatures, mode_ready
from nodedriver.maintenance.awaited import Awaited, Naming, awaited_of

type Build = Callable[[ServerFeatures], Inventory]

_log = structlog.get_logger()
_WATCH_SECONDS = 300
_FIRST_PAUSE = 1.0  # seconds, before a failed list or watch is begun again; doubled up to:
_LONGEST_PAUSE = 30.0


class AwaitedClaims:
    """The awaited devices by claim, kept by a thread that ends with the process or after `stop`."""

    def __init__(self, cluster: Cluster, naming: Naming, records: Mapping[str, DeviceRecord]) -> None:
        self._cluster = cluster
        self.naming = naming
        self._records = records
        self._ours = mode_ready(naming.driver_name).encode()
        self._claims: dict[ClaimUID, tuple[Awaited, ...]] = {}
        self._is_listed = False
        self._lock = threading.Lock()
        self._wanted = threading.Event()
        self._stopping = threading.Event()
        self._changed: Callable[[], None] = lambda: None

    def noting(self, build: Build) -> Build:
        """The same, looked at when it is published: with a device that has to be waited for, claims are followed."""

        def noted(features: ServerFeatures) -> Inventory:
            inventory = build(features)
            if any(device.binding_conditions for slice_ in inventory.slices for device in slice_.devices):
                self._wanted.set()
            return inventory

        return noted

    def want(self) -> None:
        """Follow claims, whatever is published."""
        self._wanted.set()

    def now(self) -> tuple[Awaited, ...] | None:
        """What is awaited; None while that is not known, as at the start."""
        with self._lock:
            return tuple(each for claim in self._claims.values() for each in claim) if self._is_listed else None

    def start(self, changed: Callable[[], None]) -> None:
        """Begin; `changed` is called after each change."""
        self._changed = changed
        threading.Thread(target=self._keep, name="awaited-claims", daemon=True).start()

    def stop(self) -> None:
        """Follow no further."""
        self._stopping.set()
        self._wanted.set()

    def _keep(self) -> None:
        self._wanted.wait()
        pause = _FIRST_PAUSE
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                self._follow()
            except GoneError:
                _log.info("watch of ResourceClaims began anew")
            except (KubeError, DraError) as error:
                _log.warning("ResourceClaims not followed, tried again soon", error=str(error))
                pause = self._rest(began, pause)
            except Exception:  # noqa: BLE001 - a fault of ours must not end the work on the cards
                _log.exception("watch of ResourceClaims met a fault")
                pause = self._rest(began, pause)

    def _rest(self, began: float, pause: float) -> float:
        """Wait, and how long the next time, all being well or not since `began`."""
        pause = _FIRST_PAUSE if time.monotonic() - began > _LONGEST_PAUSE else pause
        self._stopping.wait(pause)
        return min(pause * 2, _LONGEST_PAUSE)

    def _follow(self) -> None:
        """List once, then hear of each change, until a fault."""
        version = self._list()
        while not self._stopping.is_set():
            request = requests.watch(RESOURCE_CLAIMS, resource_version=version, seconds=_WATCH_SECONDS)
            with self._cluster.stream(request) as lines:
                for line in lines:
                    event = parse_event(line)
                    version = event.resource_version
                    self._hear(event)

    def _list(self) -> str:
        found, version = {}, ""
        for page in list_all(self._cluster, RESOURCE_CLAIMS):
            version = page.resource_version
            for item in page.items:
                if awaited := self._read(item):
                    found[awaited[0].ref.uid] = awaited
        with self._lock:
            self._claims, self._is_listed = found, True
        self._changed()
        return version

    def _hear(self, event: WatchEvent) -> None:
        if event.type == "BOOKMARK":
            return
        awaited = self._read(event.object) if event.type != "DELETED" else ()
        with self._lock:
            if not awaited and not self._claims:
                return
            uid = ClaimUID(decode(event.object, Header).metadata.uid)
            before = self._claims.pop(uid, ())
            if awaited:
                self._claims[uid] = awaited
        if awaited != before:
            self._changed()

    def _read(self, body: bytes) -> tuple[Awaited, ...]:
        return awaited_of(decode(body, ResourceClaim), self.naming, self._records) if self._ours in body else ()
