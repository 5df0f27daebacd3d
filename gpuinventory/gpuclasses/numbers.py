"""How much of a class can be had: one device or share of it asked of every node. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dra.allocation import Snapshot
from dra.fleet import Fleet, Wish
from dra.objects import (
    CapacityRequirements,
    CelSelector,
    DeviceClaim,
    DeviceRequest,
    DeviceSelector,
    ExactDeviceRequest,
    ObjectMeta,
    ResourceClaim,
    ResourceClaimSpec,
)
from gpuinventory.gpuclasses.traits import SHARE
from gpuinventory.gpuclasses.view import GPUClassView


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


def numbers_of(view: GPUClassView, snapshot: Snapshot, fleet: Fleet, waiting: Mapping[str, int]) -> Numbers:
    """The numbers of one class; shares of the class's default size are counted where it gives shares only."""
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
    shared = view.spec.mode == "share" and any(each.shares for each in view.traits)
    requests = {SHARE: str(view.spec.share.default)} if shared else {}
    exactly = ExactDeviceRequest(
        device_class_name=view.device_class,
        count=1,
        selectors=tuple(DeviceSelector(cel=CelSelector(expression=each)) for each in view.selectors),
        capacity=CapacityRequirements(requests=requests) if requests else None,
    )
    request = DeviceRequest(name="gpu", exactly=exactly)
    spec = ResourceClaimSpec(devices=DeviceClaim(requests=(request,)))
    return ResourceClaim(metadata=ObjectMeta(name=view.device_class), spec=spec)
