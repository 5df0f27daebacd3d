"""Device taints: which of them keep a device from being allocated, and which devices a DeviceTaintRule selects.

Rules: KEP-5055; `taintPreventsAllocation` of the structured allocator, `ToleratesTaint` of
k8s.io/dynamic-resource-allocation/resourceclaim, `applyPatches` of its ResourceSlice tracker. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from dra.names import DeviceID
from dra.objects import DeviceTaint, DeviceTaintRule, DeviceToleration

# None and effects of a newer API prevent nothing.
PREVENTING: Final = frozenset({"NoSchedule", "NoExecute"})


def tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """Whether this toleration covers the taint: effect and key where given (also with Equal), then the operator."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case _:
            return False


def untolerated(taints: Iterable[DeviceTaint], tolerations: Sequence[DeviceToleration]) -> DeviceTaint | None:
    """The first taint that prevents allocation, or None: all taints must be tolerated."""
    for taint in taints:
        if taint.effect in PREVENTING and not any(tolerates(each, taint) for each in tolerations):
            return taint
    return None


def rule_concerns(rule: DeviceTaintRule, driver: str, pool: str) -> bool:
    """Whether the rule can select devices of this pool. No selector selects nothing, an empty one everything."""
    selector = rule.spec.device_selector
    if selector is None:
        return False
    return selector.driver in {None, driver} and selector.pool in {None, pool}


def rule_selects(rule: DeviceTaintRule, device: DeviceID) -> bool:
    """Whether the rule taints this device."""
    selector = rule.spec.device_selector
    return (
        selector is not None
        and rule_concerns(rule, device.driver, device.pool)
        and selector.device in {None, device.device}
    )
