"""What can be had now, class by class, in numbers: free, most on one node, nodes, waiting. No name of any team.

The classes are those of the catalogue; the numbers come from the fleet in memory, asked once for each state of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dra.pools import PoolState
from gpuinventory.gpuclasses import GPUClassView, Numbers
from gpuinventory.models import Pool
from gpuinventory.selectors.gpuclasses import catalogue, class_numbers
from gpuinventory.selectors.held import current


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


def capacity() -> Capacity:
    """Queries: those of `held.current`, one for the pools, and one for the catalogue."""
    held = current()
    updating = Pool.objects.filter(state__in=[PoolState.INCOMPLETE, PoolState.INVALID]).count()
    return Capacity(
        classes=tuple(ClassCapacity(view, class_numbers(held, view)) for view in catalogue(held).views),
        nodes=len(held.snapshot.nodes),
        updating=updating,
        unread=len(held.problems),
        revision=held.revision,
        as_of=held.as_of,
    )
