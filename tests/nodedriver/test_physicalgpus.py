"""The PhysicalGPU objects that a driver process writes: one a card, changed only when something changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from structlog.testing import capture_logs

from dra.kube.client import KubeClient
from nodedriver.doctor.findings import Finding, ok
from nodedriver.facts import CardFacts, GpuFacts, PciAddress
from nodedriver.inventory import InventoryRules, take_inventory
from nodedriver.physicalgpus import PhysicalGpus, Sources
from nodedriver.ports import GpuError
from nodedriver.vfio import Roots, all_cards, as_now
from simulator.silicon import pci
from tests.nodedriver import apiserver
from tests.nodedriver.ampere import MIG, AmpereNode, waiting
from tests.nodedriver.claims import DRIVER, NODE, allocated, given
from tests.nodedriver.machine import Machine, short_folder, wait_until
from tests.nodedriver.madenode import MadeNode
from tests.nodedriver.node import DriverNode

pytestmark = pytest.mark.programs

CARDS = "/apis/portico.dev/v1alpha1/physicalgpus"
FIRST = f"{CARDS}/{NODE}-0000-1b-00-0"
A = "aaaaaaaa-0000-4000-8000-000000000000"
SECONDS = 60.0


def status(node: DriverNode, path: str = FIRST) -> Any:
    return node.store.objects.get(path, {}).get("status", {})


def await_all(node: DriverNode) -> None:
    wait_until(
        lambda: [bool(each.get("status")) for each in node.store.under(CARDS)] == [True] * 8, "eight cards", SECONDS
    )


def test_a_driver_tells_of_each_card_and_of_who_holds_it(driver_node: DriverNode) -> None:
    node = driver_node
    await_all(node)
    first = node.store.objects[FIRST]
    assert first["spec"] == {"nodeName": NODE, "pciAddress": "0000:1b:00.0"}
    assert first["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": "node-uid"}
    ]
    told = first["status"]
    assert told["capabilities"]["productName"] == "NVIDIA H100 80GB HBM3"
    assert told["currentState"]["mode"] == "Whole"
    assert told["currentState"]["kernelDriver"] == "nvidia"
    assert told["topology"] == {"numaNode": 0, "pcieRoot": "pci0000:1a", "nvlinkClique": "0000:1b:00.0"}
    assert {each["type"]: each["status"] for each in told["conditions"]} == {
        "CgroupsSupported": "Unknown",
        "DriverReady": "True",
        "FreeOfAgents": "True",
        "KernelSupported": "True",
        "KubeletSupported": "Unknown",
        "OfferedOnce": "True",
        "Present": "True",
        "RuntimeGivesDevices": "Unknown",
        "TakesClaims": "True",
        "VfioPossible": "False",  # its modules are not loaded
    }
    assert (told["published"]["driver"], len(told["published"]["devices"])) == (DRIVER, 27)

    claim = node.allocate(allocated(given("gpu-0", 100), uid=A))
    assert not node.prepare(claim)[A].error
    wait_until(lambda: "heldBy" in status(node)["currentState"], "the holder", SECONDS)
    assert status(node)["currentState"]["heldBy"] == [
        {"namespace": "ml-team", "name": "claim", "uid": A, "devices": ["gpu-0"]}
    ]
    node.unprepare(claim)
    wait_until(lambda: "heldBy" not in status(node)["currentState"], "the holder's end", SECONDS)


def test_the_mode_follows_a_claim_and_no_write_says_what_was_said(driver_node: DriverNode) -> None:
    """And not at the next look at the hardware, which is minutes away."""
    node = driver_node
    await_all(node)
    before, seen = status(node)["currentState"], len(node.store.events)
    claim = node.allocate(allocated(given("gpu-0-mig-3g40gb-4", 100), uid=A))
    assert not node.prepare(claim)[A].error
    wait_until(lambda: status(node)["currentState"]["mode"] == "MIG", "MIG mode", SECONDS)
    state = status(node)["currentState"]
    assert (state["migInstances"], [each["uid"] for each in state["heldBy"]]) == (["3g.40gb@4"], [A])
    node.unprepare(claim)
    wait_until(lambda: status(node)["currentState"]["mode"] == "Whole", "the whole card", SECONDS)
    assert not {"migInstances", "heldBy"} & status(node)["currentState"].keys()
    written = [(path, card) for path, _, card in node.store.events[seen:] if path.startswith(CARDS)]
    assert {path for path, _ in written} == {FIRST}
    states = [before, *(card["status"]["currentState"] for _, card in written)]
    assert all(one != other for one, other in pairwise(states))


def test_the_mode_follows_a_reset_that_a_claim_waited_for() -> None:
    with short_folder() as folder, apiserver.serve(folder / "kubeconfig") as store:
        node = AmpereNode(folder, store, "a100x8")
        try:
            node.start("driver")
            await_all(node)
            node.submit(waiting(MIG, "part", A))
            wait_until(lambda: _modes(store)[0] == "MIG", "MIG mode", SECONDS)
        finally:
            node.close()
    assert _modes(store) == ["MIG"] + ["Whole"] * 7


def _modes(store: apiserver.Store) -> list[str]:
    return [card["status"]["currentState"]["mode"] for card in store.under(CARDS)]


def test_a_restart_writes_nothing_anew(driver_node: DriverNode) -> None:
    node = driver_node
    await_all(node)
    before = {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in node.store.under(CARDS)}
    assert node.terminate("driver") == 0
    seen = len(node.store.requests)
    node.start("driver")
    wait_until(lambda: ("GET", CARDS) in node.store.requests[seen:], "the next look", SECONDS)
    claim = node.allocate(allocated(given("gpu-7", 100), uid=A))
    node.prepare(claim)
    last = f"{NODE}-0000-df-00-0"
    wait_until(lambda: "heldBy" in status(node, f"{CARDS}/{last}")["currentState"], "a change", SECONDS)
    after = {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in node.store.under(CARDS)}
    assert {name for name in before if before[name] != after[name]} == {last}


def test_an_agent_that_holds_a_card_shows_on_that_card() -> None:
    with short_folder() as folder, apiserver.serve(folder / "kubeconfig") as store:
        node = DriverNode(folder, store)
        made = MadeNode(node.tree, folder)
        made.process(300, "dcgm-exporter", files=["/dev/nvidia1"])
        try:
            node.start("driver", "--host-root", str(made.host))
            await_all(node)
            found = [{each["type"]: each for each in card["status"]["conditions"]} for card in store.under(CARDS)]
        finally:
            node.close()
    told = {each["FreeOfAgents"]["status"] for number, each in enumerate(found) if number != 1}
    assert (told, found[1]["FreeOfAgents"]["status"]) == ({"True"}, "False")
    assert "dcgm-exporter (process 300)" in found[1]["FreeOfAgents"]["message"]


def findings_about(gpu: PciAddress, _cards: tuple[CardFacts, ...]) -> tuple[Finding, ...]:
    return (ok("KernelSupported", "Linux 6.8."), ok("FreeOfAgents", "Free.", gpu=gpu))


@pytest.fixture
def keeper(machine: Machine) -> PhysicalGpus:
    """In this process, so that each look is the test's own."""
    return keeper_of(machine, machine.gpus.facts)


