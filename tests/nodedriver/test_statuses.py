"""Claim statuses that a driver process writes: failures, the last process, nothing twice."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from simulator.silicon.state import State
from tests.nodedriver.claims import allocated, given
from tests.nodedriver.machine import CHECKOUT, CLAIMS, wait_until
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


@contextmanager
def cuda_program(state: State, uuid: str) -> Iterator[None]:
    """A CUDA program that holds memory of that card."""
    command = [sys.executable, "-m", "simulator.silicon.cuda", "alloc", "1G", "--hold"]
    env = os.environ | {"SILICON_STATE": str(state.path), "CUDA_VISIBLE_DEVICES": uuid, "PYTHONPATH": str(CHECKOUT)}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert json.loads(process.stdout.readline())["ok"]
        try:
            yield
        finally:
            process.terminate()


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
    with cuda_program(node.state, node.state.read().gpus[0].uuid):
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
