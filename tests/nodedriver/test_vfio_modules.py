"""Which module passes a card through, and what of sysfs says whether it can be: tables."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nodedriver.facts import PciAddress, VfioFacts
from nodedriver.vfio import iommu
from nodedriver.vfio.iommu import Roots, addressable_memory
from nodedriver.vfio.modules import best_module, driver_names
from simulator.silicon import pci
from simulator.silicon.fleet import initialise
from simulator.silicon.state import State
from simulator.silicon.tree import Tree

ALIASES = """# Aliases extracted from modules themselves.
alias pci:v000010DEd*sv*sd*bc03sc00i00* nvidia
alias vfio_pci:v000015B3d0000101Esv*sd*bc*sc*i* mlx5_vfio_pci
alias vfio_pci:v000010DEd00002342sv*sd*bc*sc*i* nvgrace_gpu_vfio_pci
alias vfio_pci:v*d*sv*sd*bc*sc*i* vfio_pci
"""
GRACE = "pci:v000010DEd00002342sv000010DEsd000016EBbc03sc02i00\n"
HOPPER = "pci:v000010DEd00002330sv000010DEsd000016C1bc03sc02i00\n"
NIC = "pci:v000015B3d0000101Esv000015B3sd00000001bc02sc00i00"


@pytest.mark.parametrize(
    ("modalias", "aliases", "module"),
    [
        (GRACE, ALIASES, "nvgrace_gpu_vfio_pci"),
        (HOPPER, ALIASES, "vfio_pci"),
        (NIC, ALIASES, "mlx5_vfio_pci"),
        (HOPPER, "", "vfio_pci"),
        (GRACE, ALIASES.replace("nvgrace_gpu_vfio_pci", "nvgrace vfio_pci\nalias x"), "vfio_pci"),
    ],
    ids=["a module for one card", "any card", "another vendor", "no aliases to look into", "lines of another form"],
)
def test_the_tightest_alias_counts(modalias: str, aliases: str, module: str) -> None:
    assert best_module(modalias, aliases) == module


def test_a_driver_may_keep_the_underscores_of_its_module() -> None:
    assert driver_names("vfio_pci") == ("vfio-pci", "vfio_pci")


@pytest.mark.parametrize(
    ("resource", "size"),
    [
        ("0x0000380000000000 0x0000381fffffffff 0x000000000014220c", 128 * 2**30),
        (
            (
                "0x0000000092000000 0x0000000092ffffff 0x0000000000040200\n"
                "0x0000380000000000 0x000038177fffffff 0x000000000014220c\n"
                "0x0000382000000000 0x0000382001ffffff 0x000000000014220c"
            ),
            128 * 2**30,
        ),
        ("0x0000000000000000 0x0000000000000000 0x0000000000000000", 0),
    ],
    ids=["one BAR", "a 32-bit one is left out, the sum is rounded up", "none"],
)
def test_addressable_memory(resource: str, size: int) -> None:
    assert addressable_memory(resource) == size


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return initialise(tmp_path / "m", "h100x8")


def first(tree: Tree) -> PciAddress:
    return PciAddress(State(tree.state).read().gpus[0].pci_address)


def roots(tree: Tree) -> Roots:
    return Roots(tree.sys, tree.proc)


def test_a_card_whose_module_is_loaded_can_be_passed_through(tree: Tree) -> None:
    pci.load_vfio(tree.sys)
    assert iommu.why_not(roots(tree), first(tree)) == ""
    assert iommu.facts(roots(tree), first(tree)) == VfioFacts(
        vendor_id="0x10de", device_id="0x2330", addressable_memory=128 * 2**30, iommufd=True
    )


def test_without_the_module_the_next_step_is_said(tree: Tree) -> None:
    assert iommu.why_not(roots(tree), first(tree)) == (
        "the kernel has not loaded vfio_pci and vfio_iommu_type1: modprobe -a vfio_pci vfio_iommu_type1, and name them "
        "in /etc/modules-load.d"
    )
    assert iommu.facts(roots(tree), first(tree)) is None


def test_one_way_to_map_memory_is_enough(tree: Tree) -> None:
    """iommufd, which has a device of its own, or vfio_iommu_type1."""
    pci.load_vfio(tree.sys)
    shutil.rmtree(tree.sys / "module/vfio_iommu_type1")
    assert iommu.why_not(roots(tree), first(tree)) == ""
    shutil.rmtree(tree.sys / "class/misc/iommu")
    assert iommu.why_not(roots(tree), first(tree)) == (
        "the kernel has not loaded vfio_iommu_type1: modprobe -a vfio_iommu_type1, and name it in /etc/modules-load.d"
    )
    assert iommu.facts(roots(tree), first(tree)) is None


def test_without_an_iommu_no_card_can_be_passed_through(tree: Tree) -> None:
    pci.load_vfio(tree.sys)
    (tree.sys / "bus/pci/devices" / first(tree) / "iommu_group").unlink()
    assert iommu.why_not(roots(tree), first(tree)).startswith("it is in no IOMMU group: switch the IOMMU on")


def test_the_card_s_own_functions_move_with_it_and_bridges_stay(tree: Tree) -> None:
    pci.load_vfio(tree.sys)
    gpu = State(tree.state).read().gpus[0]
    audio, bridge = gpu.pci_address[:-1] + "1", gpu.pci_address[:-1] + "2"
    pci.add_function(tree.sys, gpu, audio, {"class": "0x040300", "driver_override": "(null)"}, "snd_hda_intel")
    pci.add_function(tree.sys, gpu, bridge, {"class": "0x060400", "driver_override": "(null)"}, "pcieport")
    assert iommu.members(tree.sys, first(tree)) == (gpu.pci_address, audio)
    assert iommu.why_not(roots(tree), first(tree)) == ""


def test_a_group_with_other_devices_is_not_torn_apart(tree: Tree) -> None:
    """Moving the group would take the neighbour from whoever has it."""
    pci.load_vfio(tree.sys)
    gpu = State(tree.state).read().gpus[0]
    pci.add_function(tree.sys, gpu, "0000:19:00.0", {"class": "0x030200", "driver_override": "(null)"}, "nvidia")
    assert iommu.why_not(roots(tree), first(tree)) == (
        "its IOMMU group 0 also holds 0000:19:00.0: use a PCIe slot with a group of its own (ACS)"
    )
