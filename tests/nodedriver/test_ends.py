"""Looks that are on their way when the driver stops end after the claim or the card they are at, and not after all."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from dra.kube.client import KubeClient
from nodedriver.inventory import InventoryRules, take_inventory
from nodedriver.locks import Locks
from nodedriver.maintenance import AwaitedClaims, Ledger, Maintenance, Naming, Workshop
from nodedriver.reconciler import Rounds
from nodedriver.resets import NvidiaSmiReset
from tests.nodedriver.ampere import waiting
from tests.nodedriver.claims import DRIVER, NODE, allocated, given
from tests.nodedriver.machine import CLAIMS, Machine, wait_until

pytestmark = pytest.mark.programs

SECONDS = 60.0
UIDS = tuple(f"{number:08d}-0000-4000-8000-000000000000" for number in range(2))


def awaited_claims(machine: Machine) -> AwaitedClaims:
    facts = machine.gpus.facts()
    records = take_inventory(InventoryRules(DRIVER), facts, {gpu.pci_address: n for n, gpu in enumerate(facts)}).records
    found = AwaitedClaims(KubeClient.of_node(str(machine.folder / "kubeconfig")), Naming(DRIVER, NODE), records)
    for number, uid in enumerate(UIDS):
        machine.allocate(waiting(f"gpu-{number}-mig-3g40gb-4", f"part-{number}", uid))
    return found


def test_a_look_at_the_claims_ends_with_its_rounds(machine: Machine) -> None:
    """The API server keeps the answer of the first claim back until the end has begun."""
    answered, paths = threading.Event(), [f"{CLAIMS}/claim-{number}" for number in range(2)]
    for number, uid in enumerate(UIDS):
        machine.driver.prepare(machine.allocate(allocated(given(f"gpu-{number}"), name=f"claim-{number}", uid=uid)))
    machine.store.slow.update(dict.fromkeys(paths, answered))
    seen = len(machine.store.requests)

    def asked() -> list[str]:
        return [path for _, path in machine.store.requests[seen:] if path in paths]

    rounds = machine.reconciler.within(Rounds(machine.reconciler.look, seconds=600))
    rounds.start()
    wait_until(asked, "the first claim", SECONDS)
    end = threading.Thread(target=rounds.stop)
    end.start()
    wait_until(rounds.is_stopping, "the beginning of the end", SECONDS)
    answered.set()
    end.join(SECONDS)
    assert (len(asked()), end.is_alive()) == (1, False)


def test_work_on_the_cards_ends_after_the_card_that_is_on_its_way(machine: Machine) -> None:
    """Two claims wait for two cards, and the driver is stopped when it publishes that the first one changes."""
    claims, locks = awaited_claims(machine), Locks(machine.plugin_dir / "locks", deadline=10)
    ledger = Ledger(DRIVER, machine.plugin_dir / "maintenance.json", "this boot", locks)
    minors = {gpu.pci_address: gpu.minor for gpu in machine.gpus.facts()}
    workshop = Workshop(
        modes=machine.gpus, resets=NvidiaSmiReset(machine.tree.driver), prepared=machine.prepared,
        proc_root=machine.tree.proc, minors=minors,
    )  # fmt: skip
    maintenance = Maintenance(claims, ledger, workshop, 60)
    end = threading.Thread(target=maintenance.stop)
    client = KubeClient.of_node(str(machine.folder / "kubeconfig"))
    maintenance.through(client, locks, _once(lambda: _begin(end)))
    claims.want()
    maintenance.start()
    wait_until(lambda: end.ident is not None, "the first card", SECONDS)
    end.join(SECONDS)
    assert (len(ledger.cards()), end.is_alive()) == (1, False)


def _once(what: Callable[[], None]) -> Callable[[], None]:
    left = [what]
    return lambda: left.pop()() if left else None


def _begin(end: threading.Thread) -> None:
    """Come back when the stop has come as far as to wait: the watch of claims is what it ends just before."""
    end.start()
    wait_until(lambda: "awaited-claims" not in {each.name for each in threading.enumerate()}, "the stop", SECONDS)


def test_a_fault_does_not_end_the_watch_of_claims(machine: Machine) -> None:
    """What is told of a change fails the first time."""
    claims, told = awaited_claims(machine), list[int]()

    def changed() -> None:
        told.append(len(claims.now() or ()))
        if len(told) == 1:
            raise ValueError("a fault of ours")

    claims.want()
    claims.start(changed)
    wait_until(lambda: len(told) > 1, "the next list", SECONDS)
    claims.stop()
    assert set(told) == {2}
