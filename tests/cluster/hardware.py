"""Slices of hollow nodes of a real cluster: what the production code would publish for a stand-in machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dra.objects import OwnerReference, to_json
from nodedriver.facts import GpuFacts
from simulator import machines
from simulator.machines import facts_of
from tests.cluster.cluster import Cluster


def slices_for(cluster: Cluster, driver_name: str, node: str, facts: Sequence[GpuFacts]) -> list[Mapping[str, Any]]:
    """What the driver would publish for a node with the same cards under UUIDs of its own. The Node must exist."""
    uid = cluster.call("GET", f"/api/v1/nodes/{node}")["metadata"]["uid"]
    owner = OwnerReference(api_version="v1", kind="Node", name=node, uid=uid, controller=True)
    return [to_json(slice_) for slice_ in machines.slices_for(driver_name, owner, facts)]


__all__ = ["facts_of", "slices_for"]
