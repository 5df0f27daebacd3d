"""DeviceClasses as the request form offers them: the class's own words, without a promise about what fits."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dra.kube.requests import DEVICE_CLASSES
from dra.objects import DeviceClass, decode
from gpuinventory.models import ClusterObject, Device

_DRIVER = re.compile(r'device\.driver\s*==\s*["\']([^"\']+)["\']')


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceClassView:
    """One class: its CEL text, the driver that the text names ("" if none), the extended resource it answers for."""

    name: str
    expressions: tuple[str, ...]
    driver: str
    extended_resource_name: str
    configured: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFacts:
    """Devices of one driver that look alike: how many there are, not whether a class selects them."""

    driver: str
    product: str
    device_type: str
    mig_profile: str
    memory: int


def device_classes() -> tuple[DeviceClassView, ...]:
    """Every DeviceClass by name. One query."""
    rows = ClusterObject.objects.filter(kind=DEVICE_CLASSES.kind).order_by("name")
    return tuple(_view(decode(bytes(row.body), DeviceClass)) for row in rows)


def device_facts(driver: str) -> tuple[DeviceFacts, ...]:
    """The different devices that a driver publishes, largest first; of every driver with "". One query."""
    rows = Device.objects.exclude(state="missing")
    rows = rows.filter(pool__driver=driver) if driver else rows
    columns = ("pool__driver", "product", "device_type", "mig_profile", "memory")
    return tuple(
        DeviceFacts(driver=found, product=product, device_type=device_type, mig_profile=profile, memory=memory)
        for found, product, device_type, profile, memory in rows.values_list(*columns)
        .distinct()
        .order_by("pool__driver", "product", "-memory", "mig_profile")
    )


def _view(device_class: DeviceClass) -> DeviceClassView:
    expressions = tuple(each.cel.expression for each in device_class.spec.selectors if each.cel)
    named = (match[1] for expression in expressions for match in _DRIVER.finditer(expression))
    return DeviceClassView(
        name=device_class.metadata.name,
        expressions=expressions,
        driver=next(named, ""),
        extended_resource_name=device_class.spec.extended_resource_name or "",
        configured=bool(device_class.spec.config),
    )
