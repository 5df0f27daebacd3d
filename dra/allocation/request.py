"""ResourceClaims in the form that the search reads, and what the allocator refuses before it searches. Pure.

Follows `Allocate` and `validateDeviceRequest` of the structured allocator: claims and requests in order, the first
fault ends everything. What devices an `All` request means is asked of the caller: only a node's devices can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dra.allocation.result import Failed, FailureCode
from dra.capacity import Amounts
from dra.constraints import Constraint, Kind
from dra.errors import DraError, InvalidQuantityError
from dra.features import Features
from dra.names import DeviceID
from dra.objects import (
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from dra.quantity import parse_quantity

MAX_RESULTS: Final = 32
"""Devices of one claim (`AllocationResultsMaxSize`)."""


class AllocationError(DraError):
    """The allocation ends here, with this answer."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.message)
        self.failed = failed


type PlanKey = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPlan:
    """One device request, or one alternative of it (`parent` is then the request's name, else "").

    `key` is the number of the claim, that of the request in it, and that of the alternative.
    `count` is the number of devices; for `All` it is the number of `positions`, the devices that match on the node.
    `constraints` are the numbers of those of the claim's constraints that concern it.
    """

    key: PlanKey
    claim_name: str
    name: str
    parent: str
    request: ExactDeviceRequest
    device_class: DeviceClass
    amounts: Amounts
    constraints: tuple[int, ...]
    all_devices: bool
    count: int
    positions: tuple[int, ...] = ()

    @property
    def claim(self) -> int:
        """The number of its claim."""
        return self.key[0]

    @property
    def request_number(self) -> int:
        """The number of its request in the claim."""
        return self.key[1]

    @property
    def full_name(self) -> str:
        """As in results: `request` or `request/alternative`."""
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def admin(self) -> bool:
        """Whether devices in use can be had, too. Alternatives know no admin access."""
        return self.request.admin_access and not self.parent

    @property
    def wanted(self) -> tuple[object, ...]:
        """What is asked for, but for the name: equal for requests that may swap their devices."""
        return (self.device_class.metadata.name, self.request_key, self.constraints)

    @property
    def request_key(self) -> tuple[object, ...]:
        """Selectors, tolerations, capacities and all else that decides which devices serve."""
        request = self.request
        amounts = tuple(sorted((name, amount.nano, amount.format) for name, amount in self.amounts.items()))
        return (
            request.selectors, request.tolerations, amounts, request.derived_attributes,
            self.admin, self.all_devices, self.count,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimPlan:
    """One ResourceClaim: for each device request its alternatives, one where it has no list; and its constraints."""

    claim: ResourceClaim
    requests: tuple[tuple[RequestPlan, ...], ...]
    constraints: tuple[Constraint, ...]


@dataclass(frozen=True, slots=True)
class Planner:
    """Plans claims for one node. `positions` names the devices that an `All` request means there."""

    features: Features
    classes: Mapping[str, DeviceClass]
    positions: Callable[[RequestPlan], tuple[int, ...]]

    def plan(self, claims: Sequence[ResourceClaim]) -> tuple[ClaimPlan, ...]:
        """The claims as plans; AllocationError with the first fault that the allocator would raise."""
        return tuple(self._claim(number, claim) for number, claim in enumerate(claims))

    def _claim(self, number: int, claim: ResourceClaim) -> ClaimPlan:
        requests: list[tuple[RequestPlan, ...]] = []
        least = 0
        for position, request in enumerate(claim.spec.devices.requests):
            self._check_gates(claim, request)
            plans = tuple(
                self._request((number, position, place), claim, request, each)
                for place, each in enumerate(_alternatives(claim, request))
            )
            needed = min(plan.count for plan in plans)
            if needed > MAX_RESULTS - least:
                limit = f"exceeds the claim limit of {MAX_RESULTS}, with {least} already accounted for"
                raise fault("too_many_devices", claim, request.name, f"adding {needed} devices {limit}")
            least += needed
            requests.append(plans)
        lists = self.features.allocator == "experimental" and self.features.list_type_attributes
        constraints = tuple(
            _constraint(claim, number, each, lists=lists) for number, each in enumerate(claim.spec.devices.constraints)
        )
        return ClaimPlan(claim=claim, requests=tuple(requests), constraints=constraints)

    def _check_gates(self, claim: ResourceClaim, request: DeviceRequest) -> None:
        if request.first_available and not self.features.prioritized_list:
            text = "has subrequests, but the DRAPrioritizedList feature is disabled"
            raise fault("feature_disabled", claim, request.name, text)
        if self.features.consumable_capacity:
            return
        text = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
        if request.exactly is not None and request.exactly.capacity is not None:
            raise fault("feature_disabled", claim, request.name, text)
        for alternative in request.first_available:
            if alternative.capacity is not None:
                raise fault("feature_disabled", claim, alternative.name, text, noun="subrequest")

    def _request(
        self, key: PlanKey, claim: ResourceClaim, parent: DeviceRequest, request: ExactDeviceRequest
    ) -> RequestPlan:
        name = request.name if isinstance(request, DeviceSubRequest) else parent.name
        self._check(claim, name, request, admin=request.admin_access and request is parent.exactly)
        device_class = self.classes.get(request.device_class_name)
        if device_class is None:
            text = (
                f"could not retrieve device class {request.device_class_name}: "
                f'deviceclass.resource.k8s.io "{request.device_class_name}" not found'
            )
            raise fault("class_missing", claim, name, text, device_class=request.device_class_name)
        plan = RequestPlan(
            key=key,
            claim_name=object_name(claim),
            name=name,
            parent=parent.name if isinstance(request, DeviceSubRequest) else "",
            request=request,
            device_class=device_class,
            amounts=_amounts(claim, name, request),
            constraints=_concerning(claim, parent.name, name if isinstance(request, DeviceSubRequest) else ""),
            all_devices=request.allocation_mode == "All",
            count=request.count or 1,  # the API server's default
        )
        if not plan.all_devices:
            return plan
        positions = self.positions(plan)
        return replace(plan, positions=positions, count=len(positions))

    def _check(self, claim: ResourceClaim, name: str, request: ExactDeviceRequest, *, admin: bool) -> None:
        derived = self.features.derived_attributes and self.features.allocator == "experimental"
        if request.derived_attributes and not derived:
            text = "cannot handle request with derived attributes, the feature is disabled"
            raise fault("feature_disabled", claim, name, text)
        for number, selector in enumerate(request.selectors):
            if selector.cel is None:
                text = "CEL expression empty (unsupported selector type?)"
                raise fault("malformed", claim, f"{name}, selector #{number}", text)
        if admin and not self.features.admin_access:
            raise fault("feature_disabled", claim, name, "admin access is requested, but the feature is disabled")
        if not request.device_class_name:
            raise fault("malformed", claim, name, "missing device class name (unsupported request type?)")
        if request.allocation_mode not in {"", "ExactCount", "All"} and request.device_class_name in self.classes:
            raise fault("malformed", claim, name, f"unsupported count mode {request.allocation_mode}")


def object_name(claim: ResourceClaim) -> str:
    """`namespace/name`, or the name alone where there is no namespace (`klog.KObj`)."""
    namespace, name = claim.metadata.namespace, claim.metadata.name
    return f"{namespace}/{name}" if namespace else name


def fault(  # noqa: PLR0913 - the words of one sentence
    code: FailureCode, claim: ResourceClaim, request: str, text: str, *, noun: str = "request", device_class: str = ""
) -> AllocationError:
    """A fatal error about one request, with the allocator's words."""
    name = object_name(claim)
    message = f"claim {name}, {noun} {request}: {text}"
    return AllocationError(
        Failed(
            kind="fatal",
            code=code,
            message=message,
            resource_claim=name,
            device_request=request.partition(",")[0],
            device_class=device_class,
        )
    )


def plan_fault(code: FailureCode, plan: RequestPlan, text: str, *, device: DeviceID | None = None) -> AllocationError:
    """A fatal error about one planned request, with the allocator's words."""
    message = f"claim {plan.claim_name}, request {plan.name}: {text}"
    return AllocationError(
        Failed(
            kind="fatal",
            code=code,
            message=message,
            resource_claim=plan.claim_name,
            device_request=plan.name,
            device=device,
        )
    )


def _alternatives(claim: ResourceClaim, request: DeviceRequest) -> Sequence[ExactDeviceRequest]:
    if request.first_available:
        return request.first_available
    if request.exactly is None:
        raise fault("malformed", claim, request.name, "has neither exactly nor firstAvailable")
    return (request.exactly,)


def _amounts(claim: ResourceClaim, name: str, request: ExactDeviceRequest) -> Amounts:
    if request.capacity is None:
        return {}
    try:
        return {key: parse_quantity(text) for key, text in request.capacity.requests.items()}
    except InvalidQuantityError as error:
        raise fault("malformed", claim, name, f"capacity request: {error}") from error


def _concerning(claim: ResourceClaim, request: str, alternative: str) -> tuple[int, ...]:
    """The constraints that name the request, the alternative, or nothing."""
    names = {request, f"{request}/{alternative}"} if alternative else {request}
    return tuple(
        number
        for number, constraint in enumerate(claim.spec.devices.constraints)
        if not constraint.requests or names.intersection(constraint.requests)
    )


def _constraint(claim: ResourceClaim, number: int, constraint: DeviceConstraint, *, lists: bool) -> Constraint:
    kind: Kind = "match" if constraint.match_attribute is not None else "distinct"
    attribute = constraint.match_attribute if kind == "match" else constraint.distinct_attribute
    if attribute is None:
        name = object_name(claim)
        message = f"claim {name}, constraint #{number}: empty constraint (unsupported constraint type?)"
        raise AllocationError(Failed(kind="fatal", code="malformed", message=message, resource_claim=name))
    return Constraint(kind=kind, attribute=attribute, lists=lists)
