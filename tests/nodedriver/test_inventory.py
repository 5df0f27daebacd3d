"""What a node publishes: device names, attributes, shares, counters, slices, and what stays out when."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dra.mig.profiles import MODELS
from dra.names import is_dns_label
from dra.objects import CapacityRange, CapacityRequestPolicy, Counter, Device, DeviceCapacity, DeviceTaint
from dra.quantity import parse_quantity
from nodedriver.facts import CardSurroundings, DeviceType, GpuFacts, MigModeChange, MigPlacement, PciAddress, PcieLink
from nodedriver.inventory import (
    DeviceRecord,
    Inventory,
    InventoryRules,
    ServerFeatures,
    TaintsOf,
    taint_of_unclean,
    take_inventory,
)
from tests.nodedriver.gpus import MIB, card

DRIVER = "gpu.deckhouse.io"
ARTICLE = Path(__file__).parents[1] / "journeys" / "manifests"
KNOWN = [m.name for m in MODELS if all(p.engines and p.memory_mib for p in m.profiles)]


def unclean_taints(*unclean: PciAddress) -> TaintsOf:
    taint = taint_of_unclean(DRIVER, "checkpoint-unreadable")
    return lambda gpu, _placement: (taint,) if gpu in unclean else ()


def inventory_of(*gpus: GpuFacts, unclean: tuple[PciAddress, ...] = (), features: ServerFeatures | None = None,
                 first_rank: int = 0) -> Inventory:  # fmt: skip
    ranks = {gpu.pci_address: first_rank + i for i, gpu in enumerate(gpus)}
    return take_inventory(
        InventoryRules(DRIVER),
        gpus,
        ranks,
        taints=unclean_taints(*unclean),
        features=features or ServerFeatures(),
    )


def devices(inventory: Inventory) -> dict[str, Device]:
    return {device.name: device for slice_ in inventory.slices for device in slice_.devices}


def values(device: Device) -> dict[str, object]:
    return {name: attribute.value for name, attribute in device.attributes.items()}


@pytest.fixture
def rank_3() -> Inventory:
    return inventory_of(card(bus=0x65), first_rank=3)


def test_device_names_of_an_h100_in_published_order(rank_3: Inventory) -> None:
    assert list(devices(rank_3)) == [
        "gpu-3",
        *[f"gpu-3-mig-1g10gb-{start}" for start in (6, 5, 4, 3, 2, 1, 0)],
        *[f"gpu-3-mig-1g10gbme-{start}" for start in (6, 5, 4, 3, 2, 1, 0)],
        *[f"gpu-3-mig-1g20gb-{start}" for start in (6, 4, 2, 0)],
        *[f"gpu-3-mig-2g20gb-{start}" for start in (4, 2, 0)],
        "gpu-3-mig-3g40gb-4",
        "gpu-3-mig-3g40gb-0",
        "gpu-3-mig-4g40gb-0",
        "gpu-3-mig-7g80gb-0",
    ]
    assert list(rank_3.records) == list(devices(rank_3))


def test_attributes_of_a_whole_card(rank_3: Inventory) -> None:
    assert values(devices(rank_3)["gpu-3"]) == {
        "vendor": "nvidia",
        "deviceType": "Physical",
        "productName": "NVIDIA H100 80GB HBM3",
        "cudaReady": True,
        "drmReady": False,
        "vfioReady": False,
        "migProfile": "",
        "uuid": "GPU-00000000-0000-0000-0000-000000000065",
        "brand": "Nvidia",
        "architecture": "Hopper",
        "cudaComputeCapability": "9.0.0",
        "driverVersion": "580.65.6",
        "cudaDriverVersion": "13.0.0",
        "resource.kubernetes.io/pciBusID": "0000:65:00.0",
        "resource.kubernetes.io/pcieRoot": "pci0000:64",
        "resource.kubernetes.io/numaNode": 1,
    }


def test_attributes_of_a_mig_placement(rank_3: Inventory) -> None:
    whole, part = values(devices(rank_3)["gpu-3"]), values(devices(rank_3)["gpu-3-mig-1g10gbme-0"])
    own = {
        "deviceType": "MIG",
        "migProfile": "1g.10gb+me",
        "parentUUID": "GPU-00000000-0000-0000-0000-000000000065",
        "multiprocessors": 16,
    }
    assert part == {name: value for name, value in whole.items() if name != "uuid"} | own


def test_records_say_what_stands_behind_a_name(rank_3: Inventory) -> None:
    assert rank_3.records["gpu-3"] == DeviceRecord(
        name="gpu-3",
        type=DeviceType.PHYSICAL,
        gpu=PciAddress("0000:65:00.0"),
        placement=None,
        memory=81559 * MIB,
    )
    assert rank_3.records["gpu-3-mig-3g40gb-4"] == DeviceRecord(
        name="gpu-3-mig-3g40gb-4",
        type=DeviceType.MIG,
        gpu=PciAddress("0000:65:00.0"),
        placement=MigPlacement(profile_id=9, start=4, size=4),
        memory=40448 * MIB,
    )


def test_the_time_of_a_card_is_given_in_slots() -> None:
    gpu = card(bus=0x65)
    inventory = take_inventory(InventoryRules(DRIVER, 10), (gpu,), {gpu.pci_address: 3})
    found = devices(inventory)
    device = found["gpu-3-timesliced"]
    assert list(found)[:2] == ["gpu-3", "gpu-3-timesliced"]
    assert values(device) == values(found["gpu-3"]) | {"deviceType": "TimeSliced"}
    assert device.consumes_counters == found["gpu-3"].consumes_counters
    assert device.allow_multiple_allocations
    slots = CapacityRequestPolicy(default="1", valid_range=CapacityRange(min="1", max="10", step="1"))
    nothing = CapacityRequestPolicy(default="0", valid_values=("0",))
    assert device.capacity == {
        "slots": DeviceCapacity(value="10", request_policy=slots),
        "memory": DeviceCapacity(value="81559Mi", request_policy=nothing),
    }
    assert inventory.records["gpu-3-timesliced"] == DeviceRecord(
        name="gpu-3-timesliced",
        type=DeviceType.TIME_SLICED,
        gpu=PciAddress("0000:65:00.0"),
        placement=None,
        memory=81559 * MIB,
        slots=10,
    )


@pytest.mark.parametrize("features", [ServerFeatures(counters=False), ServerFeatures(shares=False)])
def test_time_is_not_given_where_the_server_can_not_keep_it_apart(features: ServerFeatures) -> None:
    gpu = card(bus=0x65)
    rules, ranks = InventoryRules(DRIVER, 10), {gpu.pci_address: 3}
    assert "gpu-3-timesliced" not in take_inventory(rules, (gpu,), ranks, features=features).records


@pytest.mark.parametrize(("name", "memory"), [("gpu-3", "81559Mi"), ("gpu-3-mig-1g10gb-0", "9984Mi")])
def test_every_device_is_shared_by_percent_and_tightened_by_memory(rank_3: Inventory, name: str, memory: str) -> None:
    device = devices(rank_3)[name]
    assert device.allow_multiple_allocations
    assert device.capacity == {
        "sharePercent": DeviceCapacity(
            value="100",
            request_policy=CapacityRequestPolicy(
                default="100", valid_range=CapacityRange(min="5", max="100", step="5")
            ),
        ),
        "memory": DeviceCapacity(
            value=memory, request_policy=CapacityRequestPolicy(default="0", valid_range=CapacityRange(min="0"))
        ),
    }


def test_a_whole_card_draws_its_counter_set_and_a_part_its_slices(rank_3: Inventory) -> None:
    counters = rank_3.slices[0].shared_counters[0]
    assert counters.name == "gpu-3"
    (whole,) = devices(rank_3)["gpu-3"].consumes_counters
    assert (whole.counter_set, whole.counters) == ("gpu-3", counters.counters)
    (part,) = devices(rank_3)["gpu-3-mig-3g40gb-4"].consumes_counters
    slices = {name for name in part.counters if name.startswith("memory-slice-")}
    assert slices == {f"memory-slice-{i}" for i in (4, 5, 6, 7)}
    assert part.counters["multiprocessors"] == Counter(value="60")


def test_eight_cards_are_one_counter_slice_and_eight_device_slices() -> None:
    inventory = inventory_of(*(card(bus=0x10 + i) for i in range(8)))
    kinds = [(len(s.shared_counters), len(s.devices)) for s in inventory.slices]
    assert kinds == [(8, 0), *[(0, 26)] * 8]
    assert [s.index for s in inventory.slices] == [0, *range(0x100, 0x108)]
    assert len(inventory.records) == 208


def test_a_ninth_card_begins_a_second_counter_slice() -> None:
    inventory = inventory_of(*(card(bus=0x10 + i) for i in range(9)))
    assert [len(s.shared_counters) for s in inventory.slices if s.shared_counters] == [8, 1]


def test_a_card_that_leaves_moves_no_other() -> None:
    cards = [card(bus=0x10 + i) for i in range(3)]
    ranks = {each.pci_address: rank for rank, each in enumerate(cards)}
    before = take_inventory(InventoryRules(DRIVER), tuple(cards), ranks)
    after = take_inventory(InventoryRules(DRIVER), (cards[0], cards[2]), ranks)
    assert after.slices[1:] == (before.slices[1], before.slices[3])


def test_no_cards_are_one_empty_slice() -> None:
    (only,) = inventory_of().slices
    assert (only.devices, only.shared_counters) == ((), ())


@pytest.mark.parametrize(
    ("gpu", "types"),
    [
        (card("A100-80GB"), {"Physical"}),
        (card("A100-80GB", mig_enabled=True), {"MIG"}),
        (card("H100-80GB", mig_enabled=True), {"Physical", "MIG"}),
        (replace(card(), mig_mode_change=MigModeChange.IMPOSSIBLE, profiles=()), {"Physical"}),
    ],
    ids=["ampere", "ampere in MIG mode", "hopper in MIG mode", "no MIG"],
)
def test_a_card_publishes_what_its_mode_can_serve_where_nothing_can_be_waited_for(
    gpu: GpuFacts, types: set[str]
) -> None:
    found = devices(inventory_of(gpu, features=ServerFeatures(waiting=False)))
    assert {values(device)["deviceType"] for device in found.values()} == types
    assert not any(device.binding_conditions or device.binds_to_node for device in found.values())


@pytest.mark.parametrize(("in_mig", "waits"), [(False, {"MIG"}), (True, {"Physical"})])
def test_what_a_reset_has_to_be_waited_for_says_so(waits: set[str], *, in_mig: bool) -> None:
    found = devices(inventory_of(card("A100-80GB", mig_enabled=in_mig))).values()
    assert {values(device)["deviceType"] for device in found} == {"Physical", "MIG"}
    bound = [device for device in found if device.binds_to_node]
    assert {values(device)["deviceType"] for device in bound} == waits
    conditions = {(device.binding_conditions, device.binding_failure_conditions) for device in bound}
    assert conditions == {(("gpu.deckhouse.io/mode-ready",), ("gpu.deckhouse.io/mode-failed",))}
    assert not any(device.binding_conditions for device in found if device not in bound)


def test_a_card_that_switches_when_idle_lets_nobody_wait() -> None:
    assert not any(device.binding_conditions for device in devices(inventory_of(card())).values())


def test_an_unclean_card_is_tainted_and_its_neighbour_is_not() -> None:
    one, other = card(bus=0x10), card(bus=0x11)
    found = devices(inventory_of(one, other, unclean=(one.pci_address,)))
    taint = DeviceTaint(key="gpu.deckhouse.io/unclean", value="checkpoint-unreadable", effect="NoSchedule")
    assert {device.taints for name, device in found.items() if name.startswith("gpu-0")} == {(taint,)}
    assert {device.taints for name, device in found.items() if name.startswith("gpu-1")} == {()}


def test_without_counters_only_whole_cards_are_safe() -> None:
    inventory = inventory_of(card(), features=ServerFeatures(counters=False))
    assert [(s.shared_counters, len(s.devices)) for s in inventory.slices] == [((), 1)]
    assert devices(inventory)["gpu-0"].consumes_counters == ()


def test_without_shares_a_device_is_given_whole() -> None:
    device = devices(inventory_of(card(), features=ServerFeatures(shares=False)))["gpu-0"]
    assert not device.allow_multiple_allocations
    assert device.capacity == {"memory": DeviceCapacity(value="81559Mi")}


def test_without_taints_an_unclean_card_is_not_published() -> None:
    one, other = card(bus=0x10), card(bus=0x11)
    inventory = inventory_of(one, other, unclean=(one.pci_address,), features=ServerFeatures(taints=False))
    assert {name.split("-")[1] for name in inventory.records} == {"1"}


def test_what_is_unknown_is_left_out() -> None:
    gpu = replace(card(), numa_node=None, pcie_root=None, driver_version="unknown")
    found = values(devices(inventory_of(gpu))["gpu-0"])
    assert not {"resource.kubernetes.io/numaNode", "resource.kubernetes.io/pcieRoot", "driverVersion"} & found.keys()


@pytest.mark.parametrize(
    ("version", "semver"),
    [("580.126.20", "580.126.20"), ("580.65.06", "580.65.6"), ("550.90", "550.90.0"), ("535.161.07.1", "535.161.7")],
)
def test_driver_versions_become_semver(version: str, semver: str) -> None:
    found = values(devices(inventory_of(replace(card(), driver_version=version)))["gpu-0"])
    assert found["driverVersion"] == semver


def test_texts_fit_the_api() -> None:
    device = devices(inventory_of(replace(card(), product_name="ä" * 40)))["gpu-0"]
    assert device.attributes["productName"].string == "ä" * 32


def test_a_domain_that_kubernetes_has_no_form_for_is_not_published() -> None:
    found = values(devices(inventory_of(replace(card(), pci_address=PciAddress("10000:65:00.0"))))["gpu-0"])
    assert "resource.kubernetes.io/pciBusID" not in found


def test_every_key_that_the_article_classes_read_is_on_every_device(rank_3: Inventory) -> None:
    read = {
        key
        for path in sorted(ARTICLE.glob("*.yaml"))
        for document in yaml.safe_load_all(path.read_text())
        if document["kind"] == "DeviceClass"
        for selector in document["spec"]["selectors"]
        for key in re.findall(r'device\.attributes\["gpu\.deckhouse\.io"\]\.(\w+)', selector["cel"]["expression"])
    }
    assert read == {"vendor", "deviceType", "cudaReady", "productName", "migProfile"}
    assert all(read <= device.attributes.keys() for device in devices(rank_3).values())


@given(st.lists(st.sampled_from(KNOWN), max_size=16), st.booleans())
@settings(deadline=None, max_examples=25)
def test_api_limits_hold_for_any_fleet(names: list[str], mig_enabled: bool) -> None:  # noqa: FBT001 - drawn
    inventory = inventory_of(*(card(name, bus=0x10 + i, mig_enabled=mig_enabled) for i, name in enumerate(names)))
    sets = [each for s in inventory.slices for each in s.shared_counters]
    by_name = {each.name: each.counters for each in sets}
    assert len(by_name) == len(sets)
    assert all(len(s.devices) <= 64 and len(s.shared_counters) <= 8 for s in inventory.slices)
    assert all(bool(s.devices) != bool(s.shared_counters) for s in inventory.slices) or not names
    every = [device for s in inventory.slices for device in s.devices]
    assert len({device.name for device in every}) == len(every)
    for device in every:
        assert is_dns_label(device.name)
        assert len(device.attributes) + len(device.capacity) <= 32
        (drawn,) = device.consumes_counters
        available = by_name[drawn.counter_set]
        for name, counter in drawn.counters.items():
            assert parse_quantity(counter.value) <= parse_quantity(available[name].value)


def test_what_is_near_a_card_is_said_by_all_of_its_devices_but_nvlink_by_whole_ones() -> None:
    near = CardSurroundings(
        drm_card="card1",
        drm_render="renderD128",
        nearest_nic=PciAddress("0000:66:00.0"),
        nearest_nic_link=PcieLink.SAME_SWITCH,
        nvlink_clique=PciAddress("0000:18:00.0"),
    )
    gpu = replace(card(bus=0x65), surroundings=near)
    found = take_inventory(InventoryRules(DRIVER, 10), (gpu,), {gpu.pci_address: 0})
    around = {"nearestNIC": "0000:66:00.0", "nearestNICLink": "PIX", "drmCard": "card1", "drmRender": "renderD128"}
    for name, device in devices(found).items():
        told = values(device)
        assert around.items() <= told.items()
        assert told.get("nvlinkClique") == (None if "-mig-" in name else "0000:18:00.0")
        assert len(told) + len(device.capacity) <= 32  # ResourceSliceMaxAttributesAndCapacitiesPerDevice
        assert max(len(key.rpartition("/")[2]) for key in told) <= 32
