"""Devices of other drivers on the form: their cards, modes, amounts and files, from the slices that they publish."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from django.test import Client

from tests.claims.desk import form_page, words
from tests.claims.pages import code_of
from tests.claims.rows import device_class, put
from tests.claims.test_desk_what import cards
from tests.claims.test_desk_what_modes import amount, modes
from tests.gpuinventory.fleet import node_object
from tests.gpuinventory.gpuclasses.drivers import AMD, EXAMPLE, HAMI, INTEL, NVIDIA, device, of_driver, slice_of

pytestmark = pytest.mark.usefixtures("db")
DRIVERS = (NVIDIA, AMD, INTEL, HAMI, EXAMPLE)
# The classes that the drivers' charts make; each guards what other drivers do not publish by its first condition.
CLASSES = {
    NVIDIA: f"{of_driver(NVIDIA)} && device.attributes['{NVIDIA}'].type == 'gpu'",
    "mig.nvidia.com": f"{of_driver(NVIDIA)} && device.attributes['{NVIDIA}'].type == 'mig'",
    AMD: of_driver(AMD),
    INTEL: of_driver(INTEL),
    HAMI: f'{of_driver(HAMI)} && device.attributes["{HAMI}"].type == "hami-gpu"',
    EXAMPLE: of_driver(EXAMPLE),
}
SHARE_50 = {"cores": "50", "memory": "40Gi"}


@pytest.fixture(autouse=True)
def fleet(db: None) -> None:
    """A node of each driver, and the classes."""
    for driver in DRIVERS:
        slice_ = slice_of(driver)
        metadata = slice_["metadata"] | {"uid": f"uid-{driver}", "resourceVersion": "1"}
        put("ResourceSlice", json.dumps(slice_ | {"kind": "ResourceSlice", "metadata": metadata}).encode())
        put("Node", node_object(f"node-{driver}"))
    put("DeviceClass", *(device_class(name, expression) for name, expression in CLASSES.items()))


def asked(html: str) -> dict[str, Any]:
    """The one device request of the template."""
    (request,) = yaml.safe_load(code_of(html)["text-template"])["spec"]["spec"]["devices"]["requests"]
    found: dict[str, Any] = request["exactly"]
    return found


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (NVIDIA, "gpu.nvidia.com 2 of 2 free, at most 2 on one node NVIDIA A100-PCIE-40GB 40 GiB"),
        ("mig.nvidia.com", "mig.nvidia.com 2 free, at most 2 on one node NVIDIA A100-PCIE-40GB 4.8 GiB"),
        (AMD, "gpu.amd.com 1 of 1 free, at most 1 on one node AMD_Instinct_MI300X_OAM 192 GiB"),
        (INTEL, "gpu.intel.com 2 of 2 free, at most 2 on one node 0xe211, Flex 170 13.9 GiB to 23.9 GiB"),
        (HAMI, "hami-core-gpu.project-hami.io 1 of 1 free, at most 1 on one node NVIDIA A100-SXM4-80GB 80 GiB"),
        (EXAMPLE, "gpu.example.com 4 of 4 free, at most 4 on one node LATEST-GPU-MODEL 80 GiB"),
    ],
)
def test_cards_name_model_memory_and_what_is_free(as_alice: Client, name: str, said: str) -> None:
    assert cards(form_page(as_alice, f"&class={name}"))[name] == said


@pytest.mark.parametrize(
    ("name", "possible"),
    [
        (NVIDIA, ["whole"]),
        ("mig.nvidia.com", ["whole", "slice"]),
        (AMD, ["whole"]),
        (INTEL, ["whole"]),
        (HAMI, ["whole", "share"]),
        (EXAMPLE, ["whole"]),
    ],
)
def test_only_modes_that_the_driver_publishes_can_be_chosen(as_alice: Client, name: str, possible: list[str]) -> None:
    said = modes(form_page(as_alice, f"&class={name}"))
    assert [value for value, text in said.items() if not text.startswith("- ")] == possible


@pytest.mark.parametrize(
    ("name", "floor", "too_much"),
    [(NVIDIA, "40Gi", "41Gi"), (AMD, "190Gi", "193Gi"), (INTEL, "20Gi", "30Gi"), (HAMI, "80Gi", "81Gi"),
     (EXAMPLE, "80Gi", "81Gi")],
)  # fmt: skip
def test_a_floor_of_memory_finds_devices_of_every_driver(
    as_alice: Client, name: str, floor: str, too_much: str
) -> None:
    assert "Fits now on 1 node" in words(form_page(as_alice, f"&class={name}&memory={floor}"))
    html = words(form_page(as_alice, f"&class={name}&memory={too_much}"))
    assert "Cannot fit, even with nothing in use" in html


def test_a_mig_profile_of_nvidia_is_asked_for_under_its_own_attribute(as_alice: Client) -> None:
    html = form_page(as_alice, "&class=mig.nvidia.com&mode=slice")
    assert asked(html)["deviceClassName"] == "mig.nvidia.com"
    assert 'device.attributes[device.driver].profile == "1g.5gb"' in asked(html)["selectors"][0]["cel"]["expression"]
    assert "Fits now on 1 node, 2 times in all" in words(html)
    assert amount(html) == "Each pod: 1 slice 1g.5gb, 4.7 GiB"


def test_a_partition_of_amd_is_asked_for_under_its_own_attribute(as_alice: Client) -> None:
    """ROCm/k8s-gpu-dra-driver: partitions are devices of the type amdgpu-partition; a whole card is spx_nps1."""
    partition = device(
        "gpu-0-p0", "24574Mi", type="amdgpu-partition", partitionProfile="cpx_nps4", productName="MI300X"
    )
    metadata = {"name": "parts", "uid": "uid-parts", "resourceVersion": "1"}
    pool = {"name": "node-parts", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": AMD, "nodeName": "node-parts", "pool": pool, "devices": [partition]}
    put("Node", node_object("node-parts"))
    put("ResourceSlice", json.dumps({"kind": "ResourceSlice", "metadata": metadata, "spec": spec}).encode())
    html = form_page(as_alice, f"&class={AMD}&mode=slice")
    assert 'device.attributes[device.driver].partitionProfile == "cpx_nps4"' in str(asked(html)["selectors"])
    assert "Fits now on 1 node, once. Best: node-parts." in words(html)
    assert amount(html) == "Each pod: 1 slice cpx_nps4, 23.9 GiB"


def test_a_share_of_hami_names_cores_and_its_part_of_the_memory(as_alice: Client) -> None:
    """A share that names no memory would take all of it, and no second one would fit."""
    html = form_page(as_alice, f"&class={HAMI}&mode=share&share=50")
    assert asked(html)["capacity"]["requests"] == SHARE_50
    assert "Fits now on 1 node, 2 times in all" in words(html)
    assert "Scheduled: 50 % of 80 GiB = 40 GiB. Enforced by: HAMi-core inside the container" in words(html)
    said = asked(form_page(as_alice, f"&class={HAMI}&mode=share&share=50&memory=8Gi"))
    assert said["capacity"]["requests"] == SHARE_50 | {"memory": "8Gi"}


def test_a_share_of_a_driver_without_shares_is_refused_with_the_capacity_that_it_lacks(as_alice: Client) -> None:
    said = words(form_page(as_alice, f"&class={NVIDIA}&mode=share&share=50", status=422))
    assert "gpu.nvidia.com can't be shared in percent. No device of this class publishes sharePercent." in said


def test_a_card_of_one_model_within_a_class_is_asked_for_by_its_selector(as_alice: Client) -> None:
    html = form_page(as_alice, f"&class={INTEL}.flex-170")
    assert asked(html)["deviceClassName"] == INTEL
    assert f'device.attributes["{INTEL}"].?model.orValue("") == "Flex 170"' in str(asked(html)["selectors"])
    assert "Fits now on 1 node, once." in words(html)
    assert "GPU class" in words(form_page(as_alice, f"&class={INTEL}.flex-170&style=extended", status=422))


def test_alternatives_of_other_drivers_speak_their_own_words(as_alice: Client) -> None:
    more = f"&class={HAMI}&mode=share&share=25&alt.1.class=mig.nvidia.com&alt.1.profile=1g.5gb&alt.2.class={INTEL}"
    html = form_page(as_alice, f"{more}.flex-170")
    (request,) = yaml.safe_load(code_of(html)["text-template"])["spec"]["spec"]["devices"]["requests"]
    first, second, third = request["firstAvailable"]
    assert first["capacity"]["requests"] == {"cores": "25", "memory": "20Gi"}
    assert 'device.attributes[device.driver].profile == "1g.5gb"' in str(second["selectors"])
    assert third["deviceClassName"] == INTEL
    assert "Flex 170" in str(third["selectors"])
