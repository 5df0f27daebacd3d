"""Nodes as far as pages show them: whether a pod can come."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from dra.kube.requests import NODES
from dra.objects import Node, decode
from gpuinventory.models import ClusterObject


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node and what keeps pods off it, "" when nothing does."""

    name: str
    note: str


def nodes_by_name(names: Collection[str]) -> dict[str, NodeView]:
    """The nodes that are known, by name. One query."""
    rows = ClusterObject.objects.filter(kind=NODES.kind, name__in=set(names))
    return {node.metadata.name: _view(node) for node in (decode(bytes(row.body), Node) for row in rows)}


def _view(node: Node) -> NodeView:
    if node.spec.unschedulable:
        return NodeView(node.metadata.name, "cordoned")
    return NodeView(node.metadata.name, "" if node.ready else "not ready")
