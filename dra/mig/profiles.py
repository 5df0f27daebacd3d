"""MIG profiles and their legal placements, per GPU model: the table behind the stand-in silicon, previews and tests.

Facts, not policy. The driver itself asks NVML (profile info and possible placements) and never this table, since memory
sizes depend on the NVIDIA driver's version. `None` says that no hardware output confirms the number.

Sources: NVIDIA MIG User Guide r620; `nvidia-smi mig -lgip` and `-lgipp` transcripts; ResourceSlices captured from live
H100, A100 and B200 nodes. H200, GH200, H20, B300, GB300 and RTX PRO 6000 have placements by analogy with their family.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ModeChange(StrEnum):
    """What it takes to switch MIG mode (MIG User Guide, "Enable MIG Mode")."""

    GPU_RESET = "gpu-reset"
    IMMEDIATE_WHEN_IDLE = "immediate-when-idle"


@dataclass(frozen=True, slots=True)
class Engines:
    """Engine counts of a GPU instance, in NVML's order (nvmlGpuInstanceProfileInfo_v3_t)."""

    copy: int
    decoder: int
    encoder: int
    jpeg: int
    ofa: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MigProfile:
    """One GPU instance profile: its NVML id and index, what it holds, and where it may start (memory slices)."""

    name: str
    id: int
    index: int
    compute_slices: int
    memory_slices: int
    starts: tuple[int, ...]
    max_instances: int
    memory_mib: int | None
    multiprocessors: int | None
    engines: Engines | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MigModel:
    """One GPU model that can be partitioned. `nvml_architecture` is NVML's NVML_DEVICE_ARCH number."""

    name: str
    product_names: tuple[str, ...]
    pci_device_ids: tuple[int, ...]
    architecture: str
    nvml_architecture: int
    compute_capability: tuple[int, int]
    total_memory_mib: int | None
    memory_slices: int
    compute_slices: int
    mode_change: ModeChange
    profiles: tuple[MigProfile, ...]

    def profile(self, name: str) -> MigProfile:
        """The profile of that name; KeyError when this model has none."""
        for profile in self.profiles:
            if profile.name == name:
                return profile
        raise KeyError(name)


def _gi(  # noqa: PLR0917  # a row of the table below
    name: str,
    id_: int,
    index: int,
    slices: str,
    starts: tuple[int, ...],
    most: int,
    mib: int | None,
    sm: int | None,
    engines: tuple[int, int, int, int, int] | None,
) -> MigProfile:
    """A table row. `slices` is "compute/memory"; `engines` is copy, decoder, encoder, jpeg, ofa."""
    compute, memory = slices.split("/")
    return MigProfile(
        name=name,
        id=id_,
        index=index,
        compute_slices=int(compute),
        memory_slices=int(memory),
        starts=starts,
        max_instances=most,
        memory_mib=mib,
        multiprocessors=sm,
        engines=Engines(*engines) if engines else None,
    )


