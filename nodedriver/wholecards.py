"""What the device of a card of AMD or Intel says of itself. Pure.

It carries every key that a device of NVIDIA's has, empty or false where there is nothing to say: a class that reads a
missing key aborts the scheduling of its pod, whatever other devices there are.
"""

from __future__ import annotations

from dra.objects import DeviceAttribute
from nodedriver.attributes import around, text, where
from nodedriver.facts import DeviceType, PlainCardFacts, Vendor

_BRANDS = {Vendor.AMD: "AMD", Vendor.INTEL: "Intel"}
_NO_VERSION = "0.0.0"


def attributes(card: PlainCardFacts) -> dict[str, DeviceAttribute]:
    """The attributes of the whole card."""
    texts = {
        "vendor": card.vendor,
        "deviceType": DeviceType.PHYSICAL,
        "productName": card.product_name,
        "brand": _BRANDS[card.vendor],
        "architecture": "",
        "uuid": card.uuid,
        "migProfile": "",
    }
    truths = {"cudaReady": False, "drmReady": True, "vfioReady": False}
    versions = {
        "cudaComputeCapability": _NO_VERSION,
        "cudaDriverVersion": _NO_VERSION,
        "driverVersion": card.driver_version or _NO_VERSION,
    }
    return {
        **{name: text(value) for name, value in texts.items()},
        **{name: DeviceAttribute(bool_=value) for name, value in truths.items()},
        **{name: DeviceAttribute(version=value) for name, value in versions.items()},
        **where(card),
        **around(card.surroundings),
    }
