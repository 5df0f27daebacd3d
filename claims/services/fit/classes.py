"""What each device class has for a claim of one device: free now, free if nothing was in use, most on one node."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from claims.services.fit.idle import idle_answer
from dra.allocation import Snapshot
from dra.fleet import Wish
from dra.objects import (
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ObjectMeta,
    ResourceClaim,
    ResourceClaimSpec,
)
from gpuinventory.selectors.held import Held

_OWN = threading.local()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRoom:
    """Devices of a class, over all nodes. `fault` is why kube-scheduler would place no such pod, "" for none.

    Where not `bounded`, there are at least so many: some devices can be had without end.
    """

    free: int
    all: int
    bounded: bool
    largest: int
    nodes: int
    waiting: int
    fault: str


def class_rooms(held: Held, names: Iterable[str]) -> Mapping[str, ClassRoom]:
    """The room of each class by name; asked once for each snapshot."""
    known: tuple[Snapshot, dict[str, ClassRoom]] | None = getattr(_OWN, "known", None)
    if known is None or known[0] is not held.snapshot:
        known = _OWN.known = (held.snapshot, {})
    rooms = known[1]
    for name in names:
        if name not in rooms:
            rooms[name] = _room(held, name)
    return {name: rooms[name] for name in names}


def _room(held: Held, name: str) -> ClassRoom:
    wish = Wish(resource_claims=(_one_of(name),))
    answer = held.fleet.answer(held.snapshot, wish)
    idle = idle_answer(held.snapshot, wish)
    return ClassRoom(
        free=answer.total.count,
        all=idle.total.count,
        bounded=answer.total.bounded and idle.total.bounded,
        largest=answer.largest.count if answer.largest else 0,
        nodes=answer.fitting,
        waiting=held.waiting.get(name, 0),
        fault=answer.aborts[0].failed.message if answer.aborts else "",
    )


def _one_of(name: str) -> ResourceClaim:
    exactly = ExactDeviceRequest(device_class_name=name, count=1)
    request = DeviceRequest(name="gpu", exactly=exactly)
    return ResourceClaim(
        metadata=ObjectMeta(name=name), spec=ResourceClaimSpec(devices=DeviceClaim(requests=(request,)))
    )