# fmt: off
MODELS: tuple[MigModel, ...] = (
    MigModel(
        name="A30-24GB", product_names=("NVIDIA A30",), pci_device_ids=(0x20B710DE,),
        architecture="Ampere", nvml_architecture=7, compute_capability=(8, 0), total_memory_mib=24576,
        memory_slices=4, compute_slices=4, mode_change=ModeChange.GPU_RESET,
        profiles=(
            _gi("1g.6gb", 14, 0, "1/1", (0, 1, 2, 3), 4, 5952, 14, (1, 0, 0, 0, 0)),
            _gi("1g.6gb+me", 21, 7, "1/1", (0, 1, 2, 3), 1, 5952, 14, (1, 1, 0, 1, 1)),
            _gi("2g.12gb", 5, 1, "2/2", (0, 2), 2, 11968, 28, (2, 2, 0, 0, 0)),
            _gi("2g.12gb+me", 6, 8, "2/2", (0, 2), 1, 11968, 28, (2, 2, 0, 1, 1)),
            _gi("4g.24gb", 0, 3, "4/4", (0,), 1, 24000, 56, (4, 4, 0, 1, 1)),
        ),
    ),
    MigModel(
        name="A100-40GB", product_names=("NVIDIA A100-SXM4-40GB", "NVIDIA A100-PCIE-40GB", "NVIDIA A800 40GB"), pci_device_ids=(0x20B010DE, 0x20B110DE, 0x20F110DE, 0x20F610DE),
        architecture="Ampere", nvml_architecture=7, compute_capability=(8, 0), total_memory_mib=40960,
        memory_slices=8, compute_slices=7, mode_change=ModeChange.GPU_RESET,
        profiles=(
            _gi("1g.5gb", 19, 0, "1/1", (0, 1, 2, 3, 4, 5, 6), 7, 4864, 14, (1, 0, 0, 0, 0)),
            _gi("1g.5gb+me", 20, 7, "1/1", (0, 1, 2, 3, 4, 5, 6), 1, 4864, 14, (1, 1, 0, 1, 1)),
            _gi("1g.10gb", 15, 9, "1/2", (0, 2, 4, 6), 4, 9984, 14, (1, 1, 0, 0, 0)),
            _gi("2g.10gb", 14, 1, "2/2", (0, 2, 4), 3, 9984, 28, (2, 1, 0, 0, 0)),
            _gi("3g.20gb", 9, 2, "3/4", (0, 4), 2, 20096, 42, (3, 2, 0, 0, 0)),
            _gi("4g.20gb", 5, 3, "4/4", (0,), 1, 20096, 56, (4, 2, 0, 0, 0)),
            _gi("7g.40gb", 0, 4, "7/8", (0,), 1, 40320, 98, (7, 5, 0, 1, 1)),
        ),
    ),
    MigModel(
        name="A100-80GB", product_names=("NVIDIA A100-SXM4-80GB", "NVIDIA A100 80GB PCIe", "NVIDIA A800 80GB"), pci_device_ids=(0x20B210DE, 0x20B510DE, 0x20F310DE, 0x20F510DE),
        architecture="Ampere", nvml_architecture=7, compute_capability=(8, 0), total_memory_mib=81920,
        memory_slices=8, compute_slices=7, mode_change=ModeChange.GPU_RESET,
        profiles=(
            _gi("1g.10gb", 19, 0, "1/1", (0, 1, 2, 3, 4, 5, 6), 7, 9728, 14, (1, 0, 0, 0, 0)),
            _gi("1g.10gb+me", 20, 7, "1/1", (0, 1, 2, 3, 4, 5, 6), 1, 9728, 14, (1, 1, 0, 1, 1)),
            _gi("1g.20gb", 15, 9, "1/2", (0, 2, 4, 6), 4, 19968, 14, (1, 1, 0, 0, 0)),
            _gi("2g.20gb", 14, 1, "2/2", (0, 2, 4), 3, 19968, 28, (2, 1, 0, 0, 0)),
            _gi("3g.40gb", 9, 2, "3/4", (0, 4), 2, 40192, 42, (3, 2, 0, 0, 0)),
            _gi("4g.40gb", 5, 3, "4/4", (0,), 1, 40192, 56, (4, 2, 0, 0, 0)),
            _gi("7g.80gb", 0, 4, "7/8", (0,), 1, 80896, 98, (7, 5, 0, 1, 1)),
        ),
    ),
    MigModel(
        name="H100-80GB", product_names=("NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe", "NVIDIA H800"), pci_device_ids=(0x233010DE, 0x233110DE, 0x232210DE, 0x232410DE),
        architecture="Hopper", nvml_architecture=9, compute_capability=(9, 0), total_memory_mib=81559,
        memory_slices=8, compute_slices=7, mode_change=ModeChange.IMMEDIATE_WHEN_IDLE,
        profiles=(
            _gi("1g.10gb", 19, 0, "1/1", (0, 1, 2, 3, 4, 5, 6), 7, 9984, 16, (1, 1, 0, 1, 0)),
            _gi("1g.10gb+me", 20, 7, "1/1", (0, 1, 2, 3, 4, 5, 6), 1, 9984, 16, (1, 1, 0, 1, 1)),
            _gi("1g.20gb", 15, 9, "1/2", (0, 2, 4, 6), 4, 20096, 26, (1, 1, 0, 1, 0)),
            _gi("2g.20gb", 14, 1, "2/2", (0, 2, 4), 3, 20096, 32, (2, 2, 0, 2, 0)),
            _gi("3g.40gb", 9, 2, "3/4", (0, 4), 2, 40448, 60, (3, 3, 0, 3, 0)),
            _gi("4g.40gb", 5, 3, "4/4", (0,), 1, 40448, 64, (4, 4, 0, 4, 0)),
            _gi("7g.80gb", 0, 4, "7/8", (0,), 1, 81152, 132, (8, 7, 0, 7, 1)),
        ),
    ),
    MigModel(
        name="H100-94GB", product_names=("NVIDIA H100 NVL", "NVIDIA H800 NVL"), pci_device_ids=(0x232110DE, 0x233A10DE),
        architecture="Hopper", nvml_architecture=9, compute_capability=(9, 0), total_memory_mib=95830,
        memory_slices=8, compute_slices=7, mode_change=ModeChange.IMMEDIATE_WHEN_IDLE,
        profiles=(
            _gi("1g.12gb", 19, 0, "1/1", (0, 1, 2, 3, 4, 5, 6), 7, 11008, 16, (1, 1, 0, 1, 0)),
            _gi("1g.12gb+me", 20, 7, "1/1", (0, 1, 2, 3, 4, 5, 6), 1, 11008, 16, (1, 1, 0, 1, 1)),
            _gi("1g.24gb", 15, 9, "1/2", (0, 2, 4, 6), 4, 22144, 26, (1, 1, 0, 1, 0)),
            _gi("2g.24gb", 14, 1, "2/2", (0, 2, 4), 3, 22144, 32, (2, 2, 0, 2, 0)),
            _gi("3g.47gb", 9, 2, "3/4", (0, 4), 2, 47488, 60, (3, 3, 0, 3, 0)),
            _gi("4g.47gb", 5, 3, "4/4", (0,), 1, 47488, 64, (4, 4, 0, 4, 0)),
            _gi("7g.94gb", 0, 4, "7/8", (0,), 1, 95360, 132, (8, 7, 0, 7, 1)),
        ),
    ),
    MigModel(
        name="H100-96GB", product_names=("NVIDIA GH200 480GB (H100 96GB)", "NVIDIA H100 96GB"), pci_device_ids=(0x234210DE, 0x233D10DE, 0x20B610DE),
        architecture="Hopper", nvml_architecture=9, compute_capability=(9, 0), total_memory_mib=97871,
        memory_slices=8, compute_slices=7, mode_change=ModeChange.IMMEDIATE_WHEN_IDLE,
        profiles=(
            _gi("1g.12gb", 19, 0, "1/1", (0, 1, 2, 3, 4, 5, 6), 7, 11264, 16, (1, 1, 0, 1, 0)),
            _gi("1g.12gb+me", 20, 7, "1/1", (0, 1, 2, 3, 4, 5, 6), 1, 11264, 16, (1, 1, 0, 1, 1)),
            _gi("1g.24gb", 15, 9, "1/2", (0, 2, 4, 6), 4, 23552, 26, (1, 1, 0, 1, 0)),
            _gi("2g.24gb", 14, 1, "2/2", (0, 2, 4), 3, 23552, 32, (2, 2, 0, 2, 0)),
            _gi("3g.48gb", 9, 2, "3/4", (0, 4), 2, 47616, 60, (3, 3, 0, 3, 0)),
            _gi("4g.48gb", 5, 3, "4/4", (0,), 1, 47616, 64, (4, 4, 0, 4, 0)),
            _gi("7g.96gb", 0, 4, "7/8", (0,), 1, 95232, 132, (8, 7, 0, 7, 1)),
        ),
    ),
    MigModel(
        name="H200-141GB", product_names=("NVIDIA H200", "NVIDIA H200 NVL"), pci_device_ids=(0x233510DE, 0x233B10DE),
        architecture="Hopper", nvml_architecture=9, compute_capability=(9, 0), total_memory_mib=143771,
        memory_slices=8, compute_slices=7, mode_change=ModeChange.IMMEDIATE_WHEN_IDLE,
        profiles=(
            _gi("1g.18gb", 19, 0, "1/1", (0, 1, 2, 3, 4, 5, 6), 7, 16384, 16, (1, 1, 0, 1, 0)),
            _gi("1g.18gb+me", 20, 7, "1/1", (0, 1, 2, 3, 4, 5, 6), 1, 16384, 16, (1, 1, 0, 1, 1)),
            _gi("1g.35gb", 15, 9, "1/2", (0, 2, 4, 6), 4, 33024, 26, (1, 1, 0, 1, 0)),
            _gi("2g.35gb", 14, 1, "2/2", (0, 2, 4), 3, 33024, 32, (2, 2, 0, 2, 0)),
            _gi("3g.71gb", 9, 2, "3/4", (0, 4), 2, 71168, 60, (3, 3, 0, 3, 0)),
            _gi("4g.71gb", 5, 3, "4/4", (0,), 1, 71168, 64, (4, 4, 0, 4, 0)),
            _gi("7g.141gb", 0, 4, "7/8", (0,), 1, 143104, 132, (8, 7, 0, 7, 1)),
        ),
    ),
    MigModel(
        name="GH200-144GB", product_names=("NVIDIA GH200 144G HBM3e",), pci_device_ids=(0x234810DE,),
        architecture="Hopper", nvml_architecture=9, compute_capability=(9, 0), total_memory_mib=None,
        memory_slices=8, compute_slices=7, mode_change=ModeChange.IMMEDIATE_WHEN_IDLE,
        profiles=(
            _gi("1g.18gb", 19, 0, "1/1", (0, 1, 2, 3, 4, 5, 6), 7, 17920, 16, (1, 1, 0, 1, 0)),
            _gi("1g.18gb+me", 20, 7, "1/1", (0, 1, 2, 3, 4, 5, 6), 1, 17920, 16, (1, 1, 0, 1, 1)),
            _gi("1g.36gb", 15, 9, "1/2", (0, 2, 4, 6), 4, 36096, 26, (1, 1, 0, 1, 0)),
            _gi("2g.36gb", 14, 1, "2/2", (0, 2, 4), 3, 36096, 32, (2, 2, 0, 2, 0)),
            _gi("3g.72gb", 9, 2, "3/4", (0, 4), 2, None, 60, (3, 3, 0, 3, 0)),
            _gi("4g.72gb", 5, 3, "4/4", (0,), 1, None, 64, (4, 4, 0, 4, 0)),
            _gi("7g.144gb", 0, 4, "7/8", (0,), 1, None, 132, (8, 7, 0, 7, 1)),
        ),
    ),
    MigModel(
        name="H20-96GB", product_names=("NVIDIA H20",), pci_device_ids=(0x232910DE,),
        architecture="Hopper", nvml_architecture=9, compute_capability=(9, 0), total_memory_mib=97871,
        memory_slices=8, compute_slices=7, mode_change=ModeChange.IMMEDIATE_WHEN_IDLE,
        profiles=(
            _gi("1g.12gb", 19, 0, "1/1", (0, 1, 2, 3, 4, 5, 6), 7, None, None, (1, 1, 0, 1, 0)),
            _gi("1g.12gb+me", 20, 7, "1/1", (0, 1, 2, 3, 4, 5, 6), 1, None, None, (1, 1, 0, 1, 1)),
            _gi("1g.24gb", 15, 9, "1/2", (0, 2, 4, 6), 4, None, None, (1, 1, 0, 1, 0)),
            _gi("2g.24gb", 14, 1, "2/2", (0, 2, 4), 3, None, None, (2, 2, 0, 2, 0)),
            _gi("3g.48gb", 9, 2, "3/4", (0, 4), 2, None, None, (3, 3, 0, 3, 0)),
            _gi("4g.48gb", 5, 3, "4/4", (0,), 1, None, None, (4, 4, 0, 4, 0)),
            _gi("7g.96gb", 0, 4, "7/8", (0,), 1, None, None, (8, 7, 0, 7, 1)),
        ),
    ),
    MigModel(
        name="B200-180GB", product_names=("NVIDIA B200",), pci_device_ids=(0x290110DE,),
        architecture="Blackwell", nvml_architecture=10, compute_capability=(10, 0), total_memory_mib=183359,
        memory_slices=8, compute_slices=7, mode_change=ModeChange.IMMEDIATE_WHEN_IDLE,
        profiles=(
            _gi("1g.23gb", 19, 0, "1/1", (0, 1, 2, 3, 4, 5, 6), 7, 20992, 18, (2, 1, 0, 1, 0)),
            _gi("1g.23gb+me", 20, 7, "1/1", (0, 1, 2, 3, 4, 5, 6), 1, 20992, 18, (2, 1, 0, 1, 1)),
            _gi("1g.45gb", 15, 9, "1/2", (0, 2, 4, 6), 4, 45312, 30, (2, 1, 0, 1, 0)),
            _gi("2g.45gb", 14, 1, "2/2", (0, 2, 4), 3, 45312, 36, (4, 2, 0, 2, 0)),
            _gi("3g.90gb", 9, 2, "3/4", (0, 4), 2, 91136, 70, (6, 3, 0, 3, 0)),
            _gi("4g.90gb", 5, 3, "4/4", (0,), 1, 91136, 72, (8, 4, 0, 4, 0)),
            _gi("7g.180gb", 0, 4, "7/8", (0,), 1, 182784, 148, (16, 7, 0, 7, 1)),
        ),
    ),
    MigModel(
        name="GB200-186GB", product_names=("NVIDIA GB200",), pci_device_ids=(0x294110DE,),
        architecture="Blackwell", nvml_architecture=10, compute_capability=(10, 0), total_memory_mib=189471,
        memory_slices=8, compute_slices=7, mode_change=ModeChange.IMMEDIATE_WHEN_IDLE,
        profiles=(
            _gi("1g.23gb", 19, 0, "1/1", (0, 1, 2, 3, 4, 5, 6), 7, 22528, 18, (2, 1, 0, 1, 0)),
            _gi("1g.23gb+me", 20, 7, "1/1", (0, 1, 2, 3, 4, 5, 6), 1, 22528, 18, (2, 1, 0, 1, 1)),
            _gi("1g.47gb", 15, 9, "1/2", (0, 2, 4, 6), 4, 46592, 32, (2, 1, 0, 1, 0)),
            _gi("2g.47gb", 14, 1, "2/2", (0, 2, 4), 3, 46592, 38, (4, 2, 0, 2, 0)),
            _gi("3g.93gb", 9, 2, "3/4", (0, 4), 2, None, None, (6, 3, 0, 3, 0)),
            _gi("4g.93gb", 5, 3, "4/4", (0,), 1, None, None, (8, 4, 0, 4, 0)),
            _gi("7g.186gb", 0, 4, "7/8", (0,), 1, None, None, (16, 7, 0, 7, 1)),
        ),
    ),
    MigModel(
        name="B300-269GB", product_names=("NVIDIA B300 SXM6",), pci_device_ids=(0x318210DE,),
        architecture="Blackwell", nvml_architecture=10, compute_capability=(10, 3), total_memory_mib=None,
        memory_slices=8, compute_slices=7, mode_change=ModeChange.IMMEDIATE_WHEN_IDLE,
        profiles=(
            _gi("1g.34gb", 19, 0, "1/1", (0, 1, 2, 3, 4, 5, 6), 7, None, None, None),
            _gi("1g.34gb+me", 20, 7, "1/1", (0, 1, 2, 3, 4, 5, 6), 1, None, None, None),
            _gi("1g.67gb", 15, 9, "1/2", (0, 2, 4, 6), 4, None, None, None),
            _gi("2g.67gb", 14, 1, "2/2", (0, 2, 4), 3, None, None, None),
            _gi("3g.135gb", 9, 2, "3/4", (0, 4), 2, None, None, None),
            _gi("4g.135gb", 5, 3, "4/4", (0,), 1, None, None, None),
            _gi("7g.269gb", 0, 4, "7/8", (0,), 1, None, None, None),
        ),
    ),
    MigModel(
        name="GB300-278GB", product_names=("NVIDIA GB300",), pci_device_ids=(0x31C210DE,),
        architecture="Blackwell", nvml_architecture=10, compute_capability=(10, 3), total_memory_mib=None,
        memory_slices=8, compute_slices=7, mode_change=ModeChange.IMMEDIATE_WHEN_IDLE,
        profiles=(
            _gi("1g.35gb", 19, 0, "1/1", (0, 1, 2, 3, 4, 5, 6), 7, None, None, None),
            _gi("1g.35gb+me", 20, 7, "1/1", (0, 1, 2, 3, 4, 5, 6), 1, None, None, None),
            _gi("1g.70gb", 15, 9, "1/2", (0, 2, 4, 6), 4, None, None, None),
            _gi("2g.70gb", 14, 1, "2/2", (0, 2, 4), 3, None, None, None),
            _gi("3g.139gb", 9, 2, "3/4", (0, 4), 2, None, None, None),
            _gi("4g.139gb", 5, 3, "4/4", (0,), 1, None, None, None),
            _gi("7g.278gb", 0, 4, "7/8", (0,), 1, None, None, None),
        ),
    ),
    MigModel(
        name="RTX-PRO-6000-BSE-96GB", product_names=("NVIDIA RTX PRO 6000 Blackwell Server Edition",), pci_device_ids=(0x2BB510DE,),
        architecture="Blackwell", nvml_architecture=10, compute_capability=(12, 0), total_memory_mib=None,
        memory_slices=4, compute_slices=4, mode_change=ModeChange.IMMEDIATE_WHEN_IDLE,
        profiles=(
            _gi("1g.24gb", 14, 0, "1/1", (0, 1, 2, 3), 4, 24192, 46, (1, 1, 1, 1, 0)),
            _gi("1g.24gb+me", 21, 7, "1/1", (0, 1, 2, 3), 1, 24192, 46, (1, 1, 1, 1, 1)),
            _gi("1g.24gb+gfx", 47, 10, "1/1", (0, 1, 2, 3), 4, 24192, 46, (1, 1, 1, 1, 0)),
            _gi("1g.24gb+me.all", 65, 15, "1/1", (0, 1, 2, 3), 1, 24192, 46, (1, 4, 4, 4, 1)),
            _gi("1g.24gb-me", 67, 13, "1/1", (0, 1, 2, 3), 4, 24192, 46, (1, 0, 0, 0, 0)),
            _gi("2g.48gb", 5, 1, "2/2", (0, 2), 2, None, None, (2, 2, 2, 2, 0)),
            _gi("2g.48gb+gfx", 35, 11, "2/2", (0, 2), 2, None, None, (2, 2, 2, 2, 0)),
            _gi("2g.48gb+me.all", 64, 16, "2/2", (0, 2), 1, None, None, (2, 4, 4, 4, 1)),
            _gi("2g.48gb-me", 66, 14, "2/2", (0, 2), 2, None, None, (2, 0, 0, 0, 0)),
            _gi("4g.96gb", 0, 3, "4/4", (0,), 1, None, None, (4, 4, 4, 4, 1)),
            _gi("4g.96gb+gfx", 32, 12, "4/4", (0,), 1, None, None, (4, 4, 4, 4, 1)),
        ),
    ),
)
# fmt: on


def model_of_product(product_name: str) -> MigModel | None:
    """The model that carries this NVML product name, or None when the table does not know it (or it has no MIG)."""
    return next((model for model in MODELS if product_name in model.product_names), None)
