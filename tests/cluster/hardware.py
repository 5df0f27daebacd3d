"""Slices of nodes that have no driver of their own: what the production code would publish for a stand-in machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from dra.objects import OwnerReference, to_json
from dra.slices import PoolContent, changes
from nodedriver.facts import GpuFacts, GpuUUID
from nodedriver.inventory import take_inventory
from nodedriver.nvml import Nvml
from simulator.silicon import nvml
from simulator.silicon.tree import Tree
from tests.cluster.cluster import Cluster


def facts_of(tree: Tree) -> tuple[GpuFacts, ...]:
    """The GPUs of that machine. NVML is one library per process: a process asks about one machine at a time."""
    nvml.install(tree.state)
    door = Nvml(library=None, sys_root=tree.sys)
    try:
        return door.facts()
    finally:
        door.close()


def slices_for(cluster: Cluster, driver_name: str, node: str, facts: Sequence[GpuFacts]) -> list[Mapping[str, Any]]:
    """What the driver would publish for a node with the same cards under UUIDs of its own. The Node must exist."""
    own = tuple(replace(gpu, uuid=GpuUUID(f"GPU-{uuid5(NAMESPACE_OID, f'{node}/{gpu.uuid}')}")) for gpu in facts)
    ranks = {gpu.pci_address: rank for rank, gpu in enumerate(own)}
    uid = cluster.call("GET", f"/api/v1/nodes/{node}")["metadata"]["uid"]
    owner = OwnerReference(api_version="v1", kind="Node", name=node, uid=uid, controller=True)
    slices = take_inventory(driver_name, own, ranks).slices
    pool = PoolContent(driver=driver_name, node=node, owner=owner, slices=slices)
    return [to_json(slice_) for slice_ in changes(pool, ()).create]
