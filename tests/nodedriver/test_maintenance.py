"""A card that needs a reset for its MIG mode: the driver as a process does it for claims that wait, or says why not."""

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest
from msgspec.structs import replace as replace_struct

from nodedriver.cardmodes import CardMode
from nodedriver.facts import PciAddress
from nodedriver.locks import Locks
from nodedriver.maintenance import Ledger
from nodedriver.maintenance.deciding import Kept
from simulator.silicon import rules
from simulator.silicon.hardware import Injection, NvmlReturn, Process, ProcessKind
from simulator.silicon.smi import RESET
from simulator.silicon.state import start_time
from tests.nodedriver import apiserver
from tests.nodedriver.ampere import FAILED, MIG, READY, AmpereNode, waiting
from tests.nodedriver.claims import DRIVER, allocated, given
from tests.nodedriver.machine import short_folder, wait_until

pytestmark = pytest.mark.programs

STRIDE = 1 if os.environ.get("PORTICO_FULL") else 3
A, B = (f"{letter * 8}-0000-4000-8000-000000000000" for letter in "ab")


@pytest.fixture
def ampere() -> Iterator[AmpereNode]:
    with short_folder() as folder, apiserver.serve(folder / "kubeconfig") as store:
        made = AmpereNode(folder, store, "a100x8")
        try:
            made.start("driver")
            yield made
        finally:
            made.close()


@pytest.fixture
def impatient(ampere: AmpereNode) -> AmpereNode:
    """The same with a driver that lets others hold a card for a second only."""
    ampere.terminate("driver")
    ampere.start("driver", "--reset-wait", "1")
    return ampere


@pytest.fixture
def hopper() -> Iterator[AmpereNode]:
    """Eight H100, which change their mode when idle; the first one asks for a reset all the same."""
    with short_folder() as folder, apiserver.serve(folder / "kubeconfig") as store:
        made = AmpereNode(folder, store)
        first = made.state.read().gpus[0].pci_address
        made.state.change_gpu(first, lambda gpu: (replace(gpu, resets_to_switch=True), None))
        try:
            made.start("driver")
            yield made
        finally:
            made.close()


def test_devices_of_the_other_mode_are_published_with_binding_conditions(ampere: AmpereNode) -> None:
    part, whole = ampere.device(MIG), ampere.device("gpu-0")
    assert (part["bindingConditions"], part["bindingFailureConditions"]) == ([READY], [FAILED])
    assert part["bindsToNode"]
    assert not {"bindingConditions", "bindsToNode"} & whole.keys()


def test_a_claim_gets_its_condition_after_the_reset(ampere: AmpereNode) -> None:
    ampere.submit(waiting(MIG, "part", A))
    assert ampere.await_condition("part")["reason"] == "ModeReady"
    assert [gpu.mig_current for gpu in ampere.state.read().gpus] == [True] + [False] * 7
    wait_until(lambda: ampere.taints(MIG) == [], "the end of the taint")
    assert "bindingConditions" not in ampere.device(MIG)
    assert ampere.device("gpu-0")["bindingConditions"] == [READY]
    answer = ampere.prepare(ampere.allocate(waiting(MIG, "part", A)))[A]
    assert (answer.error, [device.device_name for device in answer.devices]) == ("", [MIG])


def test_the_way_back_to_a_whole_card_is_a_reset_too(ampere: AmpereNode) -> None:
    ampere.submit(waiting(MIG, "part", A))
    ampere.await_condition("part")
    ampere.withdraw("part")
    ampere.submit(waiting("gpu-0", "whole", B))
    ampere.await_condition("whole")
    assert ampere.modes() == (False, False)


def test_the_condition_stays_beside_what_is_said_once_the_claim_is_prepared(ampere: AmpereNode) -> None:
    ampere.submit(waiting(MIG, "part", A))
    ampere.await_condition("part")
    assert not ampere.prepare(ampere.allocate(waiting(MIG, "part", A)))[A].error
    wait_until(lambda: ampere.condition("part", "Ready"), "the status of the prepared claim")
    assert ampere.condition("part")["status"] == "True"


