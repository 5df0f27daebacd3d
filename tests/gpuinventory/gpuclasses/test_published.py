"""What a person can pick from: attributes and taints; and how many devices are asked one by one."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from dra.allocation import Snapshot
from dra.objects import DeviceTaint, DeviceTaintRule, ResourceSlice
from gpuinventory.gpuclasses import AttributeSeen, TaintSeen, attributes_of, check, shapes_of, taints_of
from gpuinventory.gpuclasses.matching import MOST_ALONE
from tests.gpuinventory.gpuclasses.drivers import AMD, EXAMPLE, NVIDIA, device, fleet_of, of_driver, slice_of

MODEL = f'device.attributes["{EXAMPLE}"].model'
UUID = f'device.attributes["{EXAMPLE}"].uuid'


def slices(driver: str, devices: list[dict[str, Any]]) -> ResourceSlice:
    """The slice of that driver's node with these devices instead of its own."""
    content = json.loads(json.dumps(slice_of(driver)))
    content["spec"]["devices"] = devices
    return msgspec.convert(content, ResourceSlice)


def text(published: dict[str, Any], key: str, value: str) -> dict[str, Any]:
    """The device with one more attribute."""
    return published | {"attributes": published["attributes"] | {key: {"string": value}}}


def test_what_kubernetes_defines_comes_first_then_what_most_devices_have_and_no_identifier() -> None:
    root = "resource.kubernetes.io/pcieRoot"
    devices = [
        text(device("a", model="x", uuid="1"), root, "pci0"),
        text(device("b", model="y", uuid="2"), root, "pci1"),
        text(device("c", uuid="3"), "other.example.com/zone", "z"),
        device("d", model="y"),
    ]
    seen = attributes_of(shapes_of(Snapshot.build(nodes=[], classes=[], slices=[slices(EXAMPLE, devices)])))
    assert seen == (
        AttributeSeen(name=root, devices=2, values=2),
        AttributeSeen(name=f"{EXAMPLE}/model", devices=3, values=2),
        AttributeSeen(name="other.example.com/zone", devices=1, values=1),
    )


def test_taints_of_drivers_and_rules_are_one_where_they_say_the_same() -> None:
    xid = {"key": "a.example/xid", "value": "48", "effect": "NoSchedule"}
    note = {"key": "a.example/note", "effect": "None"}
    late = xid | {"timeAdded": "2026-01-02T03:04:05Z"}
    devices = [
        device("a") | {"taints": [xid, note]},
        device("b") | {"taints": [late]},
        device("c") | {"taints": [xid | {"effect": "NoExecute"}]},
    ]
    rules = [
        msgspec.convert({"metadata": {"name": f"r{n}"}, "spec": {"deviceSelector": {}, "taint": xid}}, DeviceTaintRule)
        for n in range(2)
    ]
    assert taints_of(Snapshot.build(nodes=[], classes=[], slices=[slices(EXAMPLE, devices)], taint_rules=rules)) == (
        TaintSeen(taint=DeviceTaint(key="a.example/xid", value="48", effect="NoExecute"), devices=1, rules=0),
        TaintSeen(taint=DeviceTaint(key="a.example/xid", value="48", effect="NoSchedule"), devices=2, rules=2),
    )


def test_what_names_single_devices_is_asked_only_of_those_that_pass_what_comes_before() -> None:
    """On the other drivers' devices it would fail."""
    found = check([of_driver(EXAMPLE), f'{UUID} == "gpu-3"'], fleet_of(NVIDIA, AMD, EXAMPLE))
    assert (found.devices, found.unasked, found.findings) == (1, 0, ())
    assert found.taken[0].example.endswith("/gpu-3")


def test_too_many_to_be_asked_one_by_one_are_counted_as_not_looked_at() -> None:
    devices = [device(f"gpu-{n}", model="m", uuid=str(n)) for n in range(MOST_ALONE + 5)]
    fleet = Snapshot.build(nodes=[], classes=[], slices=[slices(EXAMPLE, devices)])
    found = check([of_driver(EXAMPLE), f'{UUID} != "none"'], fleet)
    assert (found.devices, found.unasked, found.total) == (MOST_ALONE, 5, MOST_ALONE + 5)
    assert check([of_driver(EXAMPLE), f'{MODEL} == "m"'], fleet).devices == MOST_ALONE + 5
