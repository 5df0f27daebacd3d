"""A GPU class as pages and the form show it. Data only."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from dra.objects.gpuclass import GPUClassSpec
from gpuinventory.gpuclasses.fleetshapes import FleetShape
from gpuinventory.gpuclasses.traits import Traits


class Made(StrEnum):
    """Where a class comes from."""

    BY_ADMIN = "admin"
    DERIVED = "derived"


@dataclass(frozen=True, slots=True, kw_only=True)
class GPUClassView:
    """One class. A request of it names `device_class` and adds `selectors`, which only derived classes have.

    `traits` are the different kinds of its devices, `devices` their number, `taken` their shapes; all are of what its
    selectors match.
    `fault` is what keeps every request of it from being served, "" for nothing.
    """

    name: str
    made: Made
    device_class: str
    spec: GPUClassSpec
    selectors: tuple[str, ...] = ()
    traits: tuple[Traits, ...] = ()
    devices: int = 0
    taken: tuple[FleetShape, ...] = field(default=(), compare=False, repr=False)
    fault: str = ""

    @property
    def products(self) -> tuple[str, ...]:
        """Names of its products, each once."""
        named = (each.product.value for each in self.traits if each.product is not None)
        return tuple(dict.fromkeys(named))

    @property
    def profiles(self) -> tuple[str, ...]:
        """MIG profiles or partitions of its devices, each once."""
        named = (each.profile.value for each in self.traits if each.profile is not None)
        return tuple(dict.fromkeys(named))

    @property
    def drivers(self) -> tuple[str, ...]:
        """The drivers of its devices, each once."""
        return tuple(dict.fromkeys(each.driver for each in self.traits))

    @property
    def memory(self) -> tuple[int, int]:
        """The least and the most memory of its devices in bytes; zeros where none says it."""
        known = [each.memory for each in self.traits if each.memory]
        return (min(known), max(known)) if known else (0, 0)

    @property
    def share(self) -> int:
        """Percent of a device that one request takes by default, where the class gives shares only; else 0."""
        return self.spec.share.default if self.spec.mode == "share" and any(each.shares for each in self.traits) else 0

    def allows(self, namespace: str) -> bool:
        """Whether that namespace may ask for it."""
        return not self.spec.namespaces or namespace in self.spec.namespaces
