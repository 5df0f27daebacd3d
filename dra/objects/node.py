"""Node, read for its name, readiness and what keeps pods off it (core/v1)."""

from __future__ import annotations

from dra.objects.meta import ApiStruct, ObjectMeta, QuantityText
from dra.objects.resourceclaim import Condition


class Taint(ApiStruct, frozen=True, kw_only=True):
    """A node taint."""

    key: str
    effect: str
    value: str = ""


class NodeSpec(ApiStruct, frozen=True, kw_only=True):
    """Whether new pods may come."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(ApiStruct, frozen=True, kw_only=True):
    """Conditions and what pods can be given; quantities as texts."""

    conditions: tuple[Condition, ...] = ()
    allocatable: dict[str, QuantityText] = {}
    declared_features: tuple[str, ...] = ()


class Node(ApiStruct, frozen=True, kw_only=True):
    """One node."""

    api_version: str = "v1"
    kind: str = "Node"
    metadata: ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def ready(self) -> bool:
        """Whether the kubelet's last word was Ready."""
        return any(condition.type == "Ready" and condition.status == "True" for condition in self.status.conditions)
