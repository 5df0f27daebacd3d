"""GPU facts for tests, from the MIG table: a card of a model, at an address, in a mode."""

from __future__ import annotations

from dra.mig.profiles import MODELS, MigModel, MigProfile, ModeChange
from nodedriver.facts import (
    ComputeMode,
    GpuFacts,
    GpuUUID,
    MigModeChange,
    MigPlacement,
    MigProfileFacts,
    PciAddress,
)

MIB = 2**20
_CHANGES = {
    ModeChange.GPU_RESET: MigModeChange.NEEDS_RESET,
    ModeChange.IMMEDIATE_WHEN_IDLE: MigModeChange.WHEN_IDLE,
}


def card(name: str = "H100-80GB", *, bus: int = 0x18, mig_enabled: bool = False) -> GpuFacts:
    """A card of a model of the MIG table, on that PCI bus."""
    model = next(each for each in MODELS if each.name == name)
    return GpuFacts(
        pci_address=PciAddress(f"0000:{bus:02x}:00.0"),
        uuid=GpuUUID(f"GPU-00000000-0000-0000-0000-0000000000{bus:02x}"),
        minor=0,
        product_name=model.product_names[0],
        brand="Nvidia",
        architecture=model.architecture,
        compute_capability=model.compute_capability,
        driver_version="580.65.06",
        cuda_driver_version=(13, 0),
        memory=(model.total_memory_mib or 0) * MIB,
        numa_node=1,
        pcie_root=f"pci0000:{bus - 1:02x}",
        mig_mode_change=_CHANGES[model.mode_change],
        mig_enabled=mig_enabled,
        compute_mode=ComputeMode.DEFAULT,
        profiles=tuple(_profile(model, profile) for profile in model.profiles),
        instances=(),
    )


def _profile(model: MigModel, profile: MigProfile) -> MigProfileFacts:
    engines = profile.engines
    assert engines, f"{model.name} has no known engines"
    return MigProfileFacts(
        id=profile.id,
        name=profile.name,
        compute_slices=profile.compute_slices,
        memory=(profile.memory_mib or 0) * MIB,
        multiprocessors=profile.multiprocessors or 0,
        copy_engines=engines.copy,
        decoders=engines.decoder,
        encoders=engines.encoder,
        jpeg_engines=engines.jpeg,
        ofa_engines=engines.ofa,
        max_instances=profile.max_instances,
        placements=tuple(MigPlacement(profile.id, start, profile.memory_slices) for start in profile.starts),
    )
