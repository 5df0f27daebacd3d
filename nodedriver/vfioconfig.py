"""VfioDeviceConfig, the opaque parameters of a card for a virtual machine: what its fields say, and what holds when
class and claim both speak. Pure.

Fields and words are those of NVIDIA's VfioDeviceConfig, in our own group and in NVIDIA's alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from nodedriver.configfields import DeviceConfigError, Fields


class BackendPolicy(StrEnum):
    """By which interface of the kernel a virtual machine reaches the card; iommufd needs one that has it."""

    LEGACY_ONLY = "LegacyOnly"
    PREFER_IOMMUFD = "PreferIommuFD"


@dataclass(frozen=True, slots=True, kw_only=True)
class VfioConfig:
    """Which interface, and whether the container gets its own node (/dev/vfio/vfio, /dev/iommu) too. None: not said."""

    backend: BackendPolicy | None = None
    api_device: bool | None = None


def read_vfio_config(document: Fields) -> VfioConfig:
    """What `iommu` says; DeviceConfigError names the field."""
    iommu = document.inner("iommu", ("backendPolicy", "enableAPIDevice"))
    api_device = iommu.values.get("enableAPIDevice")
    if "enableAPIDevice" in iommu and not isinstance(api_device, bool):
        raise iommu.refuse("enableAPIDevice", "is not true or false")
    named = "backendPolicy" in iommu
    return VfioConfig(
        backend=BackendPolicy(iommu.must_be("backendPolicy", tuple(BackendPolicy))) if named else None,
        api_device=api_device if isinstance(api_device, bool) else None,
    )


def bound_by_class(of_class: VfioConfig, of_claim: VfioConfig) -> VfioConfig:
    """The claim may add to what the class says, and not change it. DeviceConfigError where it would."""
    _same("iommu.backendPolicy", of_class.backend, of_claim.backend)
    _same("iommu.enableAPIDevice", of_class.api_device, of_claim.api_device)
    return VfioConfig(
        backend=of_claim.backend if of_class.backend is None else of_class.backend,
        api_device=of_claim.api_device if of_class.api_device is None else of_class.api_device,
    )


def _same(field: str, of_class: object, of_claim: object) -> None:
    if None not in (of_class, of_claim) and of_class != of_claim:
        raise DeviceConfigError(
            f"{field}: the DeviceClass sets {of_class} and the ResourceClaim {of_claim}; the class binds, so leave the "
            "claim's out or make it the same"
        )
