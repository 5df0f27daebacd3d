"""A solution of the search as the AllocationResults that the scheduler writes into claims. Pure.

Follows the second half of `Allocate` and `createNodeSelector` of the structured allocator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dra.allocation.request import AllocationError, ClaimPlan, RequestPlan
from dra.allocation.result import Failed
from dra.allocation.state import Picked
from dra.allocation.view import NodeView
from dra.features import Features
from dra.objects import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    DeviceToleration,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)


def allocation_result(
    view: NodeView, claim: ClaimPlan, picked: Sequence[Picked], chosen: Sequence[RequestPlan]
) -> AllocationResult:
    """The result of one claim; `chosen` has the plan taken for each device request, one of its alternatives.

    AllocationError for a slice whose node selector has several terms.
    """
    results = tuple(_device_result(view.features, each) for each in picked)
    return AllocationResult(
        devices=DeviceAllocationResult(results=results, config=tuple(_config(claim, chosen))),
        node_selector=_node_selector(view.name, claim, picked),
    )


def _device_result(features: Features, picked: Picked) -> DeviceRequestAllocationResult:
    device = picked.device.shape.device
    binding = features.binding_conditions
    operations = picked.device.slice_.layout.skip_node_operations if features.allocator == "experimental" else ()
    return DeviceRequestAllocationResult(
        request=picked.plan.full_name,
        driver=picked.device.pool.id.driver,
        pool=picked.device.pool.id.name,
        device=picked.device.name,
        admin_access=picked.plan.admin,
        share_id=None if picked.amounts is None else "",
        consumed_capacity={name: str(amount) for name, amount in (picked.amounts or {}).items()},
        tolerations=tuple(map(_with_operator, picked.plan.request.tolerations)),
        binding_conditions=device.binding_conditions if binding else (),
        binding_failure_conditions=device.binding_failure_conditions if binding else (),
        skip_node_operations=operations,
    )


def _with_operator(toleration: DeviceToleration) -> DeviceToleration:
    if toleration.operator:
        return toleration
    return DeviceToleration(
        key=toleration.key,
        operator="Equal",  # the API server's default
        value=toleration.value,
        effect=toleration.effect,
        toleration_seconds=toleration.toleration_seconds,
    )


def _config(claim: ClaimPlan, chosen: Sequence[RequestPlan]) -> list[DeviceAllocationConfiguration]:
    """What classes bring, each class once, then what the claim brings for the requests that were chosen."""
    names = [frozenset((plan.parent or plan.name, plan.full_name)) for plan in chosen]
    entries = _class_config(chosen)
    for config in claim.claim.spec.devices.config:
        if not config.requests or any(not each.isdisjoint(config.requests) for each in names):
            entries.append(
                DeviceAllocationConfiguration(source="FromClaim", requests=config.requests, opaque=config.opaque)
            )
    return [_for_all(entry) if _concerns_all(entry, names) else entry for entry in entries]


def _class_config(chosen: Sequence[RequestPlan]) -> list[DeviceAllocationConfiguration]:
    by_class: dict[str, list[RequestPlan]] = {}
    for plan in chosen:
        by_class.setdefault(plan.device_class.metadata.name, []).append(plan)
    return [
        DeviceAllocationConfiguration(
            source="FromClass", requests=tuple(plan.full_name for plan in plans), opaque=config.opaque
        )
        for plans in by_class.values()
        for config in plans[0].device_class.spec.config
    ]


def _concerns_all(entry: DeviceAllocationConfiguration, names: Iterable[frozenset[str]]) -> bool:
    return all(not each.isdisjoint(entry.requests) for each in names)


def _for_all(entry: DeviceAllocationConfiguration) -> DeviceAllocationConfiguration:
    """Naming no request means all of them."""
    return DeviceAllocationConfiguration(source=entry.source, opaque=entry.opaque)


def _node_selector(node_name: str, claim: ClaimPlan, picked: Iterable[Picked]) -> NodeSelector | None:
    """None where the devices can be used everywhere; else the node, or what all devices' selectors demand."""
    fields: list[NodeSelectorRequirement] = []
    labels: list[NodeSelectorRequirement] = []
    for each in picked:
        layout, device = each.device.slice_.layout, each.device.shape.device
        single = layout.per_device_node_selection
        bound = device.node_name is not None if single else bool(each.device.slice_.node_name)
        if bound or device.binds_to_node:
            return _on_node(node_name)
        selector = device.node_selector if single else layout.node_selector
        terms = selector.node_selector_terms if selector else ()
        if len(terms) > 1:
            raise _many_terms(claim, len(terms))
        for term in terms:
            _extend(fields, term.match_fields)
            _extend(labels, term.match_expressions)
    if not fields and not labels:
        return None
    term = NodeSelectorTerm(match_expressions=tuple(labels), match_fields=tuple(fields))
    return NodeSelector(node_selector_terms=(term,))


def _on_node(name: str) -> NodeSelector:
    requirement = NodeSelectorRequirement(key="metadata.name", operator="In", values=(name,))
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(requirement,)),))


def _extend(known: list[NodeSelectorRequirement], more: Iterable[NodeSelectorRequirement]) -> None:
    for requirement in more:
        if all(_meaning(each) != _meaning(requirement) for each in known):
            known.append(requirement)


def _meaning(requirement: NodeSelectorRequirement) -> tuple[str, str, frozenset[str]]:
    return requirement.key, requirement.operator, frozenset(requirement.values)


def _many_terms(claim: ClaimPlan, terms: int) -> AllocationError:
    name = claim.claim.metadata.name
    text = f"unsupported ResourceSlice.NodeSelector with {terms} terms"
    message = f"create NodeSelector for claim {name}: {text}"
    return AllocationError(Failed(kind="fatal", code="node_selector", message=message, resource_claim=name))


def chosen_plans(
    claim: ClaimPlan, number: int, chosen: Mapping[tuple[int, int], RequestPlan]
) -> tuple[RequestPlan, ...]:
    """The plan that was taken for each device request of the claim of that number."""
    return tuple(chosen.get((number, position), plans[0]) for position, plans in enumerate(claim.requests))