def keeper_of(machine: Machine, cards: Callable[[], tuple[GpuFacts, ...]]) -> PhysicalGpus:
    facts = cards()
    ranks = {gpu.pci_address: rank for rank, gpu in enumerate(facts)}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, "uid": "node-uid"}}
    machine.store.put(f"/api/v1/nodes/{NODE}", node, "ADDED")
    inventory = take_inventory(InventoryRules(DRIVER), facts, ranks)
    doctor = partial(findings_about, PciAddress("0000:1b:00.0"))
    now = partial(as_now, machine.gpus, machine.tree.sys)
    sources = Sources(cards, now, machine.prepared.read, lambda: inventory.slices, inventory.records, doctor)
    client = KubeClient.of_node(str(machine.folder / "kubeconfig"))
    made = PhysicalGpus(client, sources, facts, driver_name=DRIVER, node_name=NODE)
    made.look()
    made.keep()
    return made


def test_findings_of_the_doctor_are_conditions_of_the_cards_that_they_concern(
    machine: Machine, keeper: PhysicalGpus
) -> None:
    told = [sorted(each["type"] for each in card["status"]["conditions"]) for card in machine.store.under(CARDS)]
    of_node = ["KernelSupported", "Present", "TakesClaims"]
    assert told == [sorted([*of_node, "FreeOfAgents"]), *[of_node] * 7]


def test_an_object_that_others_removed_or_changed_is_put_right(machine: Machine, keeper: PhysicalGpus) -> None:
    told = machine.store.objects[FIRST]["status"]
    machine.store.put(FIRST, machine.store.objects[FIRST], "DELETED")
    keeper.keep()
    made = machine.store.objects[FIRST]
    machine.store.put(FIRST, {**made, "status": {**made["status"], "currentState": {"mode": "VFIO"}}}, "MODIFIED")
    keeper.keep()
    now = machine.store.objects[FIRST]["status"]
    assert (now["currentState"], now["capabilities"]) == (told["currentState"], told["capabilities"])


