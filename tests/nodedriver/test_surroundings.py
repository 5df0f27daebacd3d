"""What is around a card, by made sysfs trees: kernel driver, DRM nodes, nearest NIC; NVLink cliques."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodedriver.attributes import around, nvlink
from nodedriver.facts import CardSurroundings, PciAddress, PcieLink
from nodedriver.nvml.links import cliques
from nodedriver.surroundings import nearest_nic, surroundings

CARD = PciAddress("0000:65:00.0")
ROOT, SWITCH = "pci0000:64", "pci0000:64/0000:64:00.0/0000:65:00.0"
# A card below a PCIe switch: root, root port, the switch's upstream port, its downstream port.
BELOW_SWITCH = "pci0000:64/0000:64:01.0/0000:65:00.0/0000:66:00.0/0000:67:00.0"


def plug_in(sys_root: Path, real: str, numa: int = 0, **files: str) -> Path:
    """A device at a real path below sys/devices, linked from the bus as the kernel does."""
    folder = sys_root / "devices" / real
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {"numa_node": str(numa), "class": "0x030200", **files}.items():
        (folder / name).write_text(f"{text}\n")
    link = sys_root / "bus/pci/devices" / folder.name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(folder)
    return folder


NICS = {
    "behind the same switch": (
        BELOW_SWITCH,
        [("pci0000:64/0000:64:01.0/0000:65:00.0/0000:66:01.0/0000:68:00.0", 0)],
        ("0000:68:00.0", "PIX"),
    ),
    "behind a second switch below the first": (
        BELOW_SWITCH,
        [("pci0000:64/0000:64:01.0/0000:65:00.0/0000:66:01.0/0000:69:00.0/0000:6a:00.0/0000:6b:00.0", 0)],
        ("0000:6b:00.0", "PXB"),
    ),
    "another root port of the same host bridge": (
        BELOW_SWITCH,
        [("pci0000:64/0000:64:02.0/0000:70:00.0", 0)],
        ("0000:70:00.0", "PHB"),
    ),
    "another host bridge of the same NUMA node": (
        BELOW_SWITCH,
        [("pci0000:80/0000:80:02.0/0000:81:00.0", 0)],
        ("0000:81:00.0", "NODE"),
    ),
    "another NUMA node": (BELOW_SWITCH, [("pci0000:80/0000:80:02.0/0000:81:00.0", 1)], ("0000:81:00.0", "SYS")),
    "the nearest of several, by address where equal": (
        BELOW_SWITCH,
        [
            ("pci0000:00/0000:00:02.0/0000:01:00.0", 0),
            ("pci0000:64/0000:64:01.0/0000:65:00.0/0000:66:02.0/0000:6d:00.0", 0),
            ("pci0000:64/0000:64:01.0/0000:65:00.0/0000:66:01.0/0000:6c:00.0", 0),
        ],
        ("0000:6c:00.0", "PIX"),
    ),
    "none": (BELOW_SWITCH, [], (None, None)),
}


@pytest.mark.parametrize(("card", "nics", "expected"), NICS.values(), ids=NICS)
def test_the_nearest_nic(
    tmp_path: Path, card: str, nics: list[tuple[str, int]], expected: tuple[str | None, str | None]
) -> None:
    gpu = PciAddress(plug_in(tmp_path, card).name)
    for real, numa in nics:
        plug_in(tmp_path, real, numa, **{"class": "0x020700"})
    assert nearest_nic(tmp_path, gpu) == expected


def test_a_virtual_function_and_a_device_of_another_class_are_no_nic(tmp_path: Path) -> None:
    gpu = PciAddress(plug_in(tmp_path, BELOW_SWITCH).name)
    plug_in(tmp_path, f"{ROOT}/0000:64:03.0/0000:71:00.0", 0, **{"class": "0x010802"})
    virtual = plug_in(tmp_path, f"{ROOT}/0000:64:04.0/0000:72:00.1", 0, **{"class": "0x020000"})
    (virtual / "physfn").symlink_to(plug_in(tmp_path, f"{ROOT}/0000:64:04.0/0000:72:00.0"))
    assert nearest_nic(tmp_path, gpu) == (None, None)


def test_kernel_driver_and_drm_nodes(tmp_path: Path) -> None:
    card = plug_in(tmp_path, SWITCH)
    for name in ("drm/card10", "drm/card2", "drm/renderD130", "drm/controlD66"):
        (card / name).mkdir(parents=True)
    (tmp_path / "bus/pci/drivers/nvidia").mkdir(parents=True)
    (card / "driver").symlink_to(tmp_path / "bus/pci/drivers/nvidia")
    assert surroundings(tmp_path, CARD) == CardSurroundings(
        kernel_driver="nvidia", drm_card="card2", drm_render="renderD130"
    )


def test_a_card_that_sysfs_does_not_show_has_nothing_around_it(tmp_path: Path) -> None:
    assert surroundings(tmp_path, CARD) == CardSurroundings()


A, B, C, D = (PciAddress(f"0000:{bus}:00.0") for bus in ("18", "19", "1a", "1b"))
SWITCHES = frozenset({PciAddress("0000:05:00.0"), PciAddress("0000:06:00.0")})
CLIQUES = {
    "no links": ({A: frozenset[PciAddress](), B: frozenset[PciAddress]()}, {}),
    "a bridge between two": ({A: frozenset({B}), B: frozenset({A}), C: frozenset[PciAddress]()}, {A: A, B: A}),
    "two pairs": (
        {A: frozenset({B}), B: frozenset({A}), C: frozenset({D}), D: frozenset({C})},
        {A: A, B: A, C: C, D: C},
    ),
    "a ring": (
        {A: frozenset({B, D}), B: frozenset({A, C}), C: frozenset({B, D}), D: frozenset({A, C})},
        dict.fromkeys((A, B, C, D), A),
    ),
    "all behind switches": (dict.fromkeys((D, C, B), SWITCHES), dict.fromkeys((B, C, D), B)),
    "alone behind switches": ({A: SWITCHES}, {}),
    "two chains that a third card joins": (
        {A: frozenset({C}), B: frozenset({D}), C: frozenset({A, D}), D: frozenset({B, C})},
        dict.fromkeys((A, B, C, D), A),
    ),
}


@pytest.mark.parametrize(("ends", "expected"), CLIQUES.values(), ids=CLIQUES)
def test_cards_that_reach_each_other_over_nvlink_have_one_clique(
    ends: dict[PciAddress, frozenset[PciAddress]], expected: dict[PciAddress, PciAddress]
) -> None:
    assert cliques(ends) == expected


def test_attributes_name_what_is_known_and_nothing_else() -> None:
    card = CardSurroundings(drm_render="renderD128", nearest_nic=A, nearest_nic_link=PcieLink.SWITCHES, nvlink_clique=B)
    assert {name: value.value for name, value in around(card).items()} == {
        "nearestNIC": "0000:18:00.0",
        "nearestNICLink": "PXB",
        "drmRender": "renderD128",
    }
    assert {name: value.value for name, value in nvlink(card).items()} == {"nvlinkClique": "0000:19:00.0"}
    assert around(CardSurroundings()) == nvlink(CardSurroundings()) == {}
