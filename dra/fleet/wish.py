"""What is asked of a fleet: resource claims, and the pod that would use them as far as nodes care. Values only.

Without a pod only devices are looked at. What nodes have left for pods is no part of the wish: it comes as `Usage`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from dra.objects import ResourceClaim
from dra.objects.nodeselector import NodeSelector
from dra.quantity import Quantity

# What the pods of a node request in all, by node name and resource name; `pods` is their number.
type Usage = Mapping[str, Mapping[str, Quantity]]

NO_USAGE: Usage = MappingProxyType({})
_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Toleration:
    """A pod's toleration of node taints (core/v1): an empty key stands for all keys, an empty effect for all."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodNeeds:
    """What a pod asks of its node. `affinity` is requiredDuringSchedulingIgnoredDuringExecution.

    `requests` are the sums over its containers as quantity texts (`cpu`, `memory`, extended resources); the pod's own
    place among `pods` is counted without being named.
    """

    node_selector: Mapping[str, str] = field(default=_NOTHING)
    affinity: NodeSelector | None = None
    tolerations: tuple[Toleration, ...] = ()
    requests: Mapping[str, str] = field(default=_NOTHING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The unallocated resource claims of one pod, to be granted together, and the pod's own needs if known."""

    resource_claims: tuple[ResourceClaim, ...]
    pod: PodNeeds | None = None
