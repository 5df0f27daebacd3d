"""What the hardware said: frozen values without behaviour.

A GPU is keyed by its PCI address, since NVML's index moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import NewType

PciAddress = NewType("PciAddress", str)  # "0000:65:00.0": four-digit domain, lower case
GpuUUID = NewType("GpuUUID", str)
MigUUID = NewType("MigUUID", str)


class ComputeMode(IntEnum):
    """NVML compute modes (nvmlComputeMode_t). The driver sets DEFAULT and EXCLUSIVE_PROCESS."""

    DEFAULT = 0
    PROHIBITED = 2
    EXCLUSIVE_PROCESS = 3


class Vendor(StrEnum):
    """Who made a card; values of the attribute `vendor`."""

    NVIDIA = "nvidia"
    AMD = "amd"
    INTEL = "intel"


class DeviceType(StrEnum):
    """What a published device is of its card; values of the attribute `deviceType`."""

    PHYSICAL = "Physical"
    MIG = "MIG"
    TIME_SLICED = "TimeSliced"
    VFIO = "VFIO"


class MigModeChange(StrEnum):
    """What switching MIG mode takes on this GPU (MIG User Guide, "Enable MIG Mode")."""

    IMPOSSIBLE = "impossible"
    WHEN_IDLE = "when-idle"  # Hopper and newer
    NEEDS_RESET = "needs-reset"  # Ampere


@dataclass(frozen=True, slots=True, order=True)
class MigPlacement:
    """A possible GPU instance: NVML profile id, first memory slice, number of memory slices."""

    profile_id: int
    start: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MigProfileFacts:
    """One GPU instance profile as NVML reports it for this GPU, with every legal start. Memory in bytes."""

    id: int
    name: str
    compute_slices: int
    memory: int
    multiprocessors: int
    copy_engines: int
    decoders: int
    encoders: int
    jpeg_engines: int
    ofa_engines: int
    max_instances: int
    placements: tuple[MigPlacement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MigInstanceFacts:
    """A GPU instance that exists. Without a compute instance `compute_instance_id` and `uuid` are None."""

    gpu: PciAddress
    placement: MigPlacement
    gpu_instance_id: int
    compute_instance_id: int | None
    uuid: MigUUID | None


class PcieLink(StrEnum):
    """The way between two PCI devices, nearest first, in the words of `nvidia-smi topo -m`."""

    SAME_SWITCH = "PIX"  # at most one PCIe switch between them
    SWITCHES = "PXB"  # several, and no host bridge
    HOST_BRIDGE = "PHB"
    SAME_NODE = "NODE"  # several host bridges of one NUMA node
    SYSTEM = "SYS"  # across NUMA nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class CardSurroundings:
    """What sysfs and NVML tell of a card's neighbours and its use by the kernel; "" and None where nothing is known.

    `nvlink_clique` is the lowest PCI address among the cards that reach each other over NVLink.
    """

    kernel_driver: str = ""
    drm_card: str = ""
    drm_render: str = ""
    nearest_nic: PciAddress | None = None
    nearest_nic_link: PcieLink | None = None
    nvlink_clique: PciAddress | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VfioFacts:
    """A card that can be passed through: PCI ids such as 0x10de, bytes of its 64-bit memory BARs (a power of two)."""

    vendor_id: str
    device_id: str
    addressable_memory: int
    iommufd: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """One GPU as NVML and sysfs describe it. Memory in bytes; `numa_node` and `pcie_root` are None when unknown.

    `vfio` is None where the card can't be passed through; `only_vfio`: an administrator bound it to VFIO, so it serves
    nothing else.
    """

    pci_address: PciAddress
    uuid: GpuUUID
    minor: int
    product_name: str
    brand: str
    architecture: str
    compute_capability: tuple[int, int]
    driver_version: str
    cuda_driver_version: tuple[int, int]
    memory: int
    numa_node: int | None
    pcie_root: str | None
    mig_mode_change: MigModeChange
    mig_enabled: bool
    compute_mode: ComputeMode
    profiles: tuple[MigProfileFacts, ...]
    instances: tuple[MigInstanceFacts, ...]
    surroundings: CardSurroundings = CardSurroundings()
    vfio: VfioFacts | None = None
    only_vfio: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainCardFacts:
    """One card of AMD or Intel as sysfs describes it; it serves whole and nothing else.

    Memory in bytes, 0 where nothing tells it. `driver_version` is a semantic version, None when unknown.
    """

    pci_address: PciAddress
    vendor: Vendor
    uuid: GpuUUID
    product_name: str
    driver_version: str | None
    memory: int
    numa_node: int | None
    pcie_root: str | None
    surroundings: CardSurroundings = CardSurroundings()


type CardFacts = GpuFacts | PlainCardFacts  # every card of the node, whoever told of it


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process on a card, or on the GPU instance at that placement. Clients of MPS are told from all others."""

    pid: int
    placement: MigPlacement | None
    mps_client: bool


@dataclass(frozen=True, slots=True)
class DeviceNode:
    """A character device as a container is to have it."""

    path: str
    major: int
    minor: int
