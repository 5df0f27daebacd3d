"""What the production door to NVML says of a stand-in machine, for slices of nodes that have no driver of their own."""

from __future__ import annotations

from nodedriver.facts import GpuFacts
from nodedriver.nvml import Nvml
from simulator.silicon import nvml
from simulator.silicon.tree import Tree


def facts_of(tree: Tree) -> tuple[GpuFacts, ...]:
    """The GPUs of that machine. NVML is one library per process: a process asks about one machine only."""
    nvml.install(tree.state)
    door = Nvml(library=None, sys_root=tree.sys)
    try:
        return door.facts()
    finally:
        door.close()
