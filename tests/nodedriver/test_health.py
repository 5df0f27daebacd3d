"""Errors of stand-in cards, heard by NVML's events: taints appear at once, stay over a restart, and are lifted."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dra.objects import DeviceTaint
from nodedriver.facts import MigPlacement, PciAddress
from nodedriver.health.ailments import CardLook, Policy
from nodedriver.health.monitor import Health, Monitor
from nodedriver.nvml import Nvml
from simulator.silicon import nvml as silicon_nvml
from simulator.silicon import rules
from simulator.silicon.fleet import initialise
from simulator.silicon.hardware import Injection
from simulator.silicon.state import State
from tests.nodedriver.machine import wait_until
from tests.nodedriver.node import SLICES, DriverNode

DRIVER = "gpu.portico.dev"
AT_0, AT_4 = MigPlacement(9, 0, 4), MigPlacement(9, 4, 4)


class Ward:
    """Cards, what is known of their health, and how often a change was published."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "health.json"
        tree = initialise(folder / "m")
        self.state = State(tree.state)
        silicon_nvml.install(tree.state)
        self.gpus = Nvml(library=None, sys_root=tree.sys)
        self.cards = [gpu.pci_address for gpu in self.gpus.facts()]
        self.published = 0
        self.looked = 0
        self.health = self.known()
        self.monitor = Monitor(self.health, self.gpus.events(self.cards), self._look, self._publish).watch(self.cards)

    def known(self, boot_id: str = "b") -> Health:
        """What a driver that starts now knows."""
        return Health(DRIVER, Policy(), self.path, boot_id)

    def taints(self, card: int = 0, placement: MigPlacement | None = None) -> list[tuple[str, str]]:
        found: tuple[DeviceTaint, ...] = self.health.taints(self.cards[card], placement)
        return [(taint.key.removeprefix(f"{DRIVER}/"), taint.value) for taint in found]

    def _look(self, gpu: PciAddress) -> CardLook | None:
        found = self.gpus.look(gpu)
        self.looked += 1
        return found

    def _publish(self) -> None:
        self.published += 1


@pytest.fixture
def ward(tmp_path: Path) -> Iterator[Ward]:
    made = Ward(tmp_path)
    yield made
    made.gpus.close()


@pytest.fixture
def watched(ward: Ward) -> Iterator[Ward]:
    ward.monitor.start()
    wait_until(lambda: ward.looked == len(ward.cards), "the first look at every card")
    yield ward
    ward.monitor.stop()


def test_an_error_is_heard_published_kept_and_lifted_after_a_reset(watched: Ward) -> None:
    watched.state.happen(watched.cards[1], xid=48, recovery_action=1)
    wait_until(lambda: watched.taints(1) == [("xid", "48")], "the taint of the second card")
    wait_until(lambda: watched.published == 1, "the publication")
    assert watched.taints(0) == []
    assert watched.known().taints(watched.cards[1], AT_0) == watched.health.taints(watched.cards[1], None)
    assert watched.known("another boot").taints(watched.cards[1], None) == ()
    watched.monitor.look_around()
    assert watched.taints(1) == [("xid", "48")]
    published = watched.published
    watched.state.change_gpu(watched.cards[1], lambda gpu: (rules.reset(gpu), None))
    watched.monitor.look_around()
    assert (watched.taints(1), watched.published) == ([], published + 1)
    assert watched.known().taints(watched.cards[1], None) == ()


def test_a_double_bit_error_that_comes_without_a_number_counts_as_its_xid(watched: Ward) -> None:
    watched.state.flip_two_bits(watched.cards[1], recovery_action=1)
    wait_until(lambda: watched.taints(1) == [("xid", "48")], "the taint of the second card")


def test_an_error_in_an_instance_concerns_what_overlaps_it(watched: Ward) -> None:
    card = watched.cards[0]
    watched.gpus.enter_mig(card)
    made = watched.gpus.create_mig(card, AT_4)
    watched.state.happen(card, xid=48, gpu_instance=made.gpu_instance_id, recovery_action=1)
    wait_until(lambda: watched.taints(0, AT_4) == [("xid", "48")], "the instance's taint")
    assert (watched.taints(0, AT_0), watched.taints(0)) == ([], [("xid", "48")])
    watched.gpus.remove_mig(card, AT_4)
    watched.monitor.look_around()
    assert watched.taints(0) == [("recovery-action", "reset")]


def test_a_programs_error_taints_nothing(watched: Ward) -> None:
    watched.state.happen(watched.cards[0], xid=31)
    watched.state.happen(watched.cards[0], xid=63)
    wait_until(lambda: watched.published == 1, "the publication of the second error")
    assert watched.taints(0) == [("xid", "63")]


def asks_for(state: State, card: str, action: int) -> None:
    """Let NVML say that the card asks for that recovery action, without an event."""
    state.change_gpu(card, lambda gpu: (replace(gpu, recovery_action=action), None))


