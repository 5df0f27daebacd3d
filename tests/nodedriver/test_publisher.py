"""Slices that could not be written are written later, though nobody else changes anything: over HTTP, small server."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dra.kube.client import KubeClient
from dra.kube.errors import BusyError
from nodedriver.cardmodes import CardMode
from nodedriver.inventory import Inventory, InventoryRules, ServerFeatures, take_inventory
from nodedriver.lastpublished import LastPublished
from nodedriver.locks import Locks
from nodedriver.maintenance import Ledger
from nodedriver.maintenance.deciding import Kept
from nodedriver.publisher import Publisher
from tests.nodedriver.apiserver import Store, serve
from tests.nodedriver.claims import DRIVER, NODE
from tests.nodedriver.gpus import card
from tests.nodedriver.machine import wait_until

SLICES = "/apis/resource.k8s.io/v1/resourceslices"
SECONDS = 60.0
CARD = card()


class Side:
    """A publisher of one card with its taints from a ledger, and what the API server has of it."""

    def __init__(self, folder: Path, store: Store) -> None:
        self.store = store
        self.file = folder / "maintenance.json"
        self.faults: list[OSError] = []
        self.ledger = Ledger(DRIVER, self.file, "this boot", Locks(folder, deadline=1))
        cluster = KubeClient.of_node(str(folder / "kubeconfig"))
        last = LastPublished(folder / "published.json")
        self.publisher = Publisher(cluster, last, driver_name=DRIVER, node_name=NODE)

    def build(self, features: ServerFeatures) -> Inventory:
        ranks = {CARD.pci_address: 0}
        try:
            return take_inventory(InventoryRules(DRIVER), (CARD,), ranks, taints=self.ledger.taints, features=features)
        except OSError as error:
            self.faults.append(error)
            raise

    def begin_reset(self) -> None:
        since = "2026-01-01T00:00:00Z"
        self.ledger.keep(CARD.pci_address, Kept(gpu=CARD.pci_address, target=CardMode.MIG, since=since))

    def fail_to_publish(self) -> None:
        """A reset begins while the API server refuses to write slices."""
        self.store.refuse.add(NODE)
        self.begin_reset()
        with pytest.raises(BusyError, match="etcd is away"):
            self.publisher.publish(self.build)
        assert self.taints() == set()
        self.store.refuse.clear()

    def devices(self) -> list[dict[str, Any]]:
        return [device for each in self.store.under(SLICES) for device in each["spec"].get("devices", [])]

    def taints(self) -> set[str]:
        return {taint["value"] for device in self.devices() for taint in device.get("taints", [])}


@pytest.fixture
def side(tmp_path: Path) -> Iterator[Side]:
    with serve(tmp_path / "kubeconfig") as store:
        store.watch_seconds = 600.0  # no watch ends while a test runs, which would be a reason to compare
        store.put(f"/api/v1/nodes/{NODE}", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}, "ADDED")
        made = Side(tmp_path, store)
        made.publisher.publish(made.build)
        assert made.devices()
        yield made
        made.publisher.stop()


def follow(side: Side) -> None:
    """Start, and come back when slices were listed and the watch has begun: it has nothing to tell."""
    seen = len(side.store.requests)
    side.publisher.start()
    wait_until(lambda: side.store.requests[seen:].count(("GET", SLICES)) == 2, "the watch", SECONDS)


def test_a_refused_write_is_done_later_though_the_watch_lives_on(side: Side) -> None:
    follow(side)
    side.fail_to_publish()
    wait_until(lambda: side.taints() == {"reset-pending"}, "the taint in the slices", SECONDS)


def test_a_refused_write_is_done_at_the_next_look_at_what_is_kept(side: Side) -> None:
    side.fail_to_publish()
    side.publisher.reconsider()
    assert side.taints() == {"reset-pending"}
    seen = len(side.store.requests)
    side.publisher.reconsider()
    assert side.store.requests[seen:] == []


def test_an_inventory_that_can_not_be_made_does_not_end_the_work(side: Side) -> None:
    """The ledger is read for the taints, and the disk may fail; a slice is deleted meanwhile."""
    follow(side)
    before = side.devices()
    side.file.mkdir()
    gone = f"{SLICES}/{side.store.under(SLICES)[-1]['metadata']['name']}"
    side.store.put(gone, side.store.objects[gone], "DELETED")
    wait_until(lambda: side.faults, "an answer to the change", SECONDS)
    side.file.rmdir()
    wait_until(lambda: side.devices() == before, "the slice that was deleted", SECONDS)
