"""What is known of GPU classes and allowed to a person, as wishes are judged by it. Values only.

A GPU class is what one asks for; resource claims name the DeviceClass that serves it, with its selectors beside.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from claims.wish.values import Mode
from dra.objects.gpuclass import GPUClassDevices, GPUClassSpec
from dra.quantity import Quantity
from gpuinventory.gpuclasses import Offer, keys_of

# Feature gates that decide what a claim can say.
PRIORITIZED_LIST, TAINTS, CAPACITY = "DRAPrioritizedList", "DRADeviceTaints", "DRAConsumableCapacity"
EXTENDED = "DRAExtendedResource"
PARTS: Final = frozenset({Mode.SHARE, Mode.TIMESLICED})  # what consumes a capacity

OPEN: Final = GPUClassSpec(title="", device_class=GPUClassDevices())
"""What holds for a class of which no administrator said anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassFacts:
    """What is known of a GPU class. `named` is its DeviceClass, "" for one of the same name; `selectors` come on top.

    `largest_memory` is the most that any device it could give has, in bytes. `offer` is what its devices can be asked
    for, None where none is published. `spec` bounds what may be asked; `fault` keeps every request from being served.
    """

    name: str
    named: str = ""
    selectors: tuple[str, ...] = ()
    driver: str | None = None
    extended_resource: str | None = None
    largest_memory: Quantity | None = None
    offer: Offer | None = None
    spec: GPUClassSpec = OPEN
    fault: str = ""

    @property
    def device_class(self) -> str:
        """The DeviceClass that a device request names."""
        return self.named or self.name

    @property
    def configurable(self) -> bool:
        """Whether its driver takes the GpuConfig that the files carry."""
        return keys_of(self.driver or "").gpu_config

    @property
    def share_capacity(self) -> str:
        """The capacity that a share of its devices consumes, in percent."""
        portion = self.offer.share if self.offer else None
        return portion.name if portion else keys_of(self.driver or "").share


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What the cluster and the person's teams allow; `classes` by the name of the GPU class. `lacking` says in words
    what the cluster itself can't do, by the feature gate that is off. `today` is none where days are not judged.
    """

    namespaces: frozenset[str]
    classes: Mapping[str, ClassFacts]
    lacking: Mapping[str, str] = field(default_factory=dict)
    today: date | None = None
