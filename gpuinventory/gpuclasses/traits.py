"""What a device is called by its driver: product, MIG profile or partition, kind, memory. One table, one row a driver.

Sources: the drivers' documentation and the slices that they publish. A driver that is not in the table is read by the
names that several drivers share, and so is still listed. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dra.allocation import Shape
from dra.errors import InvalidQuantityError
from dra.objects.gpuclass import GPUMode
from dra.quantity import parse_quantity


@dataclass(frozen=True, slots=True)
class Keys:
    """Attributes and capacities of one driver, the first that a device has counts; "" where there is none.

    `share` is the capacity that a share of a device consumes, counted in percent. `gpu_config` says whether the driver
    takes a GpuConfig with a strategy, as NVIDIA's and our own do, the latter under any name.
    """

    product: Sequence[str]
    profile: str = ""
    type_: str = ""
    memory: Sequence[str] = ("memory",)
    share: str = "sharePercent"
    gpu_config: bool = False


@dataclass(frozen=True, slots=True)
class Trait:
    """An attribute of the driver's own domain, and its text."""

    key: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What is known of a device; a trait is None where it does not publish it, memory (bytes) 0.

    `shares`: it is given in percent (`sharePercent`, as our node driver publishes it).
    """

    driver: str
    product: Trait | None
    profile: Trait | None
    type_: Trait | None
    memory: int
    shares: bool = False

    @property
    def mode(self) -> GPUMode:
        """How such a device is given, as far as its type or profile tell."""
        if self.type_ is not None and self.type_.value.lower() in _MODES:
            return _MODES[self.type_.value.lower()]
        return "slice" if self.profile is not None and self.profile.value.lower() not in _WHOLE_PROFILES else "whole"


_OURS: Final = Keys(("productName", "device"), "migProfile", "deviceType", gpu_config=True)
KNOWN: Final[Mapping[str, Keys]] = {
    "gpu.portico.dev": _OURS,
    "gpu.deckhouse.io": _OURS,
    "gpu.nvidia.com": Keys(("productName",), "profile", "type", ("memory", "addressableMemory"), gpu_config=True),
    "gpu.amd.com": Keys(("productName",), "partitionProfile", "type"),
    "gpu.intel.com": Keys(("model", "pciId")),
    "gaudi.intel.com": Keys(("model",)),
    "hami-core-gpu.project-hami.io": Keys(("productName",), "", "type", share="cores"),
    "gpu.example.com": Keys(("model",)),
    "tpu.google.com": Keys(("tpuGen",)),
}
_SHARED_NAMES: Final = Keys(
    ("productName", "product", "model", "name"), "migProfile", "deviceType", ("memory", "vram"), gpu_config=True
)
_MODES: Final[Mapping[str, GPUMode]] = {
    "physical": "whole", "gpu": "whole", "mig": "slice", "timesliced": "timesliced", "vfio": "vfio",
    "hami-gpu": "share", "amdgpu-partition": "slice",
}  # fmt: skip
SHARE: Final = "sharePercent"
_SAYS_NOTHING: Final = frozenset({"Unknown"})  # Intel: no name for that PCI id
_WHOLE_PROFILES: Final = frozenset({"spx_nps1"})  # AMD: one partition that is the whole card


def keys_of(driver: str) -> Keys:
    """What that driver calls things; the shared names for one that is not known."""
    return KNOWN.get(driver, _SHARED_NAMES)


def traits_of(shape: Shape) -> Traits:
    """What is known of devices of that shape."""
    keys = keys_of(shape.driver)
    return Traits(
        driver=shape.driver,
        product=_first(shape, keys.product),
        profile=_first(shape, (keys.profile,)),
        type_=_first(shape, (keys.type_,)),
        memory=_memory(shape, keys.memory),
        shares=shape.allow_multiple and SHARE in shape.device.capacity,
    )


def _first(shape: Shape, names: Sequence[str]) -> Trait | None:
    for name in filter(None, names):
        for key in (name, f"{shape.driver}/{name}"):
            attribute = shape.attributes.get(key)
            if attribute is not None and attribute.string and attribute.string not in _SAYS_NOTHING:
                return Trait(name, attribute.string)
    return None


def _memory(shape: Shape, names: Sequence[str]) -> int:
    for key in (key for name in names for key in (name, f"{shape.driver}/{name}")):
        capacity = shape.device.capacity.get(key)
        if capacity is not None:
            try:
                return parse_quantity(capacity.value).value
            except InvalidQuantityError:
                return 0
    return 0
