"""What can be had now, class by class, in numbers: free, most on one node, nodes, waiting. No name of any team.

The classes are those of the catalogue; the numbers come from the fleet in memory, asked once for each state of it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from dra.allocation import Snapshot
from dra.errors import DraError
from dra.kube.requests import GPU_CLASSES
from dra.objects import GPUClass, decode
from dra.pools import PoolState
from gpuinventory.gpuclasses import GPUClassView, Numbers, derive, numbers_of
from gpuinventory.models import ClusterObject, Pool
from gpuinventory.selectors.held import Held, current

_OWN = threading.local()


@dataclass(frozen=True, slots=True)
class ClassCapacity:
    """A class and its numbers."""

    view: GPUClassView
    numbers: Numbers

    @property
    def word(self) -> str:
        """The state of the class: broken before paused before full."""
        if self.view.fault or self.numbers.fault:
            return "broken"
        if self.view.spec.state != "open":
            return self.view.spec.state
        return "free" if self.numbers.free else "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """Every class. `updating` is the number of pools that are not read in full, so that numbers may be too low;
    `unread` that of objects that can't be read.
    """

    classes: tuple[ClassCapacity, ...]
    nodes: int
    updating: int
    unread: int
    revision: int
    as_of: datetime | None


def gpu_classes() -> tuple[GPUClass, ...]:
    """The GPUClass objects by name; one that can't be read is left out. One query."""
    rows = ClusterObject.objects.filter(kind=GPU_CLASSES.kind).order_by("name")
    return tuple(_readable(bytes(body) for body in rows.values_list("body", flat=True)))


def capacity() -> Capacity:
    """Queries: those of `held.current`, one for the pools, and one for GPUClasses when something changed."""
    held = current()
    updating = Pool.objects.filter(state__in=[PoolState.INCOMPLETE, PoolState.INVALID]).count()
    return Capacity(
        classes=_classes(held),
        nodes=len(held.snapshot.nodes),
        updating=updating,
        unread=len(held.problems),
        revision=held.revision,
        as_of=held.as_of,
    )


def _classes(held: Held) -> tuple[ClassCapacity, ...]:
    """Remembered by each thread for the fleet it last asked about; a `Fleet` is the thread's own, too."""
    known: tuple[Snapshot, int, tuple[ClassCapacity, ...]] | None = getattr(_OWN, "known", None)
    if known is not None and known[0] is held.snapshot and known[1] == held.revision:
        return known[2]
    views = derive(held.snapshot, gpu_classes())
    found = tuple(ClassCapacity(view, numbers_of(view, held.snapshot, held.fleet, held.waiting)) for view in views)
    _OWN.known = (held.snapshot, held.revision, found)
    return found


def _readable(bodies: Iterator[bytes]) -> Iterator[GPUClass]:
    for body in bodies:
        try:
            yield decode(body, GPUClass)
        except DraError:
            continue  # whoever edits classes is told there
