"""Claim statuses that a driver process writes: failures, the last process, nothing twice."""

from dataclasses import replace
from typing import Any

import pytest

from simulator.silicon.state import with_gpu
from tests.nodedriver.claims import allocated, given
from tests.nodedriver.machine import CLAIMS, wait_until
from tests.nodedriver.mps import cuda
from tests.nodedriver.node import DriverNode

pytestmark = pytest.mark.programs

A, B = (f"{letter * 8}-0000-4000-8000-000000000000" for letter in "ab")
MIG = "gpu-0-mig-3g40gb-4"


def device(node: DriverNode, name: str) -> dict[str, Any]:
    """What the claim's status says of its one device."""
    found: list[dict[str, Any]] = node.store.objects[f"{CLAIMS}/{name}"].get("status", {}).get("devices", [{}])
    return found[0]


def data(node: DriverNode, name: str) -> dict[str, Any]:
    found: dict[str, Any] = device(node, name).get("data", {})
    return found


def conditions(node: DriverNode, name: str) -> list[tuple[str, str, str]]:
    return [(each["type"], each["status"], each["reason"]) for each in device(node, name).get("conditions", [])]


def test_a_failed_prepare_stands_in_the_claims_status_until_it_succeeds(driver_node: DriverNode) -> None:
    node = driver_node
    holder = node.allocate(allocated(given("gpu-0", 100), name="holder", uid=A))
    late = node.allocate(allocated(given(MIG, 100), name="late", uid=B))
    assert not node.prepare(holder)[A].error
    error = node.prepare(late)[B].error
    wait_until(lambda: conditions(node, "late") == [("Ready", "False", "PrepareFailed")], "the failure's status")
    assert (device(node, "late")["device"], device(node, "late")["conditions"][0]["message"]) == (MIG, error)
    node.unprepare(holder)
    assert not node.prepare(late)[B].error
    wait_until(lambda: conditions(node, "late") == [("Ready", "True", "Prepared")], "the status after it succeeded")
    assert data(node, "late")["mode"] == "MIG"


def reboot(node: DriverNode) -> None:
    """What a restart of the node leaves: no instance, no MIG mode, no CDI file, another boot id."""
    card = replace(node.state.read().gpus[0], gpu_instances=(), mig_current=False, mig_pending=False)
    node.state.change(lambda silicon: (with_gpu(silicon, card), None))
    for path in node.cdi_dir.iterdir():
        path.unlink()
    (node.tree.proc / "sys/kernel/random/boot_id").write_text("another\n")


def test_a_failure_that_the_api_server_did_not_take_is_told_later(driver_node: DriverNode) -> None:
    node = driver_node
    holder = node.allocate(allocated(given("gpu-0", 100), name="holder", uid=A))
    late = node.allocate(allocated(given(MIG, 100), name="late", uid=B))
    assert not node.prepare(holder)[A].error
    node.store.refuse.add(f"{CLAIMS}/late")
    error = node.prepare(late)[B].error
    wait_until(lambda: "claim status not written" in node.log("driver"), "the refusal of the API server")
    assert conditions(node, "late") == []
    node.store.refuse.clear()
    wait_until(lambda: conditions(node, "late") == [("Ready", "False", "PrepareFailed")], "the failure's status")
    assert device(node, "late")["conditions"][0]["message"] == error


def test_a_checkpoint_that_can_not_be_read_for_a_while_ends_no_statuses(driver_node: DriverNode) -> None:
    node = driver_node
    late = node.allocate(allocated(given("gpu-0", 100), name="late", uid=A))
    checkpoint = node.plugin_dir / "checkpoint.json"
    kept = checkpoint.rename(f"{checkpoint}.kept")
    checkpoint.mkdir()
    assert node.prepare(late)[A].error
    wait_until(lambda: "claim statuses not written" in node.log("driver"), "a try to write")
    checkpoint.rmdir()
    kept.rename(checkpoint)
    wait_until(lambda: conditions(node, "late") == [("Ready", "False", "PrepareFailed")], "the failure's status")
    assert not node.prepare(late)[A].error
    wait_until(lambda: conditions(node, "late") == [("Ready", "True", "Prepared")], "the status after it succeeded")


