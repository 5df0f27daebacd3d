"""The feature gates that decide how kube-scheduler allocates devices and reads their selectors.

A gate keeps its Kubernetes name without the `DRA` before it, in snake_case. Defaults are those of kube-scheduler
without flags, from `pkg/features/kube_features.go` of 1.37. Neither locks nor dependencies of gates are checked here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Final, Literal

from dra.errors import UnknownFeatureError

type Release = Literal["1.36", "1.37"]
type Allocator = Literal["stable", "incubating", "experimental"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """Which gates are on. Without arguments: kube-scheduler 1.37 as it comes.

    `fractional_capacity_range` is beta in 1.37 but on only where the minimum compatibility version is 1.37, and that is
    1.36 unless a flag says otherwise.
    """

    admin_access: bool = True
    consumable_capacity: bool = True
    derived_attributes: bool = False
    device_binding_conditions: bool = True
    device_compatibility_groups: bool = False
    device_taint_rules: bool = True
    device_taints: bool = True
    fractional_capacity_range: bool = False
    list_type_attributes: bool = False
    optional_node_operations: bool = False
    partitionable_devices: bool = True
    prioritized_list: bool = True
    resource_claim_device_status: bool = True
    scheduler_filter_timeout: bool = True

    @classmethod
    def of_release(cls, release: Release) -> Features:
        """The defaults of that release; UnknownFeatureError for any other release."""
        if release not in _DEFAULTS:
            raise UnknownFeatureError(
                f"the gates of Kubernetes {release} are not known: choose one of {', '.join(_DEFAULTS)}"
            )
        return _DEFAULTS[release]

    def with_gates(self, gates: Mapping[str, bool]) -> Features:
        """The same with gates switched by their Kubernetes names; UnknownFeatureError names one that is not known."""
        unknown = sorted(gates.keys() - _FIELDS.keys())
        if unknown:
            raise UnknownFeatureError(f"feature gate {unknown[0]!r} is not known: it is none of {', '.join(_FIELDS)}")
        return replace(self, **{_FIELDS[name]: on for name, on in gates.items()})

    @classmethod
    def gates(cls) -> frozenset[str]:
        """The Kubernetes names of all gates that are told apart here."""
        return frozenset(_FIELDS)

    @property
    def binding_conditions(self) -> bool:
        """Whether binding conditions count: two gates make one feature of the allocator (`AllocatorFeatures`)."""
        return self.device_binding_conditions and self.resource_claim_device_status

    @property
    def allocator(self) -> Allocator:
        """The implementation that kube-scheduler picks: the most stable one that has all that is on.

        From `structured.NewAllocator` and each implementation's `SupportedFeatures`.
        """
        if (
            self.derived_attributes
            or self.device_compatibility_groups
            or self.list_type_attributes
            or self.optional_node_operations
        ):
            return "experimental"
        if self.binding_conditions or self.consumable_capacity or self.fractional_capacity_range:
            return "incubating"
        return "stable"


# DRAAdminAccess: admin_access. Kubernetes writes camel case without acronyms behind the prefix.
_FIELDS: Final = {
    "DRA" + re.sub(r"(?:^|_)(\w)", lambda match: match[1].upper(), field.name): field.name for field in fields(Features)
}
_DEFAULTS: Final[dict[str, Features]] = {
    # DRADeviceTaintRules is beta but off: it depends on an API version that is not served by default.
    "1.36": Features(device_taint_rules=False),
    "1.37": Features(),
}