def test_who_holds_the_card_is_named_and_waited_for(ampere: AmpereNode) -> None:
    with ampere.agent() as pid:
        ampere.submit(waiting(MIG, "part", A))
        said = ampere.await_condition("part", status="False")
        assert said["reason"] == "Waiting"
        assert said["message"] == (
            f"GPU 0000:07:00.0 can't change to mode mig while it is held by process {pid} (sleep)"
        )
        wait_until(lambda: ampere.taints("gpu-0") == ["reset-pending"] == ampere.taints(MIG), "the taints of the card")
        assert ampere.taints("gpu-1") == []
        assert ampere.modes() == (False, False)
    ampere.await_condition("part")


def test_who_does_not_leave_in_time_makes_it_fail_and_the_card_serves_on(impatient: AmpereNode) -> None:
    with impatient.agent() as pid:
        impatient.submit(waiting(MIG, "part", A))
        said = impatient.await_condition("part", FAILED)
        assert f"process {pid} (sleep); after 1 s that was given up" in said["message"]
        assert impatient.condition("part")["status"] == "False"
        assert (impatient.taints(MIG), impatient.taints("gpu-0")) == (["reset-failed"], [])
        assert impatient.modes() == (False, False)
        impatient.withdraw("part")
    wait_until(lambda: impatient.taints(MIG) == [], "the end of the taint, once nobody holds the card", 60)


def test_a_reset_that_fails_is_told_and_keeps_its_taint_over_a_restart(ampere: AmpereNode) -> None:
    ampere.state.inject(Injection(function=RESET, code=NvmlReturn.GPU_IS_LOST, times=0))
    ampere.submit(waiting(MIG, "part", A))
    said = ampere.await_condition("part", FAILED)
    assert "nvidia-smi --gpu-reset -i 0000:07:00.0 ended with 255" in said["message"]
    assert [fault.met for fault in ampere.state.read().injections] == [3]
    assert (ampere.taints(MIG), ampere.taints("gpu-0"), ampere.modes()) == (["reset-failed"], [], (False, False))

    ampere.terminate("driver")
    ampere.start("driver")
    ampere.submit(waiting(MIG, "next", B))
    assert ampere.await_condition("next", FAILED)["message"] == said["message"]
    assert [fault.met for fault in ampere.state.read().injections] == [3]
    assert (ampere.taints(MIG), ampere.taints("gpu-0")) == (["reset-failed"], [])


def test_a_card_that_was_brought_into_the_mode_by_hand_is_offered_again(ampere: AmpereNode) -> None:
    ampere.state.inject(Injection(function=RESET, code=NvmlReturn.GPU_IS_LOST, times=0))
    ampere.submit(waiting(MIG, "part", A))
    ampere.await_condition("part", FAILED)
    ampere.withdraw("part")
    by_hand = ampere.state.read().gpus[0].pci_address
    ampere.state.change_gpu(by_hand, lambda gpu: (replace(gpu, mig_current=True, mig_pending=True), None))
    wait_until(lambda: ampere.taints(MIG) == [], "the end of the taint", 60)
    # The withdrawal can end the taint before the card's new mode is seen.
    wait_until(lambda: "bindingConditions" not in ampere.device(MIG), "a device that needs no preparation", 60)


def test_a_reset_that_fails_once_is_tried_again(ampere: AmpereNode) -> None:
    ampere.state.inject(Injection(function=RESET, code=NvmlReturn.GPU_IS_LOST))
    ampere.submit(waiting(MIG, "part", A))
    ampere.await_condition("part")
    assert ampere.modes() == (True, True)


def test_a_claim_that_is_withdrawn_ends_the_work(ampere: AmpereNode) -> None:
    with ampere.agent():
        ampere.submit(waiting(MIG, "part", A))
        wait_until(lambda: ampere.taints(MIG), "the taint")
        ampere.withdraw("part")
        wait_until(lambda: ampere.taints(MIG) == [] == ampere.taints("gpu-0"), "the end of the taints", 60)
    assert ampere.modes() == (False, False)


