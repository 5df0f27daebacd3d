"""PhysicalGPU: one card of a node (portico.dev/v1alpha1, cluster scoped), written by the node driver alone.

Its schema and its one rule stand in the chart's CRD. Capabilities last, the state is that of the moment.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from dra.objects.meta import ApiStruct, ObjectMeta, QuantityText
from dra.objects.resourceclaim import Condition

PHYSICAL_GPU_API_VERSION: Final = "portico.dev/v1alpha1"

type MigModeChangeWord = Literal["Impossible", "WhenIdle", "NeedsReset"]
type CardModeWord = Literal["Whole", "MIG", "VFIO", "Maintenance"]


class MigProfileCapability(ApiStruct, frozen=True, kw_only=True):
    """A GPU instance profile; `starts` are the memory slices where an instance of `memory_slices` can begin."""

    name: str
    memory: QuantityText | None = None
    compute_slices: int = 0
    multiprocessors: int = 0
    max_instances: int = 0
    memory_slices: int = 0
    starts: tuple[int, ...] = ()


class PhysicalGPUCapabilities(ApiStruct, frozen=True, kw_only=True):
    """What the card can do, whatever it does now; None where that is not known. `vfio`: it has an IOMMU group."""

    vendor: str = ""
    product_name: str = ""
    architecture: str = ""
    compute_capability: str = ""
    memory: QuantityText | None = None
    mig_mode_change: MigModeChangeWord | None = None
    mig_profiles: tuple[MigProfileCapability, ...] = ()
    vfio: bool | None = None


class PhysicalGPUTopology(ApiStruct, frozen=True, kw_only=True):
    """Where it sits; None and "" where nothing is known. `nearest_nic_link` as `nvidia-smi topo -m` says it."""

    numa_node: int | None = None
    pcie_root: str = ""
    nearest_nic: str = msgspec.field(name="nearestNIC", default="")
    nearest_nic_link: str = msgspec.field(name="nearestNICLink", default="")
    nvlink_clique: str = ""
    drm_card: str = ""
    drm_render: str = ""


class PhysicalGPUHolder(ApiStruct, frozen=True, kw_only=True):
    """A resource claim that was prepared on the card, with its devices of that card."""

    namespace: str
    name: str
    uid: str
    devices: tuple[str, ...] = ()


class PhysicalGPUState(ApiStruct, frozen=True, kw_only=True):
    """What the card is now; `mig_instances` as profile@first memory slice."""

    mode: CardModeWord | None = None
    uuid: str = ""
    kernel_driver: str = ""
    driver_version: str = ""
    mig_instances: tuple[str, ...] = ()
    held_by: tuple[PhysicalGPUHolder, ...] = ()


class PhysicalGPUPublished(ApiStruct, frozen=True, kw_only=True):
    """What stands of it in the ResourceSlices."""

    driver: str = ""
    pool: str = ""
    devices: tuple[str, ...] = ()


class PhysicalGPUStatus(ApiStruct, frozen=True, kw_only=True):
    """What the node driver found."""

    capabilities: PhysicalGPUCapabilities = PhysicalGPUCapabilities()
    topology: PhysicalGPUTopology = PhysicalGPUTopology()
    current_state: PhysicalGPUState = PhysicalGPUState()
    published: PhysicalGPUPublished = PhysicalGPUPublished()
    conditions: tuple[Condition, ...] = ()


class PhysicalGPUSpec(ApiStruct, frozen=True, kw_only=True):
    """Which card it is."""

    node_name: str
    pci_address: str


class PhysicalGPU(ApiStruct, frozen=True, kw_only=True):
    """One card. `status` is None until the driver has written it."""

    api_version: str = PHYSICAL_GPU_API_VERSION
    kind: str = "PhysicalGPU"
    metadata: ObjectMeta
    spec: PhysicalGPUSpec
    status: PhysicalGPUStatus | None = None


def physical_gpu_name(node: str, pci_address: str) -> str:
    """The one name that the CRD allows for this card."""
    return f"{node}-{pci_address.replace(':', '-').replace('.', '-')}"