def test_after_a_reboot_a_claim_is_not_called_prepared_until_it_is(driver_node: DriverNode) -> None:
    node = driver_node
    claim = node.allocate(allocated(given(MIG, 100), uid=A))
    assert not node.prepare(claim)[A].error
    wait_until(lambda: conditions(node, "claim") == [("Ready", "True", "Prepared")], "the first status")
    node.terminate("driver")
    reboot(node)
    node.start("driver")
    interrupted = [("Ready", "Unknown", "NotPreparedSinceReboot")]
    wait_until(lambda: conditions(node, "claim") == interrupted, "the word of the reboot")
    assert "the node was restarted" in device(node, "claim")["conditions"][0]["message"]
    assert not node.prepare(claim)[A].error
    wait_until(lambda: conditions(node, "claim") == [("Ready", "True", "Prepared")], "the status when it was prepared")
    assert data(node, "claim")["mode"] == "MIG"


def test_a_failure_after_a_reboot_stays_told(driver_node: DriverNode) -> None:
    node = driver_node
    claim = node.allocate(allocated(given(MIG, 100), uid=A))
    assert not node.prepare(claim)[A].error
    wait_until(lambda: conditions(node, "claim") == [("Ready", "True", "Prepared")], "the first status")
    node.terminate("driver")
    reboot(node)
    node.start("driver")
    taken = node.store.objects[f"{CLAIMS}/claim"]["status"]["allocation"]["devices"]["results"][0]
    taken["device"] = "gpu-0-mig-9g99gb-0"
    assert node.prepare(claim)[A].error
    failed = [("Ready", "False", "PrepareFailed")]
    wait_until(lambda: conditions(node, "claim") == failed, "the failure's status")
    node.terminate("driver")
    node.start("driver")  # which looks at every claim first
    later = node.allocate(allocated(given("gpu-1", 100), name="later", uid=B))
    assert not node.prepare(later)[B].error
    wait_until(lambda: conditions(node, "later") == [("Ready", "True", "Prepared")], "the status of a later claim")
    assert conditions(node, "claim") == failed


def test_shares_with_namespaces_are_enforced_by_the_server_beside_larger_ones(driver_node: DriverNode) -> None:
    """Never otherwise, also while a new driver has not yet heard of the daemons."""
    node = driver_node
    node.speak_by_namespaces()
    small = node.allocate(allocated(given("gpu-0", 25), name="small", uid=A))
    large = node.allocate(allocated(given("gpu-0", 50), name="large", uid=B))
    assert [each.error for each in node.prepare(small, large).values()] == ["", ""]
    wait_until(lambda: data(node, "small") and data(node, "large"), "their statuses")
    node.terminate("driver")
    node.start("driver")
    node.unprepare(large)
    assert not node.prepare(large)[B].error
    node.terminate("driver")  # which has then told of all that it was asked to
    documents = [document for path, _, document in node.store.events if path == f"{CLAIMS}/small"]
    told = [device for document in documents for device in document["status"].get("devices", ())]
    assert {device["data"]["enforcedBy"] for device in told} == {"Server"}
    assert ("ShareEnforced", "True", "Server") in conditions(node, "small")
    node.start("driver")


def test_the_last_process_is_told_and_outlives_a_restart(driver_node: DriverNode) -> None:
    node = driver_node
    claim = node.allocate(allocated(given("gpu-0", 100), uid=A))
    assert not node.prepare(claim)[A].error
    wait_until(lambda: data(node, "claim"), "the first status")
    assert data(node, "claim")["lastProcessSeen"] == ""
    with cuda(node.tree, "1G", CUDA_VISIBLE_DEVICES=node.state.read().gpus[0].uuid) as held:
        assert held["ok"]
        node.terminate("driver")
        node.start("driver")  # looks at once
        wait_until(lambda: data(node, "claim")["lastProcessSeen"], "the time of the process")
    told = data(node, "claim")
    node.terminate("driver")
    writes = len(node.store.events)
    node.start("driver")
    node.prepare(claim)
    node.unprepare(claim)
    assert data(node, "claim") == told
    assert [path for path, _, _ in node.store.events[writes:] if path == f"{CLAIMS}/claim"] == []