def test_instances_that_were_made_by_hand_are_not_reset_away(impatient: AmpereNode) -> None:
    ampere = impatient
    ampere.submit(waiting(MIG, "part", A))
    ampere.await_condition("part")
    ampere.withdraw("part")
    by_hand = ampere.state.read().gpus[0].pci_address
    ampere.state.change_gpu(by_hand, lambda gpu: rules.create_gpu_instance(gpu, 9, (0, 4)))
    ampere.submit(waiting("gpu-0", "whole", B))
    assert "held by 1 GPU instances that no resource claim made" in ampere.await_condition("whole", FAILED)["message"]
    assert len(ampere.state.read().gpus[0].gpu_instances) == 1


def test_a_claim_that_is_not_unprepared_yet_is_waited_for_and_not_named(ampere: AmpereNode) -> None:
    before = ampere.allocate(allocated(given("gpu-0", 100), name="secret", uid=B))
    ampere.prepare(before)
    ampere.submit(waiting(MIG, "part", A))
    said = ampere.await_condition("part", status="False")
    assert "held by 1 allocated devices that are not unprepared yet" in said["message"]
    assert "secret" not in said["message"]
    ampere.unprepare(before)
    ampere.await_condition("part")


def test_admin_access_changes_no_mode(ampere: AmpereNode) -> None:
    claim = waiting(MIG, "admin", A)
    assert claim.status.allocation is not None
    (result,) = claim.status.allocation.devices.results
    result = replace_struct(result, admin_access=True)
    ampere.submit(allocated(result, name="admin", uid=A))
    ampere.await_condition("admin")
    assert ampere.modes() == (False, False)


def test_a_driver_that_dies_at_any_step_is_gone_on_with(ampere: AmpereNode) -> None:
    """To and fro between the modes, with a death each time; `make test` takes every third boundary, FULL=1 all."""
    wish, log = ampere.tree.root / "die-at", ampere.tree.root / "boundaries"
    wish.write_text("0")
    ampere.submit(waiting(MIG, "part-0", A))
    ampere.await_condition("part-0")
    passed = log.read_text().split("\n")[:-1]
    assert passed[-1] == "tell the scheduler"
    assert {"keep in the ledger", "wish for the other mode", "reset", "look after reset"} <= set(passed)
    wish.unlink()
    last, mig = "part-0", True
    for number in range(1, len(passed) + 1, STRIDE):
        wait_until(lambda: not ampere.busy(), "the end of the work before")
        ampere.withdraw(last)
        mig = not mig
        last = f"claim-{number}"
        wish.write_text(str(number))
        ampere.submit(waiting(MIG if mig else "gpu-0", last, f"{number:08d}-0000-4000-8000-000000000000"))
        wait_until(lambda: not wish.exists(), f"the death before {passed[number - 1]}")
        ampere.buried("driver")
        ampere.start("driver")
        ampere.await_condition(last)
        assert ampere.modes() == (mig, mig), passed[:number]
        wait_until(lambda: ampere.taints(MIG) == [] == ampere.taints("gpu-0"), "the end of the taints", 60)


def test_a_wish_that_nvml_does_not_take_back_yet_is_told_of_and_taken_back_later(ampere: AmpereNode) -> None:
    ampere.state.inject(Injection(function=RESET, code=NvmlReturn.GPU_IS_LOST, times=0))
    ampere.state.inject(Injection(function="nvmlDeviceSetMigMode", code=999, skip=1, times=0))
    ampere.submit(waiting(MIG, "part", A))
    ampere.await_condition("part", FAILED)
    assert (ampere.modes(), ampere.taints(MIG)) == ((False, True), ["reset-failed"])
    ampere.state.heal()
    wait_until(lambda: ampere.modes() == (False, False), "the end of the wish", 60)


