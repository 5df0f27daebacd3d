"""The catalogue is derived anew where something that it follows from has changed, and only then."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from gpuinventory.selectors import held
from gpuinventory.selectors.gpuclasses import Catalogue, catalogue
from gpuinventory.services.ingest import ingest
from tests.cluster.gpuclasses import gpu_class
from tests.gpuinventory.fleet import (
    DRIVER,
    claim,
    device,
    device_class,
    gone,
    node_object,
    put_classes,
    seen,
    slices_of,
    stamped,
)

pytestmark = pytest.mark.django_db
UUID = f'device.attributes["{DRIVER}"].?uuid.orValue("") == "GPU-of-a-new-board"'


def found() -> Catalogue:
    return catalogue(held.current())


def devices(name: str) -> int:
    """How many devices the class of that name takes now."""
    view = found().named(name)
    assert view is not None
    return view.devices


@pytest.fixture(autouse=True)
def _fleet() -> None:
    ingest("ResourceSlice", seen(slices_of("node-1", cards=2)))
    ingest("Node", seen([node_object("node-1")]))
    put_classes()


def a_class_of_an_administrator() -> bytes:
    body = gpu_class("training", deviceClass={"name": "physical-gpu"})
    return stamped(json.dumps(body).encode(), 1)


def replaced(uuid: str) -> list[bytes]:
    """The slices of the node with a new board in place of the first card's: a device of the same kind."""
    slices = [json.loads(body) for body in slices_of("node-1", cards=2, version=2)]
    cards = [each for slice_ in slices for each in slice_["spec"].get("devices", ()) if each["name"] == "gpu-0"]
    cards[0]["attributes"]["uuid"] = {"string": uuid}
    return [json.dumps(each).encode() for each in slices]


# Changes that a catalogue does not follow from.
SAME: dict[str, Callable[[], Any]] = {
    "a claim": lambda: ingest("ResourceClaim", seen([claim("x", "held", [device("node-1", "gpu-0", percent=100)])])),
    "a node": lambda: ingest("Node", seen([node_object("node-1", unschedulable=True, version=2)])),
    "slices published again": lambda: ingest("ResourceSlice", seen(slices_of("node-1", cards=2, version=2))),
}
# Changes that it follows from.
OTHER: dict[str, Callable[[], Any]] = {
    "a DeviceClass": lambda: ingest("DeviceClass", seen([device_class("more", "true")])),
    "a DeviceClass that is gone": lambda: ingest("DeviceClass", [gone(device_class("red-gpu", "true"))]),
    "a GPUClass": lambda: ingest("GPUClass", seen([a_class_of_an_administrator()])),
    "more devices": lambda: ingest("ResourceSlice", seen(slices_of("node-2", cards=1))),
    "a tainted card": lambda: ingest("ResourceSlice", seen(slices_of("node-1", cards=2, unclean=[0], version=2))),
}


@pytest.mark.parametrize("change", SAME.values(), ids=SAME)
def test_what_it_does_not_follow_from_leaves_it_as_it_is(change: Callable[[], Any]) -> None:
    before, at = found(), held.current().revision
    change()
    assert held.current().revision > at
    assert found() is before


@pytest.mark.parametrize("change", OTHER.values(), ids=OTHER)
def test_what_it_follows_from_derives_it_anew(change: Callable[[], Any]) -> None:
    before = found()
    change()
    after = found()
    assert after is not before
    assert found() is after


def test_the_number_of_devices_follows() -> None:
    assert devices("physical-gpu") == 2
    ingest("ResourceSlice", seen(slices_of("node-2", cards=3)))
    assert devices("physical-gpu") == 5


def test_a_class_that_tells_devices_apart_follows_each_of_them() -> None:
    ingest("DeviceClass", seen([device_class("board", UUID)]))
    assert devices("board") == 0
    ingest("ResourceSlice", seen(replaced("GPU-of-a-new-board")))
    assert devices("board") == 1
