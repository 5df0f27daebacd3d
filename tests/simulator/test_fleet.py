"""The tree of files around the cards, in the forms that NVIDIA's driver and Linux write."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.silicon.fleet import SCENARIOS, initialise
from simulator.silicon.state import State


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return initialise(tmp_path / "machine").root


@pytest.mark.parametrize(
    ("scenario", "cards"),
    [("h100x8", 8), ("h200x8", 8), ("a100x8", 8), ("l4x4", 4), ("mixed", 6), ("three-vendors", 8)],
)
def test_every_scenario_is_ordered_by_pci_address(tmp_path: Path, scenario: str, cards: int) -> None:
    gpus = State(initialise(tmp_path, scenario).state).read().gpus
    assert [gpu.index for gpu in gpus] == list(range(cards))
    assert sorted(gpu.pci_address for gpu in gpus) == [gpu.pci_address for gpu in gpus]
    assert sorted(gpu.minor for gpu in gpus) == list(range(cards))
    assert len({gpu.uuid for gpu in gpus} | {gpu.serial for gpu in gpus}) == 2 * cards


def test_each_scenario_file_is_in_the_table_above() -> None:
    assert {path.stem for path in SCENARIOS.glob("*.toml")} == {
        "h100x8", "h200x8", "a100x8", "l4x4", "mixed", "three-vendors",
        "amd-intel",  # no card of NVIDIA's
    }  # fmt: skip


def test_default_cards_have_their_own_roots_on_two_numa_nodes(root: Path) -> None:
    gpus = State(root / "silicon.json").read().gpus
    assert len({gpu.pcie_root for gpu in gpus}) == 8
    assert [gpu.numa_node for gpu in gpus] == [0, 0, 0, 0, 1, 1, 1, 1]


def test_sysfs_links_lead_through_the_pcie_root(root: Path) -> None:
    link = root / "sys/bus/pci/devices/0000:9d:00.0"
    assert link.is_symlink()
    assert not Path(link.readlink()).is_absolute()
    assert link.resolve() == root.resolve() / "sys/devices/pci0000:9c/0000:9c:00.0/0000:9d:00.0"
    assert (link / "driver").resolve().name == "nvidia"
    assert (link / "iommu_group").resolve().name == "4"
    texts = {name: (link / name).read_text() for name in ("vendor", "device", "class", "numa_node")}
    assert texts == {"vendor": "0x10de\n", "device": "0x2330\n", "class": "0x030200\n", "numa_node": "1\n"}


def test_bar1_is_the_cards_memory_rounded_up(root: Path) -> None:
    start, end, flags = (root / "sys/bus/pci/devices/0000:1b:00.0/resource").read_text().splitlines()[1].split()
    assert int(end, 16) - int(start, 16) + 1 == 128 * 2**30
    assert int(flags, 16) & 0x100200 == 0x100200


def test_bridges_are_listed_beside_cards(root: Path) -> None:
    classes = [p.read_text() for p in (root / "sys/bus/pci/devices").glob("*/class")]
    assert sorted(classes) == ["0x030200\n"] * 8 + ["0x060400\n"] * 8


def test_proc_files(root: Path) -> None:
    proc = root / "proc"
    assert "\n237 nvidia-caps\n506 nvidia-uvm\n" in (proc / "devices").read_text()
    assert "580.126.20" in (proc / "driver/nvidia/version").read_text()
    minors = (proc / "driver/nvidia-caps/mig-minors").read_text().splitlines()
    assert minors[:4] == ["config 1", "monitor 2", "gpu0/gi0/access 3", "gpu0/gi0/ci0/access 4"]
    assert minors[-1].startswith("gpu31/gi14/ci7/access ")
    assert len(minors) == len({line.split()[1] for line in minors}) == 2 + 32 * 15 * 9
    information = (proc / "driver/nvidia/gpus/0000:43:00.0/information").read_text()
    assert "Device Minor: \t 1\n" in information
    assert "Model: \t\t NVIDIA H100 80GB HBM3\n" in information
    assert (proc / "driver/nvidia/capabilities/mig/config").read_text().startswith("DeviceFileMinor: 1\n")


def test_device_files_and_driver_root(root: Path) -> None:
    names = {path.name for path in (root / "dev").iterdir()}
    assert names >= {"nvidia0", "nvidia7", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-caps"}
    libraries = root / "driver/usr/lib/x86_64-linux-gnu"
    assert (libraries / "libcuda.so").resolve().name == "libcuda.so.580.126.20"
    assert (libraries / "libnvidia-ml.so.1").resolve().is_file()
    for program in ("nvidia-cuda-mps-control", "nvidia-smi"):
        assert (root / "driver/usr/bin" / program).stat().st_mode & 0o111 == 0o111


def test_the_stand_in_libcuda_knows_the_cards(root: Path) -> None:
    libcuda = root / "driver/usr/lib/x86_64-linux-gnu/libcuda.so.1"
    inode = libcuda.stat().st_ino
    State(root / "silicon.json").change(lambda silicon: (silicon, None))
    assert libcuda.read_bytes() == (root / "silicon.json").read_bytes()
    assert libcuda.stat().st_ino == inode  # a bind mount of it stays the same file


def test_seeds_give_machines_of_their_own(tmp_path: Path) -> None:
    one, other, again = (
        {gpu.uuid for gpu in State(initialise(tmp_path / str(n), seed=seed).state).read().gpus}
        for n, seed in enumerate(("node-1", "node-2", "node-1"))
    )
    assert one.isdisjoint(other)
    assert one == again


def test_a_machine_is_not_made_twice(root: Path) -> None:
    with pytest.raises(FileExistsError, match="holds a machine already"):
        initialise(root)


def test_an_unknown_scenario_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there are a100x8, amd-intel, h100x8, h200x8, l4x4, mixed, three-vendors"):
        initialise(tmp_path / "x", "h999x1")
