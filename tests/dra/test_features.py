"""The gates of two releases and the allocator they choose.

Expected values are facts of `pkg/features/kube_features.go` and of `SupportedFeatures` in `structured/internal` (1.37).
"""

from __future__ import annotations

import pytest

from dra.errors import UnknownFeatureError
from dra.features import Features

ON_IN_BOTH = {
    "DRAAdminAccess", "DRAConsumableCapacity", "DRADeviceBindingConditions", "DRADeviceTaints",
    "DRAPartitionableDevices", "DRAPrioritizedList", "DRAResourceClaimDeviceStatus", "DRASchedulerFilterTimeout",
}  # fmt: skip
OFF_IN_BOTH = {
    "DRADerivedAttributes", "DRADeviceCompatibilityGroups", "DRAFractionalCapacityRange", "DRAListTypeAttributes",
    "DRAOptionalNodeOperations",
}  # fmt: skip


@pytest.mark.parametrize(("release", "taint_rules"), [("1.36", False), ("1.37", True)])
def test_the_gates_of_a_release(release: str, taint_rules: bool) -> None:  # noqa: FBT001  # a table's columns
    gates = dict.fromkeys(ON_IN_BOTH, True) | dict.fromkeys(OFF_IN_BOTH, False) | {"DRADeviceTaintRules": taint_rules}
    features = Features.of_release(release)  # type: ignore[arg-type]
    assert features.with_gates(gates) == features
    for name, on in gates.items():
        assert features.with_gates({name: not on}) != features


def test_1_37_is_the_default() -> None:
    assert Features() == Features.of_release("1.37")


@pytest.mark.parametrize(
    ("gates", "allocator"),
    [
        ({}, "incubating"),
        ({"DRADerivedAttributes": True}, "experimental"),
        ({"DRADeviceCompatibilityGroups": True}, "experimental"),
        ({"DRAListTypeAttributes": True}, "experimental"),
        ({"DRAOptionalNodeOperations": True}, "experimental"),
        ({"DRAConsumableCapacity": False}, "incubating"),
        ({"DRADeviceBindingConditions": False}, "incubating"),
        ({"DRAConsumableCapacity": False, "DRADeviceBindingConditions": False}, "stable"),
        ({"DRAConsumableCapacity": False, "DRAResourceClaimDeviceStatus": False}, "stable"),
        (
            {
                "DRAConsumableCapacity": False,
                "DRADeviceBindingConditions": False,
                "DRAFractionalCapacityRange": True,
            },
            "incubating",
        ),
        (
            {
                "DRAConsumableCapacity": False,
                "DRADeviceBindingConditions": False,
                "DRAListTypeAttributes": True,
            },
            "experimental",
        ),
    ],
)
def test_the_most_stable_allocator_that_has_all_gates(gates: dict[str, bool], allocator: str) -> None:
    assert Features().with_gates(gates).allocator == allocator


def test_an_unknown_gate_or_release_is_named() -> None:
    with pytest.raises(UnknownFeatureError, match=r"'DRAMixins' is not known: it is none of DRAAdminAccess, "):
        Features().with_gates({"DRAMixins": True})
    with pytest.raises(UnknownFeatureError, match=r"Kubernetes 1\.33 are not known: choose one of 1\.36, 1\.37"):
        Features.of_release("1.33")  # type: ignore[arg-type]
