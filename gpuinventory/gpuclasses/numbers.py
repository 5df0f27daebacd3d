"""How much of a class can be had: one device or share of it asked of every node that is open to new pods. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from dra.allocation import Snapshot
from dra.fleet import Fleet, Wish
from dra.objects import (
    CapacityRequirements,
    CelSelector,
    DeviceClaim,
    DeviceRequest,
    DeviceSelector,
    ExactDeviceRequest,
    Node,
    ObjectMeta,
    ResourceClaim,
    ResourceClaimSpec,
)
from gpuinventory.gpuclasses.traits import SHARE
from gpuinventory.gpuclasses.view import GPUClassView

_OF_KUBERNETES: Final = "node.kubernetes.io/"  # not-ready, unreachable, unschedulable, …
_CLOSING: Final = frozenset({"NoSchedule", "NoExecute"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """What is free now: `free` requests over the fleet (at least so many where not `bounded`), the largest count on one
    node, the nodes that fit one, and claims that wait for the DeviceClass. `fault` is why the scheduler gives up.
    """

    free: int
    bounded: bool
    largest: int
    nodes: int
    waiting: int
    fault: str = ""


def open_nodes(snapshot: Snapshot) -> Snapshot:
    """The same fleet without nodes that take no new pod of people: cordoned, or marked by Kubernetes itself.

    Taints that administrators set are not looked at: workloads of people who may use such nodes tolerate them.
    """
    closed = {name for name, node in snapshot.nodes.items() if _is_closed(node)}
    if not closed:
        return snapshot
    nodes = {name: node for name, node in snapshot.nodes.items() if name not in closed}
    return replace(snapshot, nodes=nodes)


def _is_closed(node: Node) -> bool:
    marks = (each for each in node.spec.taints if each.effect in _CLOSING and each.key.startswith(_OF_KUBERNETES))
    return node.spec.unschedulable or any(marks)


def numbers_of(view: GPUClassView, snapshot: Snapshot, fleet: Fleet, waiting: Mapping[str, int]) -> Numbers:
    """The numbers of one class over the nodes of the snapshot; shares of the class's default size are counted where it
    gives shares only.
    """
    answer = fleet.answer(snapshot, Wish(resource_claims=(claim_of(view),)))
    return Numbers(
        free=answer.total.count,
        bounded=answer.total.bounded,
        largest=answer.largest.count if answer.largest else 0,
        nodes=answer.fitting,
        waiting=waiting.get(view.device_class, 0),
        fault=answer.aborts[0].failed.message if answer.aborts else "",
    )


def claim_of(view: GPUClassView) -> ResourceClaim:
    """A claim for the least that one request of the class takes."""
    requests = {SHARE: str(view.share)} if view.share else {}
    exactly = ExactDeviceRequest(
        device_class_name=view.device_class,
        count=1,
        selectors=tuple(DeviceSelector(cel=CelSelector(expression=each)) for each in view.selectors),
        capacity=CapacityRequirements(requests=requests) if requests else None,
    )
    request = DeviceRequest(name="gpu", exactly=exactly)
    spec = ResourceClaimSpec(devices=DeviceClaim(requests=(request,)))
    return ResourceClaim(metadata=ObjectMeta(name=view.device_class), spec=spec)
