"""Cards of AMD and Intel: what sysfs shows, what is left out and why, how they are published, what they refuse."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from dra.objects import Device, DeviceTaint
from nodedriver.facts import CardFacts, CardSurroundings, DeviceNode, DeviceType, PciAddress, PlainCardFacts, Vendor
from nodedriver.health.report import Wellness, unwatched
from nodedriver.inventory import Inventory, InventoryRules, ServerFeatures, take_inventory
from nodedriver.plan import PlanRefusal, PlanRules, PreparePlan, plan_claim
from nodedriver.ports import GpuError
from nodedriver.vendors import find_plain_cards, has_nvidia_card, plain_nodes
from simulator.silicon.fleet import initialise
from simulator.silicon.tree import Tree
from tests.nodedriver.claims import DRIVER, NODE, allocated, given, gpu_config, mps, of_claim, of_class, time_slicing
from tests.nodedriver.gpus import card

GIB = 2**30
MI300X, MI210, FLEX, PROCESSOR = (
    PciAddress(text) for text in ("0000:05:00.0", "0000:46:00.0", "0000:98:00.0", "0000:00:02.0")
)
RULES = PlanRules(driver_name=DRIVER, pool=NODE, mps_reserve=0)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return initialise(tmp_path / "machine", "amd-intel")


def found(tree: Tree, *, integrated: bool = False) -> dict[PciAddress, PlainCardFacts]:
    return {card.pci_address: card for card in find_plain_cards(tree.sys, tree.proc, integrated=integrated)}


def device_folder(tree: Tree, address: PciAddress) -> Path:
    return tree.sys / "bus/pci/devices" / address


def test_a_card_is_what_its_driver_tells(tree: Tree) -> None:
    assert found(tree)[MI300X] == PlainCardFacts(
        pci_address=MI300X,
        vendor=Vendor.AMD,
        uuid="GPU-d4a3f1b2c5e60718",  # type: ignore[arg-type]
        product_name="AMD Instinct MI300X OAM",
        driver_version="6.8.0",
        memory=206141652992,
        numa_node=0,
        pcie_root="pci0000:04",
        surroundings=CardSurroundings(kernel_driver="amdgpu", drm_card="card1", drm_render="renderD129"),
    )


def test_what_the_driver_does_not_tell_comes_from_the_id(tree: Tree) -> None:
    amd, intel = found(tree)[MI210], found(tree)[FLEX]
    assert (amd.product_name, amd.memory) == ("AMD Instinct MI210", 68702699520)
    assert (intel.product_name, intel.memory, intel.numa_node) == ("Intel Data Center GPU Flex 170", 16 * GIB, None)
    assert re.fullmatch(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", amd.uuid)
    assert len({card.uuid for card in found(tree).values()}) == 3


def test_an_unknown_model_has_its_id_for_a_name_and_its_window_for_memory(tree: Tree) -> None:
    (device_folder(tree, FLEX) / "device").write_text("0x0bee\n")
    assert (found(tree)[FLEX].product_name, found(tree)[FLEX].memory) == ("INTEL 0x0bee", 16 * GIB)
    (device_folder(tree, FLEX) / "resource").write_text("0x201800000000 0x20180fffffff 0x14220c\n")
    assert found(tree)[FLEX].memory == 0


def test_memory_of_intels_cards_as_either_driver_tells_it(tree: Tree) -> None:
    (device_folder(tree, FLEX) / "drm/card3/lmem_total_bytes").write_text("15000000000\n")
    assert found(tree)[FLEX].memory == 15000000000
    for tile, size in enumerate((7 * GIB, 8 * GIB)):
        folder = device_folder(tree, FLEX) / f"tile{tile}"
        folder.mkdir()
        (folder / "physical_vram_size_bytes").write_text(f"{size}\n")
    assert found(tree)[FLEX].memory == 15 * GIB


def test_a_module_of_its_own_tells_its_version(tree: Tree) -> None:
    (tree.sys / "module/amdgpu").mkdir(parents=True)
    (tree.sys / "module/amdgpu/version").write_text("6.12.12\n")
    assert found(tree)[MI300X].driver_version == "6.12.12"
    assert found(tree)[FLEX].driver_version == "6.8.0"


def test_what_is_not_served_is_left_out_with_the_reason(tree: Tree) -> None:
    with capture_logs() as log:
        assert list(found(tree)) == [MI300X, MI210, FLEX]
    assert {line["gpu"]: line["reason"].partition(" to /")[0] for line in log} == {
        PROCESSOR: "it is integrated in a processor (setting --integrated-cards)",
        "0000:c1:00.0": "vfio-pci has it, and only i915 or xe can serve it",
        "0000:c5:00.0": "its compute partition mode is CPX: write SPX",
    }  # a virtual function is no card at all


def test_graphics_inside_processors_are_found_when_told_so(tree: Tree) -> None:
    (device_folder(tree, MI210) / "gpu_metrics").write_bytes(bytes.fromhex("80000204"))
    assert list(found(tree)) == [MI300X, FLEX]
    assert list(found(tree, integrated=True)) == [PROCESSOR, MI300X, MI210, FLEX]


def test_nvidias_cards_are_told_apart(tree: Tree, tmp_path: Path) -> None:
    assert not has_nvidia_card(tree.sys)
    three = initialise(tmp_path / "three", "three-vendors")
    assert has_nvidia_card(three.sys)
    assert [card.vendor for card in find_plain_cards(three.sys, three.proc, integrated=False)] == ["amd", "intel"]
    assert find_plain_cards(tmp_path / "nothing", tree.proc, integrated=False) == ()


def test_device_nodes(tree: Tree) -> None:
    assert plain_nodes(tree.sys, MI300X, Vendor.AMD) == (
        DeviceNode("/dev/kfd", 234, 0),
        DeviceNode("/dev/dri/card1", 226, 1),
        DeviceNode("/dev/dri/renderD129", 226, 129),
    )
    assert [node.path for node in plain_nodes(tree.sys, FLEX, Vendor.INTEL)] == [
        "/dev/dri/card3",
        "/dev/dri/renderD131",
    ]


def test_a_card_without_nodes_is_an_error_that_says_what_to_do(tree: Tree) -> None:
    with pytest.raises(GpuError, match=r"GPU 0000:c1:00\.0 can't be given to a container: .*drm shows no DRM node"):
        plain_nodes(tree.sys, PciAddress("0000:c1:00.0"), Vendor.INTEL)
    (device_folder(tree, FLEX) / "drm/card3/dev").write_text("?\n")
    with pytest.raises(GpuError, match=r"does not tell the numbers of /dev/dri/card3 as major:minor"):
        plain_nodes(tree.sys, FLEX, Vendor.INTEL)


def inventory_of(tree: Tree, **more: Any) -> Inventory:
    cards: tuple[CardFacts, ...] = (card(bus=0x1B), *found(tree).values())
    ranks = {each.pci_address: rank for rank, each in enumerate(sorted(cards, key=lambda c: c.pci_address))}
    return take_inventory(InventoryRules(DRIVER, 10), cards, ranks, **more)


def devices(inventory: Inventory) -> dict[str, Device]:
    return {device.name: device for slice_ in inventory.slices for device in slice_.devices}


def test_they_are_published_whole_under_ranks_over_all_vendors(tree: Tree) -> None:
    inventory = inventory_of(tree)
    plain = {name: record for name, record in inventory.records.items() if record.vendor is not Vendor.NVIDIA}
    assert {name: (record.gpu, record.type) for name, record in plain.items()} == {
        "gpu-0": (MI300X, DeviceType.PHYSICAL),
        "gpu-2": (MI210, DeviceType.PHYSICAL),
        "gpu-3": (FLEX, DeviceType.PHYSICAL),
    }
    mi300x = devices(inventory)["gpu-0"]
    assert {name: each.value for name, each in mi300x.capacity.items()} == {"memory": "196592Mi"}
    assert (mi300x.allow_multiple_allocations, mi300x.consumes_counters) == (False, ())
    values = {name: attribute.value for name, attribute in mi300x.attributes.items()}
    assert values == {
        "vendor": "amd",
        "deviceType": "Physical",
        "productName": "AMD Instinct MI300X OAM",
        "brand": "AMD",
        "architecture": "",
        "uuid": "GPU-d4a3f1b2c5e60718",
        "migProfile": "",
        "cudaReady": False,
        "drmReady": True,
        "vfioReady": False,
        "cudaComputeCapability": "0.0.0",
        "cudaDriverVersion": "0.0.0",
        "driverVersion": "6.8.0",
        "resource.kubernetes.io/pciBusID": MI300X,
        "resource.kubernetes.io/pcieRoot": "pci0000:04",
        "resource.kubernetes.io/numaNode": 0,
        "drmCard": "card1",
        "drmRender": "renderD129",
    }


def test_they_carry_every_key_of_nvidias_whole_cards(tree: Tree) -> None:
    every = devices(inventory_of(tree))
    assert every["gpu-1"].attributes.keys() <= every["gpu-0"].attributes.keys()


def test_they_are_published_and_tainted_under_every_server(tree: Tree) -> None:
    bare = ServerFeatures(counters=False, shares=False, taints=False)
    assert set(devices(inventory_of(tree, features=bare))) == {"gpu-0", "gpu-1", "gpu-2", "gpu-3"}
    taint = DeviceTaint(key="a/b", value="c", effect="NoSchedule")
    of_flex = inventory_of(tree, taints=lambda gpu, _: (taint,) if gpu == FLEX else ())
    assert [name for name, device in devices(of_flex).items() if device.taints] == ["gpu-3"]


def plan_with(tree: Tree, *config: Any) -> PreparePlan | PlanRefusal:
    return plan_claim(allocated(given("gpu-0"), config=config), inventory_of(tree).records, RULES)


def test_a_claim_for_one_is_planned_whole(tree: Tree) -> None:
    plan = plan_with(tree, of_claim(gpu_config()))
    assert isinstance(plan, PreparePlan)
    (device,) = plan.devices
    assert (device.record.name, device.share, device.mps, device.interval) == ("gpu-0", 100, None, None)


@pytest.mark.parametrize(
    ("config", "strategy"),
    [
        (of_claim(mps()), "MPS"),
        (of_class(mps(percentage=50)), "MPS"),
        (of_claim(time_slicing("Long")), "TimeSlicing"),
        (of_claim(time_slicing()), "TimeSlicing"),
    ],
)
def test_sharing_it_is_refused(tree: Tree, config: Any, strategy: str) -> None:
    assert plan_with(tree, config) == PlanRefusal(
        f"device request 'gpu' (100 % of gpu-0): sharing.strategy {strategy} is for cards of nvidia only, and gpu-0 is "
        'one of amd, which is given whole: leave sharing out, or ask for a card whose attribute vendor is "nvidia"'
    )


def test_its_configuration_is_read_as_strictly_as_others(tree: Tree) -> None:
    refusal = plan_with(tree, of_claim(gpu_config({"strategy": "Turbo"})))
    assert isinstance(refusal, PlanRefusal)
    assert "sharing.strategy: 'Turbo' is not allowed" in refusal.reason


def test_nobody_watches_its_health() -> None:
    told = unwatched("gpu-0", Vendor.AMD)
    assert (told.wellness, told.message) == (
        Wellness.UNKNOWN,
        "the node driver does not hear of errors of cards of amd",
    )
