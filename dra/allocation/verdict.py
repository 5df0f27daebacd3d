"""What can be said of a device for a request whatever else is allocated: selectors, node, capacity, taints. Pure.

One verdict holds for all devices of a shape, unless a selector reads identifiers. Faults are kept in the verdict and
raised only when the search meets such a device, as the allocator does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dra.allocation.request import AllocationError, RequestPlan, plan_fault
from dra.allocation.result import Failed
from dra.allocation.shapes import Identity, PublishedSlice, Shape, is_identifier
from dra.allocation.view import NodeView, PoolView
from dra.capacity import CapacityError
from dra.cel import CelCompileError, CelRuntimeError, Program, compile_expression
from dra.errors import InvalidObjectError
from dra.features import Features
from dra.names import DeviceID
from dra.objects import DeviceSelector
from dra.pools import device_reaches
from dra.quantity import Quantity
from dra.taints import untolerated

_HINT: Final = (
    ". consider using CEL optional chaining (.? followed by orValue()) "
    "or guarding the check with has() for optional fields"
)


@dataclass(frozen=True, slots=True)
class SelectorFault:
    """A selector that aborts. `class_name` is "" for a selector of the request; no device where it does not compile."""

    class_name: str
    number: int
    text: str
    on_device: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What holds of a device for one request.

    `selectable`: selectors and node select it. `amounts`: what it would consume of each capacity, None where it never
    could. `allowed`: no taint and no gate is in the way. `fault`: looking at the device ends the allocation.
    """

    selectable: bool = False
    amounts: Mapping[str, Quantity] | None = None
    allowed: bool = False
    fault: SelectorFault | CapacityError | InvalidObjectError | None = None

    @property
    def usable(self) -> bool:
        """Whether the device serves as far as this goes."""
        return self.selectable and self.allowed and self.amounts is not None


_NO: Final = Verdict()


class Judge:
    """Gives verdicts for one request on one node, each computed once."""

    def __init__(self, plan: RequestPlan, view: NodeView) -> None:
        self.plan = plan
        self.features: Features = view.features
        self._node = view
        self._by_shape: dict[Shape, Verdict] = {}
        self._by_device: dict[tuple[PublishedSlice, int], Verdict] = {}
        self._programs = [
            *_programs(plan.device_class.spec.selectors, plan.device_class.metadata.name),
            *_programs(plan.request.selectors, ""),
        ]
        self.reads_identity = any(reads for _, _, _, reads in self._programs)

    def of(self, pool: PoolView, slice_: PublishedSlice, index: int) -> Verdict:
        """The verdict on one device."""
        shape = slice_.layout.shapes[index]
        if self.reads_identity and slice_.identities:
            key = (slice_, index)
            verdict = self._by_device.get(key)
            if verdict is None:
                verdict = self._by_device[key] = self._judge(pool, slice_, shape, slice_.identities[index])
            return verdict
        verdict = self._by_shape.get(shape)
        if verdict is None:
            verdict = self._by_shape[shape] = self._judge(pool, slice_, shape, ())
        return verdict

    def _judge(self, pool: PoolView, slice_: PublishedSlice, shape: Shape, identity: Identity) -> Verdict:
        device = shape.device
        if device.binding_conditions and not self.features.binding_conditions:
            return _NO
        selected = self._selects(shape, identity)
        if isinstance(selected, SelectorFault):
            return Verdict(fault=selected)
        try:
            if not selected or (slice_.layout.per_device_node_selection and not device_reaches(device, pool.viewpoint)):
                return _NO
        except InvalidObjectError as error:
            return Verdict(fault=error)
        return self._fitting(shape)

    def _fitting(self, shape: Shape) -> Verdict:
        """The verdict on a device that is selected."""
        allowed = self._allowed(shape)
        if not self.features.consumable_capacity:
            return Verdict(selectable=True, amounts={}, allowed=allowed)
        fractional = self.features.fractional_capacity_range
        try:
            amounts = shape.demand(self.plan.amounts, fractional=fractional)
        except CapacityError as error:
            return Verdict(selectable=True, fault=error)
        return Verdict(selectable=True, amounts=amounts, allowed=allowed)

    def _allowed(self, shape: Shape) -> bool:
        if shape.groups and not self.features.partitionable_devices:
            return False
        return not self.features.device_taints or untolerated(shape.taints, self.plan.request.tolerations) is None

    def _selects(self, shape: Shape, identity: Identity) -> bool | SelectorFault:
        for class_name, number, program, reads in self._programs:
            if isinstance(program, CelCompileError):
                return SelectorFault(class_name, number, f"CEL compile error: {program}", on_device=False)
            try:
                if not (program.matches(shape.cel_of(identity)) if reads and identity else shape.matches(program)):
                    return False
            except CelRuntimeError as error:
                text = f"CEL runtime error: {error}{_HINT if 'no such key:' in str(error) else ''}"
                return SelectorFault(class_name, number, text, on_device=True)
        return True

    def abort(self, verdict: Verdict, device: DeviceID, *, of_all: bool) -> AllocationError:
        """The error that a verdict's fault is on this device; `of_all` while `All` devices are gathered."""
        found = verdict.fault
        if isinstance(found, SelectorFault):
            return _selector_error(found, self.plan, device)
        if isinstance(found, InvalidObjectError):
            return AllocationError(Failed(kind="fatal", code="node_selector", message=str(found), device=device))
        if isinstance(found, CapacityError) and found.crashes:
            return AllocationError(Failed(kind="panic", code="capacity", message=str(found), device=device))
        # The allocator names the device alone there (`validateDeviceRequest`).
        named = device.device if of_all else device
        return plan_fault("capacity", self.plan, f"checking capacity for device {named}: {found}", device=device)


type _Numbered = tuple[str, int, Program | CelCompileError, bool]
"""Class, number among the selectors, the selector, whether it reads identifiers."""


def _programs(selectors: tuple[DeviceSelector, ...], class_name: str) -> list[_Numbered]:
    compiled = map(_compiled, selectors)
    return [(class_name, number, program, _reads_identity(program)) for number, program in enumerate(compiled)]


def _compiled(selector: DeviceSelector) -> Program | CelCompileError:
    try:
        return compile_expression(selector.cel.expression if selector.cel else "")
    except CelCompileError as error:
        return error


def _reads_identity(program: Program | CelCompileError) -> bool:
    if isinstance(program, CelCompileError):
        return False
    reads = program.reads
    return reads is None or any(kind == "attributes" and is_identifier(name) for kind, _, name in reads)


def _selector_error(found: SelectorFault, plan: RequestPlan, device: DeviceID) -> AllocationError:
    where = f"class {found.class_name}" if found.class_name else f"claim {plan.claim_name}"
    on = f" on device {device}" if found.on_device else ""
    return AllocationError(
        Failed(
            kind="fatal",
            code="selector",
            message=f"{where}: selector #{found.number}{on}: {found.text}",
            resource_claim=plan.claim_name,
            device_request=plan.name,
            device_class=found.class_name,
            selector=found.number,
            device=device,
        )
    )