# nvmlGpuRecoveryAction: GPU reset, node reboot, drain P2P, drain and reset.
@pytest.mark.parametrize(("action", "value"), [(1, "reset"), (2, "node"), (3, "reset"), (4, "reset")])
def test_a_look_finds_what_a_card_asks_for_that_no_event_told_of(ward: Ward, action: int, value: str) -> None:
    asks_for(ward.state, ward.cards[1], action)
    ward.monitor.look_around()
    assert [ward.taints(0), ward.taints(1), ward.taints(1, AT_4)] == [[], *[[("recovery-action", value)]] * 2]
    ward.monitor.look_around()
    assert ward.published == 1
    assert ward.known().taints(ward.cards[1], None) == ward.health.taints(ward.cards[1], None)
    asks_for(ward.state, ward.cards[1], 0)
    ward.monitor.look_around()
    assert (ward.taints(1), ward.published) == ([], 2)


def test_what_is_lost_with_a_broken_record_is_seen_again(watched: Ward) -> None:
    watched.state.happen(watched.cards[1], xid=48, recovery_action=1)
    wait_until(lambda: watched.taints(1) == [("xid", "48")], "the taint of the second card")
    watched.path.write_bytes(b"{")
    watched.health = watched.known()
    Monitor(watched.health, watched.gpus.events([]), watched.gpus.look, lambda: None).watch(watched.cards).look_around()
    assert watched.taints(1) == [("recovery-action", "reset")]


def test_a_lost_card_is_tainted_and_its_neighbours_are_not(ward: Ward) -> None:
    ward.state.change_gpu(ward.cards[2], lambda gpu: (replace(gpu, lost=True), None))
    ward.monitor.look_around()
    assert [ward.taints(card) for card in (1, 2)] == [[], [("gpu-lost", "node")]]
    ward.state.change_gpu(ward.cards[2], lambda gpu: (replace(gpu, lost=False), None))
    ward.monitor.look_around()
    assert ward.taints(2) == []


def test_a_card_that_can_not_be_heard_says_so(ward: Ward) -> None:
    deaf = ward.gpus.events([ward.cards[0], PciAddress("0000:ff:00.0")])
    monitor = Monitor(ward.health, deaf, ward.gpus.look, lambda: None).watch(ward.cards)
    monitor.look_around()
    found = ward.health.taints(PciAddress("0000:ff:00.0"), None)
    assert [(taint.key, taint.effect) for taint in found] == [(f"{DRIVER}/unmonitored", "None")]
    assert ward.taints(0) == []


def test_without_events_every_card_serves_and_says_that_it_is_not_heard(ward: Ward) -> None:
    ward.state.inject(Injection(function="nvmlEventSetCreate", code=3))
    events = ward.gpus.events(ward.cards)
    Monitor(ward.health, events, ward.gpus.look, lambda: None).watch(ward.cards).look_around()
    assert [ward.taints(card) for card in range(8)] == [[("unmonitored", "information")]] * 8
    assert events.wait(1) is None


@pytest.mark.parametrize("content", [b"", b"{", b'{"boot_id": 3}', b"\xff"])
def test_a_broken_record_begins_anew(ward: Ward, content: bytes) -> None:
    ward.path.write_bytes(content)
    assert ward.known().taints(ward.cards[0], None) == ()


@pytest.mark.programs
def test_the_driver_taints_every_device_of_the_card_in_the_api(driver_node: DriverNode) -> None:
    first = driver_node.state.read().gpus[0].pci_address

    def taints(card: int) -> set[str]:
        slices = [each for each in driver_node.store.under(SLICES) if each["spec"].get("devices")]
        devices: list[dict[str, Any]] = slices[card]["spec"]["devices"]
        return {json.dumps([[t["key"], t["value"], t["effect"]] for t in d.get("taints", [])]) for d in devices}

    driver_node.state.happen(first, xid=119, recovery_action=1)
    expected = json.dumps([[f"{DRIVER}/xid", "119", "NoSchedule"]])
    wait_until(lambda: taints(0) == {expected}, "the taint in every device of the card")
    assert taints(1) == {"[]"}
    driver_node.kill()
    driver_node.start("driver")
    assert taints(0) == {expected}


@pytest.mark.programs
def test_the_driver_taints_a_card_that_asks_for_a_reset_that_no_event_told_of(driver_node: DriverNode) -> None:
    first = driver_node.state.read().gpus[0].pci_address

    def taints() -> dict[str, list[dict[str, str]]]:
        slices = [each for each in driver_node.store.under(SLICES) if each["spec"].get("devices")]
        return {device["name"]: device.get("taints", []) for device in slices[0]["spec"]["devices"]}

    driver_node.terminate("driver")
    asks_for(driver_node.state, first, 1)
    driver_node.start("driver")
    wait_until(lambda: all(taints().values()), "a taint of every device of the card")
    found = taints()
    said = {(taint["key"], taint["value"], taint["effect"]) for each in found.values() for taint in each}
    assert said == {(f"{DRIVER}/recovery-action", "reset", "NoSchedule")}
    driver_node.kill()
    driver_node.start("driver")
    assert taints() == found  # the time as well
    driver_node.terminate("driver")
    asks_for(driver_node.state, first, 0)
    driver_node.start("driver")
    wait_until(lambda: not any(taints().values()), "the end of the taints")
