"""One question, one answer: would kube-scheduler give these ResourceClaims devices on this node, and which. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dra.allocation.outcome import allocation_result, chosen_plans
from dra.allocation.request import AllocationError, ClaimPlan, PlanKey, Planner, RequestPlan, plan_fault
from dra.allocation.result import Allocated, Answer, Failed, Refused
from dra.allocation.search import WORK_BUDGET, Search
from dra.allocation.snapshot import Snapshot
from dra.allocation.verdict import Judge
from dra.allocation.view import NodeView
from dra.errors import InvalidObjectError
from dra.objects import DeviceClass, ResourceClaim
from dra.pools import PoolState


def allocate(snapshot: Snapshot, node_name: str, resource_claims: Sequence[ResourceClaim]) -> Answer:
    """What the scheduler answers for the unallocated claims of one pod on one node: all or none.

    UnknownNodeError where the snapshot has no such node; every other fault is an answer.
    """
    try:
        view = snapshot.node(node_name)
    except InvalidObjectError as error:
        # The scheduler compares every shared slice with every node, so one bad selector ends everything.
        return Failed(kind="fatal", code="node_selector", message=f"gather pool information: {error}")
    return allocate_on(view, snapshot.classes, resource_claims)


def allocate_on(view: NodeView, classes: Mapping[str, DeviceClass], resource_claims: Sequence[ResourceClaim]) -> Answer:
    """As `allocate`, on a view of a node."""
    return searched(view, classes, resource_claims)[0]


def searched(
    view: NodeView,
    classes: Mapping[str, DeviceClass],
    resource_claims: Sequence[ResourceClaim],
    work: int = WORK_BUDGET,
) -> tuple[Answer, int]:
    """The answer on a view of a node, and how many steps the search took; past the `work` it gives up."""
    judges: dict[PlanKey, Judge] = {}

    def positions(plan: RequestPlan) -> tuple[int, ...]:
        judges[plan.key] = Judge(plan, view)
        return _all_positions(view, plan, judges[plan.key])

    try:
        claims = Planner(view.features, classes, positions).plan(resource_claims)
    except AllocationError as error:
        return error.failed, 0
    for plan in (plan for claim in claims for plans in claim.requests for plan in plans):
        judges.setdefault(plan.key, Judge(plan, view))
    search = Search(view, claims, judges, work)
    return _said(view, claims, search), search.steps


def _all_positions(view: NodeView, plan: RequestPlan, judge: Judge) -> tuple[int, ...]:
    """The devices that an `All` request means (`validateDeviceRequest`): all that match and are large enough."""
    found: list[int] = []
    position = 0
    for pool in view.pools:
        if pool.state is not PoolState.COMPLETE:
            incomplete = pool.state is PoolState.INCOMPLETE
            text = f"asks for all devices, but resource pool {pool.id} is currently "
            state = "being updated" if incomplete else "invalid"
            raise plan_fault("pool_incomplete" if incomplete else "pool_invalid", plan, text + state)
        for device in pool.devices():
            verdict = judge.of(pool, device.slice_, device.index)
            if verdict.fault is not None:
                raise judge.abort(verdict, device.id, of_all=True)
            if verdict.selectable and verdict.amounts is not None:
                found.append(position)
            position += 1
    return tuple(found)


def _said(view: NodeView, claims: Sequence[ClaimPlan], search: Search) -> Answer:
    try:
        found = search.run()
        if found:
            results = tuple(
                allocation_result(view, claim, search.state.results[number], chosen_plans(claim, number, search.chosen))
                for number, claim in enumerate(claims)
            )
            return Allocated(results, search.effort.warnings())
    except AllocationError as error:
        return replace(error.failed, warnings=search.effort.warnings())
    if any(pool.state is PoolState.INVALID for pool in view.pools):
        message = "invalid resource pools were encountered"
        return Failed(kind="node", code="pool_invalid", message=message, warnings=search.effort.warnings())
    return Refused(search.effort.warnings())
