"""What the kubelet is told of each device's health (KEP-4680), from what ails its card. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from nodedriver.health.ailments import Ailment
from nodedriver.health.xids import Severity


class Wellness(StrEnum):
    """The protocol's three words."""

    UNKNOWN = "unknown"
    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"


@dataclass(frozen=True, slots=True)
class DeviceHealth:
    """One published device. `message` goes into the pod's status; the API server cuts it at 1,024 characters."""

    device: str
    wellness: Wellness
    message: str = ""


def health_of(device: str, ailments: Sequence[Ailment]) -> DeviceHealth:
    """Unhealthy is a device whose card must be reset or serviced, or whose MPS daemon is not ready.
    Unknown is one whose errors can't be heard, or whose MPS daemon nobody tells of.

    A notice that asks for nothing leaves it healthy; the message says all that is known in each case.
    """
    message = "; ".join(str(each) for each in ailments)
    return DeviceHealth(device, _wellness(ailments), message)


def unwatched(device: str, vendor: str) -> DeviceHealth:
    """A device of a card whose errors nobody tells this driver."""
    return DeviceHealth(device, Wellness.UNKNOWN, f"the node driver does not hear of errors of cards of {vendor}")


def _wellness(ailments: Sequence[Ailment]) -> Wellness:
    certain = {each.severity for each in ailments if not each.is_untold}
    if not certain.isdisjoint((Severity.DAEMON, Severity.RESET, Severity.NODE)):
        return Wellness.UNHEALTHY
    return Wellness.UNKNOWN if any(each.is_untold for each in ailments) else Wellness.HEALTHY
