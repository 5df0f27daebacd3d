"""What a card that can be passed through publishes: one device more, which draws on everything, or that one alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dra.objects import Device
from nodedriver.facts import DeviceType, GpuFacts, VfioFacts
from nodedriver.inventory import EVERY_FEATURE, InventoryRules, ServerFeatures, take_inventory
from nodedriver.vfiodevice import vfio_uuid
from tests.nodedriver.gpus import card

VFIO = VfioFacts(vendor_id="0x10de", device_id="0x2330", addressable_memory=128 * 2**30, iommufd=True)
GPU = replace(card(bus=0x65), vfio=VFIO)
# RFC 9562 section 5.5, by sha1sum: the DNS name space's 16 bytes and "0000:65:00.0", with version and variant set.
UUID = "8533fd84-02c8-5350-bd10-3cf08fc7bcd0"


def published(gpu: GpuFacts, features: ServerFeatures = EVERY_FEATURE) -> dict[str, Device]:
    inventory = take_inventory(InventoryRules("gpu.portico.dev", 10), (gpu,), {gpu.pci_address: 0}, features=features)
    return {device.name: device for each in inventory.slices for device in each.devices}


def values(device: Device) -> dict[str, object]:
    return {name: attribute.value for name, attribute in device.attributes.items()}


def test_the_device_for_machines_comes_last_and_is_given_whole() -> None:
    devices = published(GPU)
    device = devices["gpu-0-vfio"]
    assert list(devices)[-1] == "gpu-0-vfio"
    assert len(devices) == 28
    assert not device.allow_multiple_allocations
    assert {name: (c.value, c.request_policy) for name, c in device.capacity.items()} == {
        "memory": ("81559Mi", None),
        "addressableMemory": ("128Gi", None),
    }


def test_it_draws_what_the_whole_card_draws() -> None:
    devices = published(GPU)
    assert devices["gpu-0-vfio"].consumes_counters == devices["gpu-0"].consumes_counters != ()


def test_attributes() -> None:
    devices = published(GPU)
    found = values(devices["gpu-0-vfio"])
    own = {"deviceType", "uuid", "cudaReady", "vfioReady", "vendorID", "deviceID", "iommuFDEnabled", "migProfile"}
    assert {name: found[name] for name in own} == {
        "deviceType": "VFIO",
        "uuid": UUID,
        "cudaReady": False,
        "vfioReady": True,
        "vendorID": "0x10de",
        "deviceID": "0x2330",
        "iommuFDEnabled": True,
        "migProfile": "",
    }
    assert values(devices["gpu-0"])["vfioReady"] is False
    assert devices["gpu-0"].attributes.keys() <= devices["gpu-0-vfio"].attributes.keys()
    assert len(found) + len(devices["gpu-0-vfio"].capacity) <= 32  # ResourceSlice API


def test_the_uuid_follows_from_the_address() -> None:
    assert vfio_uuid(GPU.pci_address) == UUID


@pytest.mark.parametrize(
    ("gpu", "names"),
    [
        (replace(GPU, only_vfio=True), {"gpu-0-vfio"}),
        (replace(card("A100-80GB", bus=0x65), vfio=VFIO), {"gpu-0", "gpu-0-timesliced", "gpu-0-vfio"}),
        (replace(card("A100-80GB", bus=0x65, mig_enabled=True), vfio=VFIO), set()),
        (replace(GPU, vfio=None), {"gpu-0", "gpu-0-timesliced"}),
    ],
    ids=["bound by an administrator", "Ampere", "Ampere in MIG mode", "no IOMMU or no module"],
)
def test_what_else_the_card_serves(gpu: GpuFacts, names: set[str]) -> None:
    found = published(gpu, ServerFeatures(waiting=False))
    assert {name for name in found if "-mig-" not in name} == names


def test_without_counters_both_could_be_given_out_so_the_card_itself_is() -> None:
    assert list(published(GPU, ServerFeatures(counters=False))) == ["gpu-0"]
    assert list(published(replace(GPU, only_vfio=True), ServerFeatures(counters=False))) == ["gpu-0-vfio"]


def test_records() -> None:
    inventory = take_inventory(InventoryRules("gpu.portico.dev"), (GPU,), {GPU.pci_address: 0})
    record = inventory.records["gpu-0-vfio"]
    assert (record.type, record.gpu, record.placement) == (DeviceType.VFIO, GPU.pci_address, None)
