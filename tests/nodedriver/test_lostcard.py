"""A card that fell off the bus while a claim holds it, and a driver that starts without it."""

from dataclasses import replace
from typing import Any

import grpc
import pytest

from nodedriver.pb.drahealth.v1 import api_pb2 as health_pb2
from nodedriver.pb.drahealth.v1 import api_pb2_grpc as health_grpc
from tests.nodedriver.claims import allocated, given
from tests.nodedriver.machine import wait_until
from tests.nodedriver.node import SLICES, DriverNode

pytestmark = pytest.mark.programs

A = "aaaaaaaa-0000-4000-8000-000000000000"


def devices(node: DriverNode) -> dict[str, set[str]]:
    """The published devices of the first card, with the keys and values of their taints."""
    found: list[dict[str, Any]] = [d for each in node.store.under(SLICES) for d in each["spec"].get("devices", [])]
    return {
        each["name"]: {f"{taint['key'].partition('/')[2]}={taint['value']}" for taint in each.get("taints", [])}
        for each in found
        if each["name"].split("-")[:2] == ["gpu", "0"]
    }


def told(node: DriverNode, device: str) -> tuple[int, str]:
    """What the kubelet hears first of a device's health: the status and the message."""
    options = [("grpc.default_authority", "localhost")]
    with grpc.insecure_channel(f"unix://{node.plugin_dir / 'dra.sock'}", options=options) as to:
        stub = health_grpc.DRAResourceHealthStub(to)
        stream = stub.NodeWatchResources(health_pb2.NodeWatchResourcesRequest(), timeout=10)
        answer = next(stream)
        stream.cancel()
    found = {each.device.device_name: (each.health, each.message) for each in answer.devices}
    return found[device]


def test_what_a_claim_holds_stays_published_over_a_restart_and_can_be_unprepared(driver_node: DriverNode) -> None:
    node = driver_node
    claim = node.allocate(allocated(given("gpu-0", 100), uid=A))
    assert not node.prepare(claim)[A].error
    first = node.state.read().gpus[0].pci_address
    node.state.change_gpu(first, lambda gpu: (replace(gpu, lost=True), None))
    node.terminate("driver")
    node.start("driver")
    wait_until(lambda: devices(node) == {"gpu-0": {"withdrawn=not-served"}}, "the held device alone")
    wait_until(lambda: told(node, "gpu-0")[0] == health_pb2.UNHEALTHY, "the kubelet's word for it")
    assert told(node, "gpu-0")[1].startswith("gpu-lost since ")
    assert node.unprepare(claim)[A] == ""
    assert A not in node.checkpoint()

    node.state.change_gpu(first, lambda gpu: (replace(gpu, lost=False), None))
    node.terminate("driver")
    node.start("driver")
    wait_until(lambda: devices(node).get("gpu-0") == set(), "the card without a taint")