def test_another_node_of_the_same_name_becomes_the_owner(machine: Machine, keeper: PhysicalGpus) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, "uid": "new-uid"}}
    machine.store.put(f"/api/v1/nodes/{NODE}", node, "MODIFIED")
    keeper.keep()
    owners = {each["uid"] for card in machine.store.under(CARDS) for each in card["metadata"]["ownerReferences"]}
    assert owners == {"new-uid"}


def test_the_mode_follows_the_hardware_at_the_next_look(machine: Machine, keeper: PhysicalGpus) -> None:
    gpu = machine.gpus.facts()[0]
    profile = next(each for each in gpu.profiles if each.name == "3g.40gb")
    machine.gpus.enter_mig(gpu.pci_address)
    machine.gpus.create_mig(gpu.pci_address, profile.placements[1])
    keeper.look()
    keeper.keep()
    state = machine.store.objects[FIRST]["status"]["currentState"]
    assert (state["mode"], state["migInstances"]) == ("MIG", ["3g.40gb@4"])


def test_hardware_that_could_not_be_looked_at_is_looked_at_again_soon(machine: Machine) -> None:
    """And not minutes later: NVML is away while another card is reset."""
    away = [GpuError("another card is being reset")]
    seen: list[int] = []

    def cards() -> tuple[GpuFacts, ...]:
        seen.append(len(away))
        if len(seen) > 1 and away:
            raise away.pop()
        return machine.gpus.facts()

    keeper = keeper_of(machine, cards)
    machine.gpus.enter_mig(machine.gpus.facts()[0].pci_address)
    keeper.start()
    wait_until(lambda: _modes(machine.store)[0] == "MIG", "MIG mode", SECONDS)
    keeper.stop()
    assert seen == [1, 1, 0]


def test_a_cluster_without_the_kind_is_told_of_once(machine: Machine, keeper: PhysicalGpus) -> None:
    """Here it is the Node that is not found, which is answered alike."""
    path = f"/api/v1/nodes/{NODE}"
    machine.store.put(path, machine.store.objects[path], "DELETED")
    with capture_logs() as log:
        keeper.start()
        for number in range(1, 4):
            wait_until(partial(_asked, machine, path, number), "a try", SECONDS)
            keeper.nudge()
        keeper.stop()
    assert [each["event"] for each in log].count("PhysicalGPU objects not written") == 1


def _asked(machine: Machine, path: str, times: int) -> bool:
    """So often, after the one time when the objects were written first."""
    return machine.store.requests.count(("GET", path)) > times


def test_a_card_that_a_virtual_machine_has_stays_visible(machine: Machine) -> None:
    pci.load_vfio(machine.tree.sys)
    machine.driver = machine.make_driver()
    roots = Roots(machine.tree.sys, machine.tree.proc)
    keeper = keeper_of(machine, lambda: all_cards(machine.gpus.facts(), machine.plugin_dir / "cards.json", roots))
    before = machine.store.objects[FIRST]["status"]
    assert before["capabilities"]["vfio"] is True
    ref = machine.allocate(allocated(given("gpu-0-vfio"), uid=A))
    machine.driver.prepare(ref)
    keeper.keep()
    told = machine.store.objects[FIRST]["status"]
    state = told["currentState"]
    assert (state["mode"], state["kernelDriver"], state["uuid"]) == (
        "VFIO", "vfio-pci", before["currentState"]["uuid"],
    )  # fmt: skip
    assert state["heldBy"][0]["devices"] == ["gpu-0-vfio"]
    assert (told["capabilities"], told["published"]) == (before["capabilities"], before["published"])
    machine.driver.unprepare(ref)
    keeper.keep()
    assert machine.store.objects[FIRST]["status"]["currentState"] == before["currentState"]


def test_a_card_that_went_stays_while_it_is_held_and_goes_then(machine: Machine, keeper: PhysicalGpus) -> None:
    ref = machine.allocate(allocated(given("gpu-0", 100), uid=A))
    machine.driver.prepare(ref)
    lost = machine.state.read().gpus[0].pci_address
    machine.state.change_gpu(lost, lambda gpu: (_lost(gpu), None))
    keeper.look()
    keeper.keep()
    conditions = {each["type"]: each for each in machine.store.objects[FIRST]["status"]["conditions"]}
    assert conditions["Present"]["status"] == "False"
    assert "ml-team/claim" in conditions["Present"]["message"]

    machine.prepared.drop(ref.uid)
    keeper.keep()
    assert FIRST not in machine.store.objects
    assert len(machine.store.under(CARDS)) == 7


def _lost(gpu: Any) -> Any:
    return replace(gpu, lost=True)
