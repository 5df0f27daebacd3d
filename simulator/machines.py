"""Slices of nodes whose driver does not run here: what the production code would publish for a stand-in machine.

NVML is one library per process: a process asks about one machine at a time, and must not hold it open otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import NAMESPACE_OID, uuid5

from dra.objects import OwnerReference, ResourceSlice
from dra.slices import PoolContent, changes
from nodedriver.config import TIME_SLICES
from nodedriver.facts import GpuFacts, GpuUUID
from nodedriver.inventory import EVERY_FEATURE, InventoryRules, take_inventory
from nodedriver.nvml import Nvml
from simulator.silicon import nvml
from simulator.silicon.fleet import initialise
from simulator.silicon.tree import Tree


def facts_of(tree: Tree) -> tuple[GpuFacts, ...]:
    """The GPUs of that machine."""
    nvml.install(tree.state)
    door = Nvml(library=None, sys_root=tree.sys)
    try:
        return door.facts()
    finally:
        door.close()


def facts_of_machine(machine: str) -> tuple[GpuFacts, ...]:
    """The GPUs of a machine of that file in `scenarios/`."""
    with TemporaryDirectory() as folder:
        return facts_of(initialise(Path(folder) / "machine", machine))


def slices_for(driver_name: str, node: OwnerReference, facts: Sequence[GpuFacts]) -> tuple[ResourceSlice, ...]:
    """What the driver would publish for a node with the same cards under UUIDs of its own; `node` owns the slices."""
    own = tuple(replace(gpu, uuid=GpuUUID(f"GPU-{uuid5(NAMESPACE_OID, f'{node.name}/{gpu.uuid}')}")) for gpu in facts)
    ranks = {gpu.pci_address: rank for rank, gpu in enumerate(own)}
    # Nobody is there to reset a card, so nothing is published that would have to be waited for.
    features = replace(EVERY_FEATURE, waiting=False)
    slices = take_inventory(InventoryRules(driver_name, TIME_SLICES), own, ranks, features=features).slices
    return changes(PoolContent(driver=driver_name, node=node.name, owner=node, slices=slices), ()).create
