"""Which MIG placements may stand together on one card, and in which order they are best offered.

Pure interval arithmetic over memory slices; sizes and limits come from the caller, who asked NVML or the table in
`dra.mig.profiles`. The scheduler takes the first device that fits, so the published order is the placement policy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedProfile:
    """A GPU instance profile at one of its legal starts; `start` and `size` count memory slices."""

    profile: str
    start: int
    size: int
    compute_slices: int
    max_instances: int

    @property
    def memory_slices(self) -> range:
        """The memory slices that an instance here holds."""
        return range(self.start, self.start + self.size)


def device_name_form(profile: str) -> str:
    """The profile as part of a device name (a DNS label): without dots and plus signs; a minus stays a minus."""
    return profile.replace(".", "").replace("+", "")


def overlap(one: PlacedProfile, other: PlacedProfile) -> bool:
    """Whether the two need a memory slice in common."""
    return one.start < other.start + other.size and other.start < one.start + one.size


def exclude(one: PlacedProfile, other: PlacedProfile, *, compute_slices: int) -> bool:
    """Whether a card of so many compute slices can't hold both (MIG User Guide, "Partitioning")."""
    only_once = one.profile == other.profile and one.max_instances == 1
    return only_once or overlap(one, other) or one.compute_slices + other.compute_slices > compute_slices


def best_first(choices: Iterable[PlacedProfile]) -> tuple[PlacedProfile, ...]:
    """All choices of one card in the order to publish them: small profiles first, and of one profile the start that
    leaves most other choices open (ties: the higher start, which keeps the low ones together for large profiles).

    The card's compute slices are those of its largest profile.
    """
    every = tuple(choices)
    total = max((choice.compute_slices for choice in every), default=0)

    def rank(choice: PlacedProfile) -> tuple[int, int, int, str, int, int]:
        left = sum(not exclude(choice, other, compute_slices=total) for other in every)
        size = (choice.size, choice.compute_slices)
        return *size, -choice.max_instances, choice.profile, -left, -choice.start

    return tuple(sorted(every, key=rank))
