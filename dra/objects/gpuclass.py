"""GPUClass: what an administrator offers to people under one name (portico.dev/v1alpha1, cluster scoped).

Its schema and rules stand in the chart's CRD; a stored object has passed them, so that reading judges nothing again.
"""

from __future__ import annotations

from typing import Final, Literal

from dra.objects.deviceclass import DeviceClass, DeviceClassConfiguration, DeviceClassSpec, DeviceSelector
from dra.objects.meta import ApiStruct, ObjectMeta, OwnerReference, QuantityText

GPU_CLASS_API_VERSION: Final = "portico.dev/v1alpha1"

type GPUMode = Literal["any", "whole", "slice", "share", "timesliced", "vfio"]
type GPUClassState = Literal["open", "paused", "replaced"]


class GeneratedDeviceClass(ApiStruct, frozen=True, kw_only=True):
    """The DeviceClass that a GPUClass makes and owns; its name is that of the GPUClass."""

    selectors: tuple[DeviceSelector, ...]
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class GPUClassDevices(ApiStruct, frozen=True, kw_only=True):
    """Which DeviceClass serves: an existing one by name, or a generated one. Exactly one of both is set."""

    name: str | None = None
    generated: GeneratedDeviceClass | None = None


class CountBounds(ApiStruct, frozen=True, kw_only=True):
    """Devices of one request."""

    min: int = 1
    max: int = 32
    default: int = 1


class ShareBounds(ApiStruct, frozen=True, kw_only=True):
    """Percent of a device, in steps."""

    min: int = 5
    max: int = 100
    default: int = 100
    step: int = 5


class MemoryBounds(ApiStruct, frozen=True, kw_only=True):
    """Memory of each device, as quantities; None where nothing is said."""

    min: QuantityText | None = None
    max: QuantityText | None = None
    default: QuantityText | None = None


class GPUClassSpec(ApiStruct, frozen=True, kw_only=True):
    """What is offered, within which bounds, to whom, at what price, and whether it can be asked for now.

    `namespaces` empty means every namespace. `price_per_hour` is a decimal text in the currency of the installation,
    for one whole device. `order` sorts the catalogue, smallest first. `message` says why a class is paused.
    """

    title: str
    description: str = ""
    device_class: GPUClassDevices
    mode: GPUMode = "any"
    count: CountBounds = CountBounds()
    memory: MemoryBounds = MemoryBounds()
    share: ShareBounds = ShareBounds()
    namespaces: tuple[str, ...] = ()
    price_per_hour: str | None = None
    order: int = 0
    state: GPUClassState = "open"
    message: str = ""
    replaced_by: str | None = None


class GPUClass(ApiStruct, frozen=True, kw_only=True):
    """One class of the catalogue."""

    api_version: str = GPU_CLASS_API_VERSION
    kind: str = "GPUClass"
    metadata: ObjectMeta
    spec: GPUClassSpec

    @property
    def device_class_name(self) -> str:
        """The DeviceClass that a request of this class names."""
        return self.spec.device_class.name or self.metadata.name

    @property
    def owner_reference(self) -> OwnerReference:
        """How a generated DeviceClass names this object as its owner; the object must have been stored."""
        return OwnerReference(
            api_version=self.api_version, kind=self.kind, name=self.metadata.name, uid=self.metadata.uid
        )

    @property
    def generated(self) -> DeviceClass | None:
        """The DeviceClass to be made, owned by this object; None where an existing one serves."""
        made = self.spec.device_class.generated
        if made is None:
            return None
        return DeviceClass(
            metadata=ObjectMeta(name=self.metadata.name, owner_references=(self.owner_reference,)),
            spec=DeviceClassSpec(
                selectors=made.selectors, config=made.config, extended_resource_name=made.extended_resource_name
            ),
        )
