"""How many slices of each profile a class could give now: asked of the fleet, which knows what each card holds.

Slices of different profiles exclude each other, so the numbers don't add up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import SimpleNamespace

from dra.allocation import Snapshot
from dra.fleet import Wish
from dra.objects import (
    CelSelector,
    DeviceClaim,
    DeviceRequest,
    DeviceSelector,
    ExactDeviceRequest,
    ObjectMeta,
    ResourceClaim,
    ResourceClaimSpec,
)
from gpuinventory.gpuclasses import GPUClassView, keys_of
from gpuinventory.selectors.held import Held

_KEPT = SimpleNamespace()  # for all threads


def obtainable(fleet: Held, view: GPUClassView, profiles: Iterable[str]) -> Mapping[str, str]:
    """The number of each profile, as text ("at least 256" where counting stopped); asked once for each snapshot."""
    known: tuple[Snapshot, dict[tuple[str, str], str]] | None = getattr(_KEPT, "known", None)
    if known is None or known[0] is not fleet.snapshot:
        known = _KEPT.known = (fleet.snapshot, {})
    counts = known[1]
    for profile in profiles:
        if (view.name, profile) not in counts:
            counts[view.name, profile] = _count(fleet, view, profile)
    return {profile: counts[view.name, profile] for profile in profiles}


def _count(fleet: Held, view: GPUClassView, profile: str) -> str:
    total = fleet.fleet.answer(fleet.snapshot, Wish(resource_claims=(_one(view, profile),))).total
    return f"{total.count}" if total.bounded else f"at least {total.count}"


def _one(view: GPUClassView, profile: str) -> ResourceClaim:
    attribute = next((keys_of(driver).profile for driver in view.drivers), "") or "migProfile"
    is_profile = f'device.attributes[device.driver].?{attribute}.orValue("") == "{profile}"'
    selectors = tuple(DeviceSelector(cel=CelSelector(expression=each)) for each in (*view.selectors, is_profile))
    exactly = ExactDeviceRequest(device_class_name=view.device_class, count=1, selectors=selectors)
    spec = ResourceClaimSpec(devices=DeviceClaim(requests=(DeviceRequest(name="gpu", exactly=exactly),)))
    return ResourceClaim(metadata=ObjectMeta(name=view.name), spec=spec)
