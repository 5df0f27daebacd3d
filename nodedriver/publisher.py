"""Keeps the ResourceSlices of this node in the cluster equal to the inventory.

Level-triggered: whatever happened, the slices that exist are compared with those that should, and the difference is
written. The kubelet deletes a node's slices when it starts without a driver; a watch notices, and they come back.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator

import structlog

from dra.errors import DraError
from dra.kube import requests
from dra.kube.errors import ConflictError, GoneError, KubeError, NotFoundError
from dra.kube.port import Cluster, list_all
from dra.kube.requests import NODES, RESOURCE_CLAIMS, RESOURCE_SLICES
from dra.kube.watch import parse_event
from dra.objects import Node, OwnerReference, ResourceClaim, ResourceSlice, decode, encode
from dra.slices import Changes, PoolContent, SliceContent, changes, dropped_fields
from nodedriver.inventory import Inventory, ServerFeatures
from nodedriver.keeping import content_of, keep, with_remembered
from nodedriver.lastpublished import LastPublished
from nodedriver.serverfeatures import detect_features

log = structlog.get_logger(__name__)

_TRIES = 5  # of one round, while others write the same slices
_WATCH_SECONDS = 300
_FIRST_PAUSE = 1.0  # seconds, before a failed or a repeated round; doubled up to:
_LONGEST_PAUSE = 30.0
_FIRST_BREATH = 0.1  # seconds after slices of others' making were put right; doubled while others go on, up to the same
_CALM_SECONDS = 60.0  # after which it counts as the first again

type Build = Callable[[ServerFeatures], Inventory]


class Publisher:
    """The slices of one driver on one node. `publish` may be called from any thread, at any time."""

    def __init__(self, cluster: Cluster, last: LastPublished, *, driver_name: str, node_name: str) -> None:
        self._cluster = cluster
        self._last = last
        self._driver_name = driver_name
        self._node_name = node_name
        self._selector = f"spec.driver={driver_name},spec.nodeName={node_name}"
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._unwritten = threading.Event()  # the last round failed
        self.published: tuple[SliceContent, ...] = ()  # what the API server had of us when we looked last
        self._for_holders = False  # whether some of it is there only for the claims that hold it
        self._build: Build | None = None
        self._features: ServerFeatures | None = None
        self._writes = 0
        self._answered, self._breath = 0.0, _FIRST_BREATH
        self._own_versions: deque[str] = deque(maxlen=256)  # of our writes, whose echoes in the watch say nothing new

    def publish(self, build: Build) -> None:
        """From now on publish what `build` makes of the server's features, and write it now.

        KubeError, or what `build` raises, when that fails; it is then tried again until it succeeds.
        """
        with self._lock:
            self._build = build
        self._round()

    def start(self) -> None:
        """Begin to watch and to try again, in threads that end with the process or after `stop`."""
        threading.Thread(target=self._keep, name="publisher", daemon=True).start()
        threading.Thread(target=self._retry, name="publisher-retries", daemon=True).start()

    def reconsider(self) -> None:
        """Take back what was kept for claims that have gone since, and write what could not be written; nothing where
        there is neither.
        """
        if (self._for_holders or self._unwritten.is_set()) and not self._stopping.is_set():
            self._is_done(self._round)

    def stop(self) -> None:
        """Write nothing from now on. The slices stay: pods keep their devices while a driver is replaced."""
        self._stopping.set()
        with self._lock:
            self._build = None
        self._unwritten.set()

    def _keep(self) -> None:
        pause = _FIRST_PAUSE
        while not self._stopping.is_set():
            began = time.monotonic()
            if not self._is_done(self._follow):
                pause = _FIRST_PAUSE if time.monotonic() - began > _LONGEST_PAUSE else pause
                self._stopping.wait(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)

    def _retry(self) -> None:
        """Write what a round could not, since a watch that lives hears nothing of that."""
        pause = _FIRST_PAUSE
        while not self._stopping.is_set():
            self._unwritten.wait()
            if self._stopping.wait(pause):
                return
            done = not self._unwritten.is_set() or self._is_done(self._round)
            pause = _FIRST_PAUSE if done else min(pause * 2, _LONGEST_PAUSE)

    def _is_done(self, work: Callable[[], object]) -> bool:
        """Whether it went without a fault, which is logged."""
        try:
            work()
        except GoneError:
            log.info("watch of ResourceSlices began anew")
        except (KubeError, DraError, OSError) as error:
            log.warning("ResourceSlices not kept, tried again soon", error=str(error))
            return False
        except Exception:  # a fault of ours must not end the work on the slices
            log.exception("work on the ResourceSlices met a fault")
            return False
        return True

    def _follow(self) -> None:
        """Compare once, then again at each change by others, until a fault."""
        version = self._round()
        while not self._stopping.is_set():
            request = requests.watch(
                RESOURCE_SLICES, resource_version=version, field_selector=self._selector, seconds=_WATCH_SECONDS
            )
            with self._cluster.stream(request) as lines:
                for line in lines:
                    event = parse_event(line)
                    version = event.resource_version
                    if event.type != "BOOKMARK" and version not in self._own_versions:
                        self._answer()

    def _answer(self) -> None:
        """Compare after a change by others. Who keeps undoing ours is answered ever later: while two drivers overlap in
        an update, each would else undo the other as fast as the API server lets them.
        """
        before = self._writes
        self._round()
        if self._writes != before:
            now = time.monotonic()
            calm = now - self._answered > _CALM_SECONDS
            self._answered, self._breath = now, _FIRST_BREATH if calm else min(self._breath * 2, _LONGEST_PAUSE)
            self._stopping.wait(self._breath)

    def _round(self) -> str:
        """Settle, and remember whether that succeeded."""
        with self._lock:
            try:
                version = self._settle()
            except Exception:
                self._unwritten.set()
                raise
            self._unwritten.clear()
            return version

    def _settle(self) -> str:
        """Make the slices equal to the wanted ones, and return the version of the last list. The lock is held."""
        for left in reversed(range(_TRIES)):
            existing, version = self._list()
            if self._build is None:
                return version
            pool = self._wanted(self._build, existing)
            wanted = changes(pool, existing)
            if not wanted:
                self.published = pool.slices
                self._last.keep(pool.slices)
                return version
            try:
                self._write(wanted)
            except (ConflictError, NotFoundError) as error:
                if not left:
                    raise
                log.info("ResourceSlices changed meanwhile, compared again", error=str(error))
        log.warning("ResourceSlices still differ from what was written", tries=_TRIES)
        return version

    def _list(self) -> tuple[tuple[ResourceSlice, ...], str]:
        pages = list(list_all(self._cluster, RESOURCE_SLICES, field_selector=self._selector))
        slices = tuple(decode(item, ResourceSlice) for page in pages for item in page.items)
        return slices, pages[-1].resource_version

    def _wanted(self, build: Build, existing: tuple[ResourceSlice, ...]) -> PoolContent:
        owner = self._owner()
        if self._features is None:
            self._features = detect_features(self._cluster, self._driver_name, self._node_name)
        before = with_remembered(content_of(existing), self._last.content())
        kept = keep(build(self._features).slices, before, self._held, self._driver_name)
        self._for_holders = kept.for_holders
        return PoolContent(driver=self._driver_name, node=self._node_name, owner=owner, slices=kept.content)

    def _held(self) -> frozenset[str]:
        """The devices of ours that claims hold. Reads all claims, so it is asked only before something is dropped."""
        names: set[str] = set()
        for page in list_all(self._cluster, RESOURCE_CLAIMS):
            for item in page.items:
                names.update(self._ours(decode(item, ResourceClaim)))
        return frozenset(names)

    def _ours(self, claim: ResourceClaim) -> Iterator[str]:
        results = claim.status.allocation.devices.results if claim.status.allocation else ()
        ours = self._driver_name, self._node_name
        return (result.device for result in results if (result.driver, result.pool) == ours)

    def _owner(self) -> OwnerReference:
        """The Node as it is now: another one of the same name has another uid, and its slices are others too."""
        node = decode(self._cluster.send(requests.get(NODES, self._node_name)), Node)
        return OwnerReference(
            api_version=node.api_version, kind=node.kind, name=self._node_name, uid=node.metadata.uid, controller=True
        )

    def _write(self, wanted: Changes) -> None:
        """Do the changes in their order."""
        self._writes += 1
        for gone in wanted.delete:
            metadata = gone.metadata
            self._cluster.send(
                requests.delete(
                    RESOURCE_SLICES, metadata.name, uid=metadata.uid, resource_version=metadata.resource_version
                )
            )
        for new in wanted.create:
            self._note(new, self._cluster.send(requests.create(RESOURCE_SLICES, encode(new))))
        for changed in wanted.update:
            name = changed.metadata.name
            self._note(changed, self._cluster.send(requests.replace(RESOURCE_SLICES, name, encode(changed))))
        done = {"created": len(wanted.create), "updated": len(wanted.update), "deleted": len(wanted.delete)}
        log.info("ResourceSlices published", **done)

    def _note(self, sent: ResourceSlice, body: bytes) -> None:
        """Remember our own write; look again at what the server can do if it did not keep all of it."""
        received = decode(body, ResourceSlice)
        self._own_versions.append(received.metadata.resource_version)
        dropped = dropped_fields(sent, received)
        if dropped:
            log.warning("API server dropped fields", name=sent.metadata.name, fields=dropped)
            self._features = None
