"""What the API server would refuse of a ResourceSlice (`ValidateResourceSlice` of Kubernetes 1.37).

Rules that compare with the stored object are left out, and so are those of gates that are off by default, among
them DRAFractionalCapacityRange: steps are counted in whole units, fractions rounded up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from dra.errors import InvalidSemverError
from dra.names import is_dns_subdomain
from dra.objects.device import (
    CapacityRange,
    CapacityRequestPolicy,
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
)
from dra.objects.nodeselector import NodeSelector, selector_faults
from dra.objects.reading import pointer_of
from dra.objects.resourceslice import ResourceSlice, ResourceSliceSpec
from dra.objects.validate_fields import (
    Fault,
    Faults,
    binding_condition_faults,
    driver_faults,
    label_name_faults,
    meta_faults,
    pool_faults,
    qualified_name_faults,
    quantity_faults,
    quantity_of,
    size_faults,
    taint_faults,
    unique_faults,
)
from dra.quantity import Quantity
from dra.semver import parse_semver

MAX_DEVICES: Final = 128
MAX_ADVANCED_DEVICES: Final = 64  # once one has taints, counters or list attributes
MAX_COUNTER_SETS: Final = 8
MAX_COUNTERS: Final = 32  # of a set, and of one consumption
MAX_CONSUMPTIONS: Final = 2
MAX_ATTRIBUTES_AND_CAPACITIES: Final = 32
MAX_ATTRIBUTE_VALUES: Final = 48
MAX_TAINTS: Final = 16
MAX_VALID_VALUES: Final = 10
MAX_TEXT: Final = 64  # bytes of a string or version attribute
_MAX_INT64: Final = Quantity.of(2**63 - 1)


def slice_faults(slice_: ResourceSlice) -> Faults:
    """All faults of the slice, in the order of its fields."""
    spec = slice_.spec
    yield from meta_faults(slice_.metadata)
    yield from driver_faults(spec.driver, "/spec/driver")
    yield from pool_faults(spec.pool.name, "/spec/pool/name")
    if spec.pool.generation < 0:
        yield Fault("/spec/pool/generation", spec.pool.generation, "must be zero or more")
    if spec.pool.resource_slice_count <= 0:
        yield Fault("/spec/pool/resourceSliceCount", spec.pool.resource_slice_count, "must be more than zero")
    yield from _node_faults(spec)
    if spec.shared_counters and spec.devices:
        yield Fault("/spec", ("sharedCounters", "devices"), "must have only one of sharedCounters and devices")
    yield from size_faults(spec.devices, _most_devices(spec.devices), "/spec/devices")
    yield from unique_faults(spec.devices, lambda device: device.name, "/spec/devices")
    for index, device in enumerate(spec.devices):
        yield from _device_faults(device, spec, "/spec/devices" + pointer_of(index))
    yield from size_faults(spec.shared_counters, MAX_COUNTER_SETS, "/spec/sharedCounters")
    yield from unique_faults(spec.shared_counters, lambda counter_set: counter_set.name, "/spec/sharedCounters")
    for index, counter_set in enumerate(spec.shared_counters):
        yield from _counter_set_faults(counter_set, "/spec/sharedCounters" + pointer_of(index))


def _most_devices(devices: Iterable[Device]) -> int:
    advanced = any(device.taints or device.consumes_counters or _has_lists(device) for device in devices)
    return MAX_ADVANCED_DEVICES if advanced else MAX_DEVICES


def _has_lists(device: Device) -> bool:
    return any(isinstance(attribute.value, tuple) for attribute in device.attributes.values())


def _node_faults(spec: ResourceSliceSpec) -> Faults:
    chosen = {
        "nodeName": spec.node_name is not None,
        "nodeSelector": spec.node_selector is not None,
        "allNodes": spec.all_nodes,
        "perDeviceNodeSelection": spec.per_device_node_selection,
    }
    yield from _exactly_one(chosen, "/spec")
    yield from _node_choice_faults(spec.node_name, spec.node_selector, "/spec")
    if spec.node_selector is not None and len(spec.node_selector.node_selector_terms) != 1:
        number = len(spec.node_selector.node_selector_terms)
        yield Fault("/spec/nodeSelector/nodeSelectorTerms", number, "must have exactly one term")


def _exactly_one(chosen: Mapping[str, bool], at: str) -> Faults:
    names = tuple(name for name, is_set in chosen.items() if is_set)
    if len(names) != 1:
        yield Fault(at, names, "must have exactly one of " + ", ".join(chosen))


def _node_choice_faults(node_name: str | None, node_selector: NodeSelector | None, at: str) -> Faults:
    if node_name is not None and not is_dns_subdomain(node_name):
        yield Fault(at + "/nodeName", node_name, "must be the name of a node, a DNS subdomain")
    for pointer, requirement, rule in selector_faults(node_selector) if node_selector else ():
        yield Fault(f"{at}/nodeSelector{pointer}", requirement.key, f"of operator {requirement.operator!r} {rule}")


def _device_faults(device: Device, spec: ResourceSliceSpec, at: str) -> Faults:
    yield from label_name_faults(device.name, at + "/name")
    yield from _attribute_faults(device, at)
    for name, capacity in device.capacity.items():
        place = at + pointer_of("capacity", name)
        yield from qualified_name_faults(name, place)
        yield from _capacity_faults(capacity, place, shared=device.allow_multiple_allocations)
    yield from size_faults(device.taints, MAX_TAINTS, at + "/taints")
    for index, taint in enumerate(device.taints):
        yield from taint_faults(taint, at + pointer_of("taints", index))
    yield from size_faults(device.consumes_counters, MAX_CONSUMPTIONS, at + "/consumesCounters")
    yield from unique_faults(device.consumes_counters, lambda each: each.counter_set, at + "/consumesCounters")
    for index, consumption in enumerate(device.consumes_counters):
        yield from _consumption_faults(consumption, at + pointer_of("consumesCounters", index))
    yield from _device_node_faults(device, at, per_device=spec.per_device_node_selection)
    yield from binding_condition_faults(device.binding_conditions, device.binding_failure_conditions, at)


def _device_node_faults(device: Device, at: str, *, per_device: bool) -> Faults:
    chosen = {
        "nodeName": device.node_name is not None,
        "nodeSelector": device.node_selector is not None,
        "allNodes": device.all_nodes,
    }
    if per_device:
        yield from _exactly_one(chosen, at)
        yield from _node_choice_faults(device.node_name, device.node_selector, at)
    elif any(chosen.values()):
        names = tuple(name for name, is_set in chosen.items() if is_set)
        yield Fault(at, names, "may choose nodes only where perDeviceNodeSelection is true")


def _attribute_faults(device: Device, at: str) -> Faults:
    total = len(device.attributes) + len(device.capacity)
    if total > MAX_ATTRIBUTES_AND_CAPACITIES:
        rule = f"must have at most {MAX_ATTRIBUTES_AND_CAPACITIES} attributes and capacities together"
        yield Fault(at, total, rule)
    values = sum(
        len(attribute.value) if isinstance(attribute.value, tuple) else 1 for attribute in device.attributes.values()
    )
    if values > MAX_ATTRIBUTE_VALUES:
        yield Fault(at, values, f"must have at most {MAX_ATTRIBUTE_VALUES} attribute values, items of lists counted")
    for name, attribute in device.attributes.items():
        place = at + pointer_of("attributes", name)
        yield from qualified_name_faults(name, place)
        yield from _value_faults(attribute, place)


def _value_faults(attribute: DeviceAttribute, at: str) -> Faults:
    values = {
        "int": attribute.int_, "bool": attribute.bool_, "string": attribute.string, "version": attribute.version,
        "ints": attribute.ints, "bools": attribute.bools, "strings": attribute.strings, "versions": attribute.versions,
    }  # fmt: skip
    yield from _exactly_one({name: value is not None for name, value in values.items()}, at)
    for name, value in values.items():
        if value == () and isinstance(value, tuple):
            yield Fault(f"{at}/{name}", (), "must not be empty")
    texts = [("string", attribute.string), ("version", attribute.version)]
    texts += [(f"strings/{index}", text) for index, text in enumerate(attribute.strings or ())]
    texts += [(f"versions/{index}", text) for index, text in enumerate(attribute.versions or ())]
    for name, text in texts:
        yield from _text_faults(text, f"{at}/{name}", version=name.startswith("version"))


def _text_faults(text: str | None, at: str, *, version: bool) -> Faults:
    if text is None:
        return
    if len(text.encode()) > MAX_TEXT:
        yield Fault(at, text, f"must have at most {MAX_TEXT} bytes")
    try:
        if version:
            parse_semver(text)
    except InvalidSemverError:
        yield Fault(at, text, "must be a semantic version such as 1.2.3")


def _capacity_faults(capacity: DeviceCapacity, at: str, *, shared: bool) -> Faults:
    yield from quantity_faults(capacity.value, at + "/value")
    policy = capacity.request_policy
    if policy is None:
        return
    place = at + "/requestPolicy"
    if not shared:
        yield Fault(place, None, "may stand only on a device with allowMultipleAllocations")
    whole = quantity_of(capacity.value)
    if whole is not None:
        yield from _policy_faults(policy, whole, place)


def _policy_faults(policy: CapacityRequestPolicy, whole: Quantity, at: str) -> Faults:
    unreadable = list(_policy_quantity_faults(policy, at))
    yield from unreadable
    if unreadable:
        return
    if policy.valid_values and policy.valid_range:
        yield Fault(at, ("validValues", "validRange"), "must have only one of validValues and validRange")
        return
    default = quantity_of(policy.default)
    if default is None:
        if policy.valid_values or policy.valid_range:
            yield Fault(at + "/default", None, "is required beside validValues or validRange")
        return
    if policy.valid_values:
        yield from _valid_values_faults(policy, default, whole, at + "/validValues")
    if policy.valid_range is not None:
        yield from _valid_range_faults(policy.valid_range, default, whole, at + "/validRange")


def _policy_quantity_faults(policy: CapacityRequestPolicy, at: str) -> Faults:
    bounds = policy.valid_range or CapacityRange()
    named = {
        "default": policy.default, "validRange/min": bounds.min, "validRange/max": bounds.max,
        "validRange/step": bounds.step,
    } | {f"validValues/{index}": text for index, text in enumerate(policy.valid_values)}  # fmt: skip
    for name, text in named.items():
        if text is not None:
            yield from quantity_faults(text, f"{at}/{name}")


def _valid_values_faults(policy: CapacityRequestPolicy, default: Quantity, whole: Quantity, at: str) -> Faults:
    values = [value for text in policy.valid_values if (value := quantity_of(text)) is not None]
    yield from size_faults(values, MAX_VALID_VALUES, at)
    yield from unique_faults(values, lambda value: value.value, at)
    if values != sorted(values):
        yield Fault(at, policy.valid_values, "must ascend")
    for index, value in enumerate(values):
        if value > whole:
            yield Fault(at + pointer_of(index), str(value), f"must be at most the capacity, {whole}")
    if default not in values:
        yield Fault(at, str(default), "must contain the default")


def _valid_range_faults(bounds: CapacityRange, default: Quantity, whole: Quantity, at: str) -> Faults:
    low, high = quantity_of(bounds.min), quantity_of(bounds.max)
    if low is None:
        yield Fault(at + "/min", None, "is required in a range")
        return
    if low > whole:
        yield Fault(at + "/min", bounds.min, f"must be at most the capacity, {whole}")
    if default < low:
        yield Fault(at + "/default", str(default), f"must be at least min, {low}")
    if high is not None and not low <= high <= whole:
        yield Fault(at + "/max", bounds.max, f"must lie between min, {low}, and the capacity, {whole}")
    if high is not None and default > high:
        yield Fault(at + "/default", str(default), f"must be at most max, {high}")
    step = quantity_of(bounds.step)
    if step is not None:
        yield from _step_faults(step, low, [each for each in (default, high) if each is not None], whole, at)


def _step_faults(step: Quantity, low: Quantity, ends: list[Quantity], whole: Quantity, at: str) -> Faults:
    if step.nano <= 0:
        yield Fault(at + "/step", str(step), "must be more than zero")
        return
    if low + step > whole:
        yield Fault(at + "/step", str(step), f"must leave one step above min within the capacity, {whole}")
    for value in (step, low, *ends):
        if value.nano < 0 or value > _MAX_INT64:
            yield Fault(at, str(value), f"must lie between zero and {_MAX_INT64}")
            return
    for value in ends:
        if (value.value - low.value) % step.value:
            yield Fault(at + "/step", str(value), f"must be a multiple of {step} from {low}, fractions rounded up")


def _counter_set_faults(counter_set: CounterSet, at: str) -> Faults:
    yield from label_name_faults(counter_set.name, at + "/name")
    yield from _counter_faults(counter_set.counters, at + "/counters")


def _consumption_faults(consumption: DeviceCounterConsumption, at: str) -> Faults:
    yield from label_name_faults(consumption.counter_set, at + "/counterSet")
    yield from _counter_faults(consumption.counters, at + "/counters")


def _counter_faults(counters: Mapping[str, Counter], at: str) -> Faults:
    if not counters:
        yield Fault(at, {}, "must not be empty")
    yield from size_faults(list(counters), MAX_COUNTERS, at)
    for name, counter in counters.items():
        yield from label_name_faults(name, at + pointer_of(name))
        yield from quantity_faults(counter.value, at + pointer_of(name, "value"))
