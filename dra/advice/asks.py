"""What is asked for, one entry per device request or alternative, with the class and amounts it is judged by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dra.capacity import Amounts
from dra.objects.deviceclass import DeviceClass
from dra.objects.resourceclaim import DeviceConstraint, DeviceRequest, ExactDeviceRequest, ResourceClaim
from dra.quantity import parse_quantity

ALL = "All"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One device request (`alternative` is None) or one alternative of it, by position in its resource claim.

    `device_class` is None where no class of that name exists.
    """

    resource_claim: ResourceClaim
    claim: int
    request: int
    alternative: int | None
    base: str
    name: str
    exact: ExactDeviceRequest
    device_class: DeviceClass | None
    requested: Amounts

    @property
    def takes_all(self) -> bool:
        """Whether it takes every matching device."""
        return self.exact.allocation_mode == ALL

    @property
    def constraints(self) -> tuple[tuple[int, DeviceConstraint], ...]:
        """Constraints of the resource claim that concern it, with their index."""
        return tuple(
            (index, constraint)
            for index, constraint in enumerate(self.resource_claim.spec.devices.constraints)
            if not constraint.requests or {self.base, self.name} & set(constraint.requests)
        )


def asks(resource_claims: Sequence[ResourceClaim], classes: Mapping[str, DeviceClass]) -> Iterator[Ask]:
    """Every device request and alternative, in the scheduler's order; InvalidQuantityError on a malformed amount."""
    for claim, resource_claim in enumerate(resource_claims):
        for request, device_request in enumerate(resource_claim.spec.devices.requests):
            for alternative, name, exact in _alternatives(device_request):
                yield Ask(
                    resource_claim=resource_claim,
                    claim=claim,
                    request=request,
                    alternative=alternative,
                    base=device_request.name,
                    name=name,
                    exact=exact,
                    device_class=classes.get(exact.device_class_name),
                    requested=_requested(exact),
                )


def _alternatives(device_request: DeviceRequest) -> Iterator[tuple[int | None, str, ExactDeviceRequest]]:
    if device_request.exactly is not None:
        yield None, device_request.name, device_request.exactly
    for index, alternative in enumerate(device_request.first_available):
        yield index, f"{device_request.name}/{alternative.name}", alternative


def _requested(exact: ExactDeviceRequest) -> Amounts:
    if exact.capacity is None:
        return {}
    return {name: parse_quantity(text) for name, text in exact.capacity.requests.items()}
