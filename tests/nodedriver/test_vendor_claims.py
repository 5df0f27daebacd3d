"""The driver as a process on nodes with cards of AMD and Intel: with no card of NVIDIA's at all, and beside some."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.nodedriver import apiserver
from tests.nodedriver.cdirules import faults
from tests.nodedriver.claims import DRIVER, allocated, given, mps, of_claim
from tests.nodedriver.machine import CLAIMS, short_folder, wait_until
from tests.nodedriver.node import SLICES, DriverNode

pytestmark = pytest.mark.programs

UID = "aaaaaaaa-0000-4000-8000-000000000000"
AMD, INTEL = ["/dev/kfd", "/dev/dri/card1", "/dev/dri/renderD129"], ["/dev/dri/card3", "/dev/dri/renderD131"]


@pytest.fixture
def node_of() -> Iterator[Callable[[str], DriverNode]]:
    """Gives a node of a scenario, whose driver runs."""
    with ExitStack() as stack:

        def made(scenario: str) -> DriverNode:
            folder = stack.enter_context(short_folder())
            node = DriverNode(folder, stack.enter_context(apiserver.serve(folder / "kubeconfig")), scenario)
            stack.callback(node.close)
            node.start("driver")
            return node

        yield made


def spec_of(node: DriverNode) -> dict[str, Any]:
    content = (node.cdi_dir / f"{DRIVER}-claim-{UID}.json").read_bytes()
    assert faults(content) == []
    found: dict[str, Any] = json.loads(content)
    return found


def nodes(edits: dict[str, Any]) -> list[str]:
    return [node["path"] for node in edits["deviceNodes"]]


def test_a_node_without_a_card_of_nvidias_serves_the_others(node_of: Callable[[str], DriverNode]) -> None:
    node = node_of("amd-intel")
    published = [device["name"] for each in node.store.under(SLICES) for device in each["spec"]["devices"]]
    assert published == ["gpu-0", "gpu-1", "gpu-2"]

    claim = node.allocate(allocated(given("gpu-0", request="amd"), given("gpu-2", request="intel"), uid=UID))
    answer = node.prepare(claim)[UID]
    assert [(d.device_name, list(d.request_names)) for d in answer.devices] == [
        ("gpu-0", ["amd"]),
        ("gpu-2", ["intel"]),
    ]
    spec = spec_of(node)
    assert [nodes(device["containerEdits"]) for device in spec["devices"]] == [AMD, INTEL]
    assert (spec["containerEdits"]["deviceNodes"], spec["containerEdits"]["mounts"]) == ([], [])
    assert "NVIDIA_VISIBLE_DEVICES=void" in spec["containerEdits"]["env"]
    wait_until(lambda: node.store.objects[f"{CLAIMS}/claim"].get("status", {}).get("devices"), "the claim's status")
    uuids = [each["data"]["uuid"] for each in node.store.objects[f"{CLAIMS}/claim"]["status"]["devices"]]
    assert uuids[0] == "GPU-d4a3f1b2c5e60718"

    node.kill()
    node.start("driver")
    assert node.prepare(claim)[UID].devices == answer.devices
    assert spec_of(node) == spec
    assert node.unprepare(claim) == {UID: ""}
    assert (list(node.cdi_dir.iterdir()), node.checkpoint()) == ([], {})


def test_a_claim_may_hold_cards_of_several_vendors(node_of: Callable[[str], DriverNode]) -> None:
    node = node_of("three-vendors")
    results = (given("gpu-0", 100, request="nvidia"), given("gpu-8", request="amd"), given("gpu-9", request="intel"))
    claim = node.allocate(allocated(*results, uid=UID))
    assert not node.prepare(claim)[UID].error
    spec = spec_of(node)
    assert [nodes(device["containerEdits"])[0] for device in spec["devices"]] == [
        "/dev/nvidia0",
        "/dev/kfd",
        "/dev/dri/card9",
    ]
    assert "/dev/nvidiactl" in nodes(spec["containerEdits"])
    assert node.unprepare(claim) == {UID: ""}
    assert not list(node.cdi_dir.iterdir())


def test_a_share_of_one_is_an_error_for_that_claim_alone(node_of: Callable[[str], DriverNode]) -> None:
    node = node_of("amd-intel")
    shared = allocated(given("gpu-0"), config=(of_claim(mps()),), name="shared", uid=UID)
    other = allocated(given("gpu-1"), name="other", uid=UID.replace("a", "b"))
    answers = node.prepare(node.allocate(shared), node.allocate(other))
    assert "sharing.strategy MPS is for cards of nvidia only, and gpu-0 is one of amd" in answers[UID].error
    assert [device.device_name for device in answers[other.metadata.uid].devices] == ["gpu-1"]


def test_a_card_that_lost_its_driver_is_an_error_and_leaves_nothing(node_of: Callable[[str], DriverNode]) -> None:
    node = node_of("amd-intel")
    folder = node.tree.sys / "bus/pci/devices/0000:98:00.0/drm"
    (folder / "card3").rename(folder / "gone")
    (folder / "renderD131").rename(folder / "gone-too")
    answer = node.prepare(node.allocate(allocated(given("gpu-2"), uid=UID)))[UID]
    assert "GPU 0000:98:00.0 can't be given to a container" in answer.error
    assert (list(node.cdi_dir.iterdir()), node.checkpoint()) == ([], {})


def test_without_any_card_it_needs_the_driver_of_nvidia(node_of: Callable[[str], DriverNode]) -> None:
    with short_folder() as folder, apiserver.serve(folder / "kubeconfig") as store:
        node = DriverNode(folder, store, "amd-intel")
        for link in (node.tree.sys / "bus/pci/devices").iterdir():
            link.unlink()
        with pytest.raises(AssertionError, match="Install the NVIDIA driver, or set the driver root to where it is"):
            node.start("driver")
        node.await_end("driver")
