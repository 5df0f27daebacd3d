"""What the devices of a class can be asked for: whole ones, slices by profile, shares, slots, and their memory. Pure.

Only what is published counts; a class without devices offers nothing, and nothing is known of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from dra.allocation import Shape
from dra.capacity import Capacity
from gpuinventory.gpuclasses.fleetshapes import FleetShape
from gpuinventory.gpuclasses.traits import Traits, keys_of, traits_of

SLOTS: Final = "slots"
_MEMORY: Final = "memory"


@dataclass(frozen=True, slots=True)
class Part:
    """Slices of one profile. `memory` is the least that one of them has, in bytes, 0 where none says it."""

    profile: str
    memory: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Portion:
    """The capacity that a portion of a device consumes, by its name, and its memory, if that is consumed as well.

    `sizes` is the memory of the devices that give such portions, in bytes, ascending.
    """

    name: str
    capacity: Capacity
    memory: Capacity | None
    sizes: tuple[int, ...]

    @property
    def takes_all_memory(self) -> bool:
        """Whether a portion that names no memory consumes some or all of it, so that the next one finds less."""
        if self.memory is None:
            return False
        policy = self.memory.policy
        return policy is None or policy.default is None or policy.default.nano > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What can be asked for. `wholes`: some device is more than a slice. `sizes`: memory of devices, in bytes,
    ascending. `parts`: profiles, the smallest first. `share` is counted in percent, `slots` in slots of time.
    """

    drivers: tuple[str, ...]
    wholes: bool
    sizes: tuple[int, ...]
    parts: tuple[Part, ...]
    share: Portion | None
    slots: Portion | None


def offer_of(taken: Sequence[FleetShape]) -> Offer | None:
    """What these devices can be asked for; None where there are none."""
    if not taken:
        return None
    shapes = [each.shape for each in taken]
    kinds = [traits_of(each) for each in shapes]
    return Offer(
        drivers=tuple(dict.fromkeys(each.driver for each in kinds)),
        wholes=any(each.mode != "slice" for each in kinds),
        sizes=_sizes(kinds),
        parts=_parts(kinds),
        share=_portion(shapes, [keys_of(each.driver).share for each in shapes]),
        slots=_portion(shapes, [SLOTS] * len(shapes)),
    )


def _sizes(kinds: Iterable[Traits]) -> tuple[int, ...]:
    return tuple(sorted({each.memory for each in kinds if each.memory}))


def _parts(kinds: Iterable[Traits]) -> tuple[Part, ...]:
    least: dict[str, int] = {}
    for each in kinds:
        if each.mode == "slice" and each.profile is not None:
            least[each.profile.value] = min(each.memory, least.get(each.profile.value, each.memory))
    return tuple(Part(profile, memory) for profile, memory in sorted(least.items(), key=lambda item: item[::-1]))


def _portion(shapes: Sequence[Shape], names: Sequence[str]) -> Portion | None:
    """The portion that the first of these devices gives which gives any."""
    giving = [(shape, name) for shape, name in zip(shapes, names, strict=True) if _gives(shape, name)]
    if not giving:
        return None
    shape, name = giving[0]
    sizes = _sizes(traits_of(each) for each, own in giving if own == name)
    return Portion(name=name, capacity=shape.capacities[name], memory=shape.capacities.get(_MEMORY), sizes=sizes)


def _gives(shape: Shape, name: str) -> bool:
    return shape.allow_multiple and name in shape.capacities
