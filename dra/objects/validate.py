"""What the API server would refuse of the objects that Portico writes and reads, all faults at once.

Follows pkg/apis/resource/validation/validation.go of Kubernetes 1.37 with its default gates. Left out: whether a
selector compiles (`dra.cel`), and every rule that compares with a stored object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from dra.names import is_extended_resource_name
from dra.objects.deviceclass import DeviceClass
from dra.objects.devicetaintrule import DeviceTaintRule
from dra.objects.reading import pointer_of
from dra.objects.resourceclaim import (
    DeviceClaim,
    DeviceConstraint,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
)
from dra.objects.resourceslice import ResourceSlice
from dra.objects.validate_fields import (
    MAX_CONFIG,
    Fault,
    Faults,
    class_name_faults,
    driver_faults,
    label_faults,
    label_name_faults,
    meta_faults,
    opaque_faults,
    pool_faults,
    qualified_name_faults,
    quantity_faults,
    selector_list_faults,
    size_faults,
    taint_faults,
    toleration_faults,
    unique_faults,
)
from dra.objects.validate_slices import slice_faults

__all__ = ["Fault", "faults"]

MAX_REQUESTS: Final = 32
MAX_CONSTRAINTS: Final = 32
MAX_ALTERNATIVES: Final = 8

type Checked = DeviceClass | DeviceTaintRule | ResourceClaim | ResourceClaimTemplate | ResourceSlice
type _Names = Mapping[str, frozenset[str]]


def faults(checked: Checked) -> list[Fault]:
    """Every fault of the object, in the order of its fields; none means that the API server would take it."""
    match checked:
        case ResourceSlice():
            return list(slice_faults(checked))
        case DeviceClass():
            return list(_class_faults(checked))
        case ResourceClaim():
            return [*meta_faults(checked.metadata), *_claim_faults(checked.spec.devices, "/spec/devices")]
        case ResourceClaimTemplate():
            return list(_template_faults(checked))
        case DeviceTaintRule():
            return list(_rule_faults(checked))


def _class_faults(device_class: DeviceClass) -> Faults:
    spec = device_class.spec
    yield from meta_faults(device_class.metadata)
    yield from selector_list_faults(spec.selectors, "/spec/selectors")
    yield from size_faults(spec.config, MAX_CONFIG, "/spec/config")
    for index, config in enumerate(spec.config):
        yield from opaque_faults(config.opaque, f"/spec/config/{index}/opaque")
    name = spec.extended_resource_name
    if name is not None and not is_extended_resource_name(name):
        yield Fault("/spec/extendedResourceName", name, "must be an extended resource name such as example.com/gpu")


def _template_faults(template: ResourceClaimTemplate) -> Faults:
    yield from meta_faults(template.metadata)
    yield from label_faults(template.spec.metadata.labels, "/spec/metadata/labels")
    for name in ("name", "namespace", "uid"):
        value = getattr(template.spec.metadata, name)
        if value:
            yield Fault(f"/spec/metadata/{name}", value, "may not be set: only labels and annotations are")
    yield from _claim_faults(template.spec.spec.devices, "/spec/spec/devices")


def _rule_faults(rule: DeviceTaintRule) -> Faults:
    yield from meta_faults(rule.metadata)
    selector = rule.spec.device_selector
    if selector is not None and selector.driver is not None:
        yield from driver_faults(selector.driver, "/spec/deviceSelector/driver")
    if selector is not None and selector.pool is not None:
        yield from pool_faults(selector.pool, "/spec/deviceSelector/pool")
    if selector is not None and selector.device is not None:
        yield from label_name_faults(selector.device, "/spec/deviceSelector/device")
    yield from taint_faults(rule.spec.taint, "/spec/taint")


def _claim_faults(claim: DeviceClaim, at: str) -> Faults:
    names = {
        device_request.name: frozenset(sub.name for sub in device_request.first_available)
        for device_request in claim.requests
    }
    yield from size_faults(claim.requests, MAX_REQUESTS, at + "/requests")
    yield from unique_faults(claim.requests, lambda device_request: device_request.name, at + "/requests")
    for index, device_request in enumerate(claim.requests):
        yield from _request_faults(device_request, at + pointer_of("requests", index))
    yield from size_faults(claim.constraints, MAX_CONSTRAINTS, at + "/constraints")
    for index, constraint in enumerate(claim.constraints):
        place = at + pointer_of("constraints", index)
        yield from _reference_faults(constraint.requests, names, place + "/requests")
        yield from _constraint_faults(constraint, place)
    yield from size_faults(claim.config, MAX_CONFIG, at + "/config")
    for index, config in enumerate(claim.config):
        place = at + pointer_of("config", index)
        yield from _reference_faults(config.requests, names, place + "/requests")
        yield from opaque_faults(config.opaque, place + "/opaque")


def _request_faults(device_request: DeviceRequest, at: str) -> Faults:
    yield from label_name_faults(device_request.name, at + "/name")
    given = (device_request.exactly is not None, bool(device_request.first_available))
    if given.count(True) != 1:
        said = tuple(name for name, is_set in zip(("exactly", "firstAvailable"), given, strict=True) if is_set)
        yield Fault(at, said, "must have exactly one of exactly and firstAvailable")
        return
    if device_request.exactly is not None:
        yield from _devices_faults(device_request.exactly, at + "/exactly")
    alternatives = device_request.first_available
    yield from size_faults(alternatives, MAX_ALTERNATIVES, at + "/firstAvailable")
    yield from unique_faults(alternatives, lambda alternative: alternative.name, at + "/firstAvailable")
    for index, alternative in enumerate(alternatives):
        place = at + pointer_of("firstAvailable", index)
        yield from label_name_faults(alternative.name, place + "/name")
        yield from _devices_faults(alternative, place)


def _devices_faults(asked: ExactDeviceRequest, at: str) -> Faults:
    """A count of zero passes: the API server takes it for unset. So does 1 with mode All, which looks the same here."""
    yield from class_name_faults(asked.device_class_name, at + "/deviceClassName")
    yield from selector_list_faults(asked.selectors, at + "/selectors")
    match asked.allocation_mode:
        case "ExactCount":
            if asked.count < 0:
                yield Fault(at + "/count", asked.count, "must be more than zero")
        case "All":
            if asked.count not in {0, 1}:
                yield Fault(at + "/count", asked.count, "must not be set for mode All")
        case _:
            yield Fault(at + "/allocationMode", asked.allocation_mode, "must be one of ExactCount, All")
    yield from toleration_faults(asked.tolerations, at + "/tolerations")
    for name, text in (asked.capacity.requests if asked.capacity else {}).items():
        yield from quantity_faults(text, at + pointer_of("capacity", "requests", name))


def _constraint_faults(constraint: DeviceConstraint, at: str) -> Faults:
    """Of both attributes the API server looks at the first alone, and the allocator too."""
    kinds = {"matchAttribute": constraint.match_attribute, "distinctAttribute": constraint.distinct_attribute}
    given = {name: value for name, value in kinds.items() if value is not None}
    if not given:
        yield Fault(at, None, "must have one of matchAttribute and distinctAttribute")
    for name, value in list(given.items())[:1]:
        yield from qualified_name_faults(value, f"{at}/{name}", domain_required=True)


def _reference_faults(references: Sequence[str], names: _Names, at: str) -> Faults:
    yield from size_faults(references, MAX_REQUESTS, at)
    yield from unique_faults(references, str, at)
    for index, reference in enumerate(references):
        main, slash, sub = reference.partition("/")
        if main not in names or (slash and sub not in names[main]):
            yield Fault(at + pointer_of(index), reference, "must name a request, or a request and a subrequest by '/'")