def test_the_wish_of_a_driver_that_died_is_taken_back_though_nobody_waits_any_more(ampere: AmpereNode) -> None:
    wish, log = ampere.tree.root / "die-at", ampere.tree.root / "boundaries"
    wish.write_text("0")
    ampere.submit(waiting(MIG, "part", A))
    ampere.await_condition("part")
    wait_until(lambda: not ampere.busy(), "the end of the work")
    ampere.withdraw("part")
    wish.write_text(str(log.read_text().split("\n").index("reset") + 1))
    ampere.submit(waiting("gpu-0", "whole", B))
    wait_until(lambda: not wish.exists(), "the death before the reset")
    ampere.buried("driver")
    ampere.withdraw("whole")
    assert ampere.modes() == (True, False)
    ampere.state.inject(Injection(function="nvmlDeviceSetMigMode", code=999))
    ampere.start("driver")
    wait_until(lambda: ampere.modes() == (True, True), "the end of the wish", 60)
    wait_until(lambda: not ampere.busy(), "the end of the work", 60)


def test_what_a_driver_left_undone_is_done_though_nothing_published_waits(hopper: AmpereNode) -> None:
    """It died when the card had changed its mode without a reset, and was to be as the others again."""
    hopper.terminate("driver")
    boot_id = (hopper.tree.proc / "sys/kernel/random/boot_id").read_text().strip()
    first = PciAddress(hopper.state.read().gpus[0].pci_address)
    left = Kept(gpu=first, target=CardMode.MIG, since="2026-01-01T00:00:00Z", tries=1)
    ledger = Ledger(
        DRIVER, hopper.plugin_dir / "maintenance.json", boot_id, Locks(hopper.plugin_dir / "locks", deadline=10)
    )
    ledger.keep(first, left)
    hopper.start("driver")
    assert hopper.taints(MIG) == ["reset-pending"]
    wait_until(lambda: hopper.taints(MIG) == [], "the end of the taint", 60)
    assert not hopper.busy()


def test_a_card_that_asked_for_a_reset_although_it_should_not_is_waited_for_from_then_on(hopper: AmpereNode) -> None:
    assert "bindingConditions" not in hopper.device(MIG)
    refused = hopper.allocate(allocated(given(MIG, 100), name="unlucky", uid=A))
    assert "GPU requires reset" in hopper.prepare(refused)[A].error
    wait_until(lambda: "bindingConditions" in hopper.device(MIG), "the binding condition", 60)
    assert "bindingConditions" not in hopper.device("gpu-1-mig-3g40gb-4")

    hopper.submit(waiting(MIG, "part", B))
    hopper.await_condition("part")
    assert hopper.modes() == (True, True)
    assert not hopper.prepare(hopper.allocate(waiting(MIG, "part", B)))[B].error
    assert hopper.device("gpu-0")["bindingConditions"] == [READY]


def test_a_card_that_was_only_in_use_is_as_the_others_once_it_changed_its_mode(hopper: AmpereNode) -> None:
    card = hopper.state.read().gpus[0]
    busy = Process(pid=os.getpid(), started=start_time(os.getpid()) or 0, uid=0, kind=ProcessKind.COMPUTE)
    hopper.state.change_gpu(
        card.pci_address, lambda gpu: (replace(gpu, resets_to_switch=False, processes=(busy,)), None)
    )
    assert "In use by another client" in hopper.prepare(hopper.allocate(allocated(given(MIG, 100), uid=A)))[A].error
    wait_until(lambda: "bindingConditions" in hopper.device(MIG), "the binding condition", 60)

    hopper.submit(waiting(MIG, "part", B))
    assert f"held by process {os.getpid()}" in hopper.await_condition("part", status="False")["message"]
    hopper.state.change_gpu(card.pci_address, lambda gpu: (replace(gpu, processes=()), None))
    hopper.await_condition("part")
    wait_until(lambda: "bindingConditions" not in hopper.device("gpu-0"), "the end of the binding condition", 60)
