"""Where a card sits: NUMA node and PCIe root out of a sysfs tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodedriver.facts import PciAddress
from nodedriver.sysfs import numa_node, pcie_root
from simulator.silicon.fleet import initialise

CARD = PciAddress("0000:65:00.0")


def plug_in(sys_root: Path, real: str, numa: str) -> None:
    """A device at a real path below sys/devices, linked from the bus as the kernel does."""
    folder = sys_root / "devices" / real
    folder.mkdir(parents=True)
    (folder / "numa_node").write_text(f"{numa}\n")
    link = sys_root / "bus/pci/devices" / CARD
    link.parent.mkdir(parents=True)
    link.symlink_to(folder)


@pytest.mark.parametrize(("numa", "expected"), [("1", 1), ("0", 0), ("-1", None)])
def test_numa_node(tmp_path: Path, numa: str, expected: int | None) -> None:
    plug_in(tmp_path, "pci0000:64/0000:64:00.0/0000:65:00.0", numa)
    assert numa_node(tmp_path, CARD) == expected


@pytest.mark.parametrize(
    ("real", "expected"),
    [
        ("pci0000:64/0000:64:00.0/0000:65:00.0", "pci0000:64"),
        ("pci10000:e0/10000:e0:01.0/0000:65:00.0", "pci10000:e0"),
        ("LNXSYSTM:00/ACPI0004:00/VMBUS:00/abcd/pci0007:00/0000:65:00.0", None),
    ],
    ids=["bare metal", "wide domain", "below a bus of a hypervisor"],
)
def test_pcie_root(tmp_path: Path, real: str, expected: str | None) -> None:
    # Kubernetes' helper reads only the part right after `devices` (deviceattribute/pci_linux.go): the third has none.
    plug_in(tmp_path, real, "0")
    assert pcie_root(tmp_path, CARD) == expected


def test_a_card_that_sysfs_does_not_show(tmp_path: Path) -> None:
    assert (numa_node(tmp_path, CARD), pcie_root(tmp_path, CARD)) == (None, None)


def test_the_root_of_the_tree_may_have_a_telling_name(tmp_path: Path) -> None:
    tree = initialise(tmp_path / "devices" / "machine")
    first = next(iter(sorted((tree.sys / "bus/pci/drivers/nvidia").iterdir())))
    root = pcie_root(tree.sys, PciAddress(first.name))
    assert root is not None
    assert root.startswith("pci0000:")
