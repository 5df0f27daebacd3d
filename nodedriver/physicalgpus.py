"""Keeps the PhysicalGPU objects of this node equal to its cards: made, changed only when something changed, removed.

A thread of its own; it never stands in the way of prepare, and what failed is tried again at the next look. A cluster
without the kind is no fault: the chart's CRD may not be installed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog
from msgspec.structs import replace

from dra.errors import DraError
from dra.kube import requests
from dra.kube.errors import KubeError, NotFoundError
from dra.kube.port import Cluster, list_all
from dra.kube.requests import NODES, PHYSICAL_GPUS
from dra.objects import (
    JsonObject,
    Node,
    PhysicalGPU,
    PhysicalGPUSpec,
    PhysicalGPUStatus,
    decode,
    physical_gpu_name,
    to_json,
)
from dra.objects.meta import encode_value
from dra.slices import SliceContent
from nodedriver.cardstatus import NodeView, settled, status_of, status_of_gone
from nodedriver.checkpoint import CheckpointError
from nodedriver.doctor.findings import Finding
from nodedriver.facts import CardFacts, PciAddress
from nodedriver.holding import Checkpoint, PreparedClaim
from nodedriver.inventory import DeviceRecord
from nodedriver.ports import GpuError

_log = structlog.get_logger()
LOOK_SECONDS = 180.0  # between two looks at the hardware and the node
STOP_SECONDS = 10.0  # an NVML call that hangs must not hold up the end
RETRY_SECONDS = 15.0
LEAST_SECONDS = 1.0  # from a nudge to its look: prepares in a row are one change here, and no answer waits beside it


@dataclass(frozen=True, slots=True)
class Sources:
    """Where what is known of the node comes from. `cards` asks the hardware, which takes time, and `now` a card for its
    mode alone; `published` is what the API server has of our slices, `records` what stands behind the names of devices,
    and `examine` asks the doctor.
    """

    cards: Callable[[], tuple[CardFacts, ...]]
    now: Callable[[CardFacts], CardFacts]
    checkpoint: Callable[[], Checkpoint]
    published: Callable[[], tuple[SliceContent, ...]]
    records: Mapping[str, DeviceRecord]
    examine: Callable[[tuple[CardFacts, ...]], tuple[Finding, ...]]


class PhysicalGpus:
    """The objects of one node. `cards` are the cards as they were found at the start."""

    def __init__(
        self, cluster: Cluster, sources: Sources, cards: tuple[CardFacts, ...], *, driver_name: str, node_name: str
    ) -> None:
        self._cluster = cluster
        self._sources = sources
        self._cards = cards
        self._findings: tuple[Finding, ...] = ()
        self._looked = False
        self._unserved = ""  # why the objects could not be written at all, as it was logged
        self._held: dict[PciAddress, tuple[PreparedClaim, ...]] = {}  # as the cards' modes were looked at last
        self._look_at = 0.0
        self._driver_name = driver_name
        self._manager = f"{driver_name}-cards"  # field manager
        self._node_name = node_name
        self._nudged = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="physical-gpus", daemon=True)

    def start(self) -> None:
        """Begin with a look."""
        self._thread.start()

    def stop(self) -> None:
        """End after the look that is on its way. The objects stay: the cards do, too."""
        self._stopping.set()
        self._nudged.set()
        self._thread.join(STOP_SECONDS)

    def nudge(self) -> None:
        """Claims or taints have changed: write that soon, with the mode of the cards whose claims these are. What else
        the hardware says follows at the next look at it.
        """
        self._nudged.set()

    def look_soon(self) -> None:
        """The hardware has changed: look at all of it."""
        self._look_at = 0.0
        self._nudged.set()

    def keep(self) -> None:
        """Compare once and write what differs; KubeError, GpuError or CheckpointError where that can't be done."""
        claims = tuple(self._sources.checkpoint().claims.values())
        self._cards = tuple(self._followed(card, claims) for card in self._cards)
        view, existing = self.view(claims), self._list()
        owner = self._owner()
        for card in view.cards:
            name = physical_gpu_name(self._node_name, card.pci_address)
            self._write(card.pci_address, existing.pop(name, None), status_of(view, card), owner)
        for left in existing.values():
            self._write_gone(view, left, owner)

    def view(self, claims: tuple[PreparedClaim, ...]) -> NodeView:
        """What is known now, of the cards and of these claims on them."""
        return NodeView(
            driver_name=self._driver_name,
            pool=self._node_name,
            cards=self._cards,
            claims=claims,
            published=self._sources.published(),
            records=self._sources.records,
            findings=self._findings,
        )

    def look(self) -> None:
        """Ask the doctor anew, and the hardware but for the first time: the start has just done so."""
        if self._looked:
            self._cards = self._sources.cards()
        self._findings = self._sources.examine(self._cards)
        self._looked = True

    def _followed(self, card: CardFacts, claims: tuple[PreparedClaim, ...]) -> CardFacts:
        """In its mode of now, where its claims are others than when that was looked at."""
        gpu = card.pci_address
        held = tuple(claim for claim in claims if gpu in claim.gpus)
        if held == self._held.get(gpu, ()):
            return card
        try:
            card = self._sources.now(card)
        except GpuError as error:
            _log.info("mode of a card told as before", gpu=gpu, error=str(error))
        else:
            self._held[gpu] = held
        return card

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._nudged.clear()
            written = self._try()
            if written:
                self._nudged.wait(max(0.0, self._look_at - time.monotonic()))
            if self._stopping.wait(LEAST_SECONDS if written else RETRY_SECONDS):
                return

    def _look_when_due(self) -> None:
        """One that failed stays due: what is written meanwhile is of the cards as they were before."""
        if time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + LOOK_SECONDS
        try:
            self.look()
        except Exception:
            self._look_at = 0.0
            raise

    def _try(self) -> bool:
        """Whether there is nothing to be tried again before something changes."""
        try:
            self._look_when_due()
            self.keep()
            self._unserved = ""
        except NotFoundError as error:
            self._say_unserved(str(error))
        except (KubeError, DraError, GpuError, CheckpointError, OSError) as error:
            _log.warning("PhysicalGPU objects not written", error=str(error), retry_seconds=RETRY_SECONDS)
            return False
        except Exception:  # noqa: BLE001 - a fault of ours must not end the rounds
            _log.exception("look at the cards met a fault")
            return False
        return True

    def _say_unserved(self, why: str) -> None:
        """Once until it changes: a cluster without the kind may stay so, and each prepare comes by here."""
        if why != self._unserved:
            _log.info("PhysicalGPU objects not written", reason=why, next="apply the chart's folder crds")
        self._unserved = why

    def _list(self) -> dict[str, PhysicalGPU]:
        selector = f"spec.nodeName={self._node_name}"
        pages = list_all(self._cluster, PHYSICAL_GPUS, field_selector=selector)
        found = (decode(item, PhysicalGPU) for page in pages for item in page.items)
        return {each.metadata.name: each for each in found}

    def _owner(self) -> JsonObject:
        """The Node as it is now, so that the objects go with it."""
        node = decode(self._cluster.send(requests.get(NODES, self._node_name)), Node)
        return {"apiVersion": "v1", "kind": "Node", "name": self._node_name, "uid": node.metadata.uid}

    def _write(self, gpu: PciAddress, found: PhysicalGPU | None, status: PhysicalGPUStatus, owner: JsonObject) -> None:
        """Apply the object when it is not there or another Node's, and the status when it says something else."""
        name = physical_gpu_name(self._node_name, gpu)
        last = found.status or PhysicalGPUStatus() if found else PhysicalGPUStatus()
        wanted = _timed(status, last)
        uids = [each.uid for each in found.metadata.owner_references] if found else []
        spec = PhysicalGPUSpec(node_name=self._node_name, pci_address=gpu)
        if owner["uid"] not in uids:
            self._apply(name, {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": to_json(spec)})
        if wanted != last:
            self._apply(name, {"metadata": {"name": name}, "status": to_json(wanted)}, "status")
            _log.info("PhysicalGPU written", name=name, mode=wanted.current_state.mode)

    def _write_gone(self, view: NodeView, left: PhysicalGPU, owner: JsonObject) -> None:
        """A card that is not there: the object stays as long as a claim holds it."""
        gpu = PciAddress(left.spec.pci_address)
        status = status_of_gone(view, gpu, left.status or PhysicalGPUStatus())
        if status is not None:
            self._write(gpu, left, status, owner)
            return
        self._cluster.send(requests.delete(PHYSICAL_GPUS, left.metadata.name, uid=left.metadata.uid))
        _log.info("PhysicalGPU removed", name=left.metadata.name)

    def _apply(self, name: str, fields: JsonObject, subresource: str = "") -> None:
        path = requests.path_of(PHYSICAL_GPUS, name=name, subresource=subresource)
        kind = {"apiVersion": PHYSICAL_GPUS.api_version, "kind": PHYSICAL_GPUS.kind}
        self._cluster.send(requests.apply(path, encode_value(kind | fields), manager=self._manager))


def _timed(status: PhysicalGPUStatus, last: PhysicalGPUStatus) -> PhysicalGPUStatus:
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return replace(status, conditions=settled(status.conditions, last.conditions, now))
