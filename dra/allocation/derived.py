"""Attributes that constraints look at: those that a device publishes, and those that a request derives by CEL. Pure.

Follows `lookupAttribute` of the experimental allocator: a derived attribute goes before a published one of its name.
"""

from __future__ import annotations

from dra.allocation.request import AllocationError, RequestPlan
from dra.allocation.result import Failed
from dra.allocation.shapes import Shape, is_identifier
from dra.allocation.view import DeviceView
from dra.cel.derived import compile_derived
from dra.cel.errors import CelCompileError, CelRuntimeError
from dra.constraints import lookup_attribute
from dra.objects import DeviceAttribute


def published_attribute(device: DeviceView, name: str) -> DeviceAttribute | None:
    """What the device publishes under the fully qualified name."""
    shape = device.shape
    attributes = shape.attributes_of(device.identity) if is_identifier(name) else shape.attributes
    return lookup_attribute(attributes, shape.driver, name)


class Attributes:
    """Looks attributes up for one allocation; each expression is evaluated once for each device."""

    def __init__(self) -> None:
        self._derived: dict[tuple[Shape, object, str], DeviceAttribute] = {}

    def of(self, plan: RequestPlan, device: DeviceView, name: str) -> DeviceAttribute | None:
        """What a constraint on `name` compares; AllocationError where an expression fails: that ends everything."""
        for derived in plan.request.derived_attributes:
            if derived.name == name:
                return self._evaluated(plan, device, name, derived.expression)
        return published_attribute(device, name)

    def _evaluated(self, plan: RequestPlan, device: DeviceView, name: str, expression: str) -> DeviceAttribute:
        key = (device.shape, device.identity, expression)
        known = self._derived.get(key)
        if known is None:
            try:
                cel = device.shape.cel_of(device.identity)
                known = self._derived[key] = compile_derived(expression).of(cel)
            except CelCompileError as error:
                raise _failed(plan, device, f"compile derived attribute {name} failed: {error}") from error
            except CelRuntimeError as error:
                text = f"evaluate derived attribute {name} on device {device.id} failed: {error}"
                raise _failed(plan, device, text) from error
        return known


def _failed(plan: RequestPlan, device: DeviceView, message: str) -> AllocationError:
    return AllocationError(
        Failed(
            kind="fatal",
            code="selector",
            message=message,
            resource_claim=plan.claim_name,
            device_request=plan.name,
            device=device.id,
        )
    )
