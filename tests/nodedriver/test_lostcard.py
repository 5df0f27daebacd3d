"""A card that fell off the bus while a claim holds it, and a driver that starts without it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest

from dra.objects import Device
from dra.slices import SliceContent
from nodedriver.lastpublished import LastPublished
from nodedriver.pb.drahealth.v1 import api_pb2 as health_pb2
from nodedriver.pb.drahealth.v1 import api_pb2_grpc as health_grpc
from tests.nodedriver.claims import allocated, given, given_slots
from tests.nodedriver.machine import CLAIMS, wait_until
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


def delete_slices(node: DriverNode) -> None:
    """As a kubelet does at its start while no driver runs."""
    for path in [path for path in node.store.objects if path.startswith(SLICES)]:
        node.store.put(path, node.store.objects[path], "DELETED")


def counters(node: DriverNode) -> dict[str, Any]:
    """What the first card's devices draw on."""
    sets = [each for slice_ in node.store.under(SLICES) for each in slice_["spec"].get("sharedCounters", [])]
    return {each["name"]: each["counters"] for each in sets if each["name"] == "gpu-0"}


def test_a_held_card_is_not_forgotten_when_it_and_the_slices_go_while_no_driver_runs(driver_node: DriverNode) -> None:
    node = driver_node
    claim = node.allocate(allocated(given("gpu-0", 100), uid=A))
    assert not node.prepare(claim)[A].error
    drawn = counters(node)
    node.terminate("driver")
    first = node.state.read().gpus[0].pci_address
    node.state.change_gpu(first, lambda gpu: (replace(gpu, lost=True), None))
    delete_slices(node)
    for _ in range(2):  # and then once more
        node.start("driver")
        wait_until(lambda: devices(node) == {"gpu-0": {"withdrawn=not-served"}}, "the held device alone")
        assert counters(node) == drawn
        node.terminate("driver")
        delete_slices(node)
    node.store.put(f"{CLAIMS}/claim", node.store.objects[f"{CLAIMS}/claim"], "DELETED")
    node.start("driver")
    wait_until(lambda: node.store.under(SLICES), "the slices of the other cards")
    assert devices(node) == {}


def test_a_kind_that_a_claim_holds_is_not_forgotten_though_it_is_not_served_any_more(driver_node: DriverNode) -> None:
    """Else the scheduler would give the card out a second time."""
    node = driver_node
    claim = node.allocate(allocated(given_slots("gpu-0-timesliced", 1), uid=A))
    assert not node.prepare(claim)[A].error
    node.terminate("driver")
    delete_slices(node)
    node.start("driver", "--time-slices", "0")
    wait_until(lambda: devices(node).get("gpu-0-timesliced") == {"withdrawn=not-served"}, "the held device")
    assert "gpu-1-timesliced" not in {d["name"] for s in node.store.under(SLICES) for d in s["spec"].get("devices", [])}


@pytest.mark.parametrize("found", [b"{", b'[{"index": "first"}]', b""], ids=["no JSON", "another form", "empty"])
def test_what_was_published_last_is_nothing_where_it_can_not_be_read(found: bytes, tmp_path: Path) -> None:
    (tmp_path / "published.json").write_bytes(found)
    last = LastPublished(tmp_path / "published.json")
    assert last.content() == ()
    content = (SliceContent(index=1, devices=(Device(name="gpu-0"),)),)
    last.keep(content)
    assert LastPublished(tmp_path / "published.json").content() == content


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
