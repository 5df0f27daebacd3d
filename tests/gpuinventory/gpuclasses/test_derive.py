"""Classes as they follow from what drivers publish: names, titles, kinds, memory, numbers."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dra.fleet import Fleet
from dra.names import is_dns_subdomain
from dra.objects import GPUClass, ResourceClaim
from gpuinventory.gpuclasses import GPUClassView, Made, Numbers, derive, numbers_of
from tests.cluster.gpuclasses import generated, gpu_class
from tests.gpuinventory.gpuclasses.drivers import (
    AMD,
    EXAMPLE,
    HAMI,
    INTEL,
    NVIDIA,
    OURS,
    UNKNOWN,
    device_class,
    fleet_of,
    of_driver,
)

GIB, MIB = 2**30, 2**20
PHYSICAL = f'{of_driver(OURS)} && device.attributes["{OURS}"].deviceType == "Physical"'


def derived(driver: str) -> tuple[GPUClassView, ...]:
    return derive(fleet_of(driver, classes=[device_class("it", of_driver(driver))]), ())


def a_gpu_class(name: str = "h100", **spec: Any) -> GPUClass:
    return msgspec.convert(gpu_class(name, **spec), GPUClass)


# Driver, then for each class: name, title, mode, products, profiles, least and most memory, devices.
DERIVED: dict[str, list[tuple[Any, ...]]] = {
    NVIDIA: [
        ("it", "it", "any", ("NVIDIA A100-PCIE-40GB",), ("1g.5gb",), (4864 * MIB, 40 * GIB), 4),
        ("it.nvidia-a100-pcie-40gb", "NVIDIA A100-PCIE-40GB", "whole", ("NVIDIA A100-PCIE-40GB",), (),
         (40 * GIB, 40 * GIB), 2),
        ("it.nvidia-a100-pcie-40gb-1g-5gb", "NVIDIA A100-PCIE-40GB, 1g.5gb", "slice", ("NVIDIA A100-PCIE-40GB",),
         ("1g.5gb",), (4864 * MIB, 4864 * MIB), 2),
    ],
    AMD: [("it", "it", "whole", ("AMD_Instinct_MI300X_OAM",), ("spx_nps1",), (196592 * MIB, 196592 * MIB), 1)],
    INTEL: [
        ("it", "it", "whole", ("0xe211", "Flex 170"), (), (14248 * MIB, 24480 * MIB), 2),
        ("it.0xe211", "0xe211", "whole", ("0xe211",), (), (24480 * MIB, 24480 * MIB), 1),
        ("it.flex-170", "Flex 170", "whole", ("Flex 170",), (), (14248 * MIB, 14248 * MIB), 1),
    ],
    HAMI: [("it", "it", "share", ("NVIDIA A100-SXM4-80GB",), (), (80 * GIB, 80 * GIB), 1)],
    EXAMPLE: [("it", "it", "whole", ("LATEST-GPU-MODEL",), (), (80 * GIB, 80 * GIB), 4)],
    UNKNOWN: [("it", "it", "whole", (), (), (0, 0), 1)],
}  # fmt: skip


@pytest.mark.parametrize("driver", DERIVED)
def test_classes_follow_from_what_a_driver_publishes(driver: str) -> None:
    found = [
        (each.name, each.spec.title, each.spec.mode, each.products, each.profiles, each.memory, each.devices)
        for each in derived(driver)
    ]

    assert found == DERIVED[driver]


@pytest.mark.parametrize("driver", DERIVED)
def test_what_a_class_says_of_its_devices_is_what_the_engine_gives(driver: str) -> None:
    snapshot = fleet_of(*DERIVED, classes=[device_class("it", of_driver(driver))])
    found = {each.name: numbers_of(each, snapshot, Fleet(), {}) for each in derive(snapshot, ())}

    assert {name: each.free for name, each in found.items()} == {row[0]: row[6] for row in DERIVED[driver]}
    assert all(each.fault == "" and each.nodes == 1 for each in found.values())


def test_cards_of_our_own_driver_are_whole_cut_time_sliced_or_passed_through() -> None:
    snapshot = fleet_of(cards=2, classes=[device_class("all", of_driver(OURS))])
    modes = {each.name: each.spec.mode for each in derive(snapshot, ())}

    assert modes.pop("all") == "any"
    assert modes["all.nvidia-h100-80gb-hbm3"] == "whole"
    assert modes["all.nvidia-h100-80gb-hbm3-3g-40gb"] == "slice"
    assert all(is_dns_subdomain(name) for name in modes)


def test_free_numbers_follow_what_is_allocated() -> None:
    classes = [device_class("h100", PHYSICAL)]
    free, held = fleet_of(cards=2, classes=classes), fleet_of(cards=2, classes=classes, claims=[holding("gpu-0")])
    (view,) = derive(free, ())

    assert numbers_of(view, free, Fleet(), {"h100": 3}) == Numbers(free=2, bounded=True, largest=2, nodes=1, waiting=3)
    assert numbers_of(view, held, Fleet(), {}) == Numbers(free=1, bounded=True, largest=1, nodes=1, waiting=0)


def test_shares_are_counted_at_their_default_size() -> None:
    snapshot = fleet_of(cards=2, classes=[device_class("quarter", PHYSICAL)])
    spec: dict[str, Any] = {
        "deviceClass": {"name": "quarter"},
        "mode": "share",
        "count": {"max": 1},
        "share": {"default": 25},
    }
    (view,) = derive(snapshot, [a_gpu_class(**spec)])

    assert numbers_of(view, snapshot, Fleet(), {}).free == 8


def test_a_device_class_that_an_administrators_class_uses_is_not_derived_again() -> None:
    classes = [device_class("nvidia-h100", PHYSICAL), device_class("own", PHYSICAL), device_class("left", PHYSICAL)]
    made = [
        a_gpu_class("second", order=2),
        a_gpu_class("own", order=1, deviceClass=generated(PHYSICAL), namespaces=["ml-team"]),
    ]
    found = derive(fleet_of(cards=1, classes=classes), made)

    assert [(each.name, each.device_class, each.made) for each in found] == [
        ("own", "own", Made.BY_ADMIN),
        ("second", "nvidia-h100", Made.BY_ADMIN),
        ("left", "left", Made.DERIVED),
    ]
    assert [each.allows("other-team") for each in found] == [False, True, True]


def test_a_class_without_its_device_class_says_so() -> None:
    (view,) = derive(fleet_of(cards=1), [a_gpu_class()])

    assert view.fault == "There is no DeviceClass nvidia-h100."
    assert view.devices == 0


def test_a_class_that_fails_on_a_device_says_on_which() -> None:
    blunt = 'device.attributes["gpu.nvidia.com"].profile == "1g.5gb"'
    first, *_ = derive(fleet_of(NVIDIA, classes=[device_class("mig", blunt)]), ())

    assert first.fault == ("Selector 1 of mig fails on gpu.nvidia.com/node-gpu.nvidia.com/gpu-0: no such key: profile")


def test_a_class_that_does_not_compile_says_so() -> None:
    (view,) = derive(fleet_of(NVIDIA, classes=[device_class("bad", "device.")]), ())

    assert view.fault.startswith("A selector of the DeviceClass bad does not compile: ")


def holding(name: str) -> ResourceClaim:
    result: dict[str, Any] = {"request": "gpu", "driver": OURS, "pool": "node-h100", "device": name}
    result |= {"shareID": "a", "consumedCapacity": {"sharePercent": "100", "memory": "0"}}
    return msgspec.convert(
        {
            "metadata": {"namespace": "ml-team", "name": "held"},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "h100"}}]}},
            "status": {"allocation": {"devices": {"results": [result]}}},
        },
        ResourceClaim,
    )
