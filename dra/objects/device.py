"""A device as a ResourceSlice publishes it: attributes, capacity, counters, taints (resource.k8s.io/v1 `Device`)."""

from __future__ import annotations

from typing import Literal

import msgspec

from dra.objects.meta import ApiStruct, Int64, QuantityText
from dra.objects.nodeselector import NodeSelector

type TaintEffect = Literal["None", "NoSchedule", "NoExecute"]


class DeviceAttribute(ApiStruct, frozen=True, kw_only=True):
    """One value: exactly one field is set. `version` is semver 2.0.0; lists need the gate DRAListTypeAttributes."""

    int_: Int64 | None = msgspec.field(name="int", default=None)
    bool_: bool | None = msgspec.field(name="bool", default=None)
    string: str | None = None
    version: str | None = None
    ints: tuple[Int64, ...] | None = None
    bools: tuple[bool, ...] | None = None
    strings: tuple[str, ...] | None = None
    versions: tuple[str, ...] | None = None

    @property
    def value(self) -> int | bool | str | tuple[int, ...] | tuple[bool, ...] | tuple[str, ...] | None:
        """The one value that is set, or None where a newer API has a kind that we do not know."""
        fields = (
            self.bool_, self.int_, self.string, self.version, self.bools, self.ints, self.strings, self.versions,
        )  # fmt: skip
        return next((value for value in fields if value is not None), None)


class CapacityRange(ApiStruct, frozen=True, kw_only=True):
    """A range of what one share may consume; quantities as texts."""

    min: QuantityText | None = None
    max: QuantityText | None = None
    step: QuantityText | None = None


class CapacityRequestPolicy(ApiStruct, frozen=True, kw_only=True):
    """How a request for a share is rounded (KEP-5075)."""

    default: QuantityText | None = None
    valid_range: CapacityRange | None = None
    valid_values: tuple[QuantityText, ...] = ()


class DeviceCapacity(ApiStruct, frozen=True, kw_only=True):
    """One capacity; the value is a quantity as text."""

    value: QuantityText
    request_policy: CapacityRequestPolicy | None = None


class Counter(ApiStruct, frozen=True, kw_only=True):
    """One counter; the value is a quantity as text."""

    value: QuantityText


class CounterSet(ApiStruct, frozen=True, kw_only=True):
    """Named counters that devices of one pool draw on (KEP-4815)."""

    name: str
    counters: dict[str, Counter] = {}


class DeviceCounterConsumption(ApiStruct, frozen=True, kw_only=True):
    """What a device draws from one counter set while it is allocated."""

    counter_set: str
    counters: dict[str, Counter] = {}
    compatibility_groups: tuple[str, ...] = ()


class DeviceTaint(ApiStruct, frozen=True, kw_only=True):
    """A taint set by the driver. An effect that we do not know acts like None (API rule)."""

    key: str
    effect: str
    value: str = ""
    time_added: str | None = None


class NodeAllocatableMapping(ApiStruct, frozen=True, kw_only=True):
    """How much of a node resource a device takes: `capacity_key` with its multiplier, or a multiplier per device."""

    capacity_key: str | None = None
    capacity_multiplier: QuantityText | None = None
    device_multiplier: QuantityText | None = None


class NodeAllocatableOverhead(ApiStruct, frozen=True, kw_only=True):
    """What each pod, and each container that refers to the claim, takes besides; quantities as texts."""

    per_pod: QuantityText | None = None
    per_container: QuantityText | None = None


class NodeAllocatableResource(ApiStruct, frozen=True, kw_only=True):
    """What an allocated device takes of one resource of its node (gate DRANodeAllocatableResources)."""

    mapping: NodeAllocatableMapping | None = None
    overhead: NodeAllocatableOverhead | None = None


class Device(ApiStruct, frozen=True, kw_only=True):
    """One device of a slice; its name is unique in the pool."""

    name: str
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool = False
    node_allocatable_resources: dict[str, NodeAllocatableResource] = {}

    def attribute(self, driver: str, identifier: str) -> object:
        """An attribute's value by its identifier in the driver's own domain, written with or without that domain."""
        found = self.attributes.get(identifier) or self.attributes.get(f"{driver}/{identifier}")
        return found.value if found else None
