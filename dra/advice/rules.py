"""The rules that one device passes or fails whatever else is asked for, in the order in which they are told.

Each rule judges a device as one node sees it and gives a reason with value against limit, or None. Rules follow
`isSelectable`, `allocateDevice` and `CmpRequestOverCapacity` of the structured allocator.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field

from dra.advice.asks import Ask
from dra.advice.explanation import Code, Facts, Holder, Miss, StepKind
from dra.advice.selectors import expressions, selector_miss
from dra.allocation import DeviceView, NodeView, Shape
from dra.allocation.use import Holding
from dra.capacity import CapacityError, demand, refusal, rounded
from dra.counters import CounterKey
from dra.names import ClaimRef
from dra.objects.device import DeviceTaint
from dra.quantity import Quantity, parse_quantity
from dra.taints import untolerated

type Judge = Callable[[DeviceView], Miss | None]
type Pods = Mapping[ClaimRef, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule of one device request; `facts` name it."""

    kind: StepKind
    index: int = 0
    facts: Facts = field(default_factory=dict)
    judge: Judge


def rules(ask: Ask, node: NodeView, pods: Pods) -> Iterator[Rule]:
    """The rules for one device request on this node, in order. `pods` are names of pods by the claim they use."""
    yield Rule(kind=StepKind.DEVICES, judge=lambda device: _unusable(device, node))
    yield Rule(kind=StepKind.CLASS, facts={"device_class": ask.exact.device_class_name}, judge=_class_judge(ask))
    for index, expression in enumerate(expressions(ask.exact.selectors)):
        facts: Facts = {"expression": expression}
        yield Rule(kind=StepKind.SELECTOR, index=index, facts=facts, judge=_selector_judge(index, expression))
    yield Rule(kind=StepKind.TAINT, judge=_remember(lambda device: _taint(ask, node, device.shape), _by_shape))
    yield Rule(kind=StepKind.IN_USE, judge=lambda device: _in_use(ask, device, pods))
    yield Rule(kind=StepKind.COUNTERS, judge=_counter_judge(node, pods))
    requested: Facts = {f"requested {name}": str(amount) for name, amount in ask.requested.items()}
    yield Rule(kind=StepKind.CAPACITY, facts=requested, judge=_capacity_judge(ask, node, pods))


def matching(ask: Ask, node: NodeView, device: DeviceView) -> bool:
    """Whether the device's own size allows the request: what All counts, in use or not (`validateDeviceRequest`)."""
    if not node.features.consumable_capacity:
        return True
    return _size_miss(ask, device.shape, fractional=node.features.fractional_capacity_range) is None


def _by_shape(device: DeviceView) -> Hashable:
    return device.shape


def _by_pool_and_shape(device: DeviceView) -> Hashable:
    return device.pool.id, device.shape


def _remember(judge: Judge, key: Callable[[DeviceView], Hashable]) -> Judge:
    """The same judge, asked once per key."""
    known: dict[Hashable, Miss | None] = {}

    def remembered(device: DeviceView) -> Miss | None:
        place = key(device)
        if place not in known:
            known[place] = judge(device)
        return known[place]

    return remembered


def _unusable(device: DeviceView, node: NodeView) -> Miss | None:
    if not node.features.binding_conditions and device.shape.device.binding_conditions:
        return Miss(code=Code.FEATURE_OFF, facts={"gate": "DRADeviceBindingConditions"})
    if device.slice_.layout.skip_node_operations and _needs_optional_operations(node):
        return Miss(code=Code.FEATURE_OFF, facts={"gate": "DRAOptionalNodeOperations"})
    return None


def _needs_optional_operations(node: NodeView) -> bool:
    """The experimental allocator alone looks at them."""
    return node.features.allocator == "experimental" and not node.skips_operations


def _class_judge(ask: Ask) -> Judge:
    if ask.device_class is None:
        missing = Miss(code=Code.CLASS_MISSING, facts={"device_class": ask.exact.device_class_name})
        return lambda _: missing
    texts = expressions(ask.device_class.spec.selectors)
    judges = [_selector_judge(index, text) for index, text in enumerate(texts)]
    return lambda device: next((miss for judge in judges if (miss := judge(device))), None)


def _selector_judge(index: int, expression: str) -> Judge:
    def judge(device: DeviceView) -> Miss | None:
        return selector_miss(index, expression, device.shape, device.identity)

    return judge


def _taint(ask: Ask, node: NodeView, shape: Shape) -> Miss | None:
    taint = untolerated(shape.taints, ask.exact.tolerations) if node.features.device_taints else None
    if taint is None:
        return None
    facts: Facts = {"taint": taint_text(taint), "key": taint.key, "value": taint.value, "effect": taint.effect}
    if taint.time_added:
        facts["since"] = taint.time_added
    return Miss(code=Code.TAINT_NOT_TOLERATED, facts=facts)


def taint_text(taint: DeviceTaint) -> str:
    """key=value:effect, as kubectl writes taints; without "=" where there is no value."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def _in_use(ask: Ask, device: DeviceView, pods: Pods) -> Miss | None:
    if ask.exact.admin_access or device.name not in device.pool.use.whole:
        return None
    return Miss(code=Code.DEVICE_IN_USE, holders=_holders(device.holders, pods))


def _holders(holdings: tuple[Holding, ...], pods: Pods) -> tuple[Holder, ...]:
    claims = dict.fromkeys(each.claim for each in holdings)
    return tuple(Holder(resource_claim=claim, pods=pods.get(claim, ())) for claim in claims)


def _counter_judge(node: NodeView, pods: Pods) -> Judge:
    judge = _remember(lambda device: _counter_miss(device, node, pods), _by_pool_and_shape)
    shares = node.features.consumable_capacity

    def of_device(device: DeviceView) -> Miss | None:
        shape = device.shape
        if not shape.draws or (shares and shape.allow_multiple and device.name in device.pool.use.shared):
            return None  # a further share is charged to no counter
        return judge(device)

    return of_device


def _counter_miss(device: DeviceView, node: NodeView, pods: Pods) -> Miss | None:
    if not node.features.partitionable_devices:
        return Miss(code=Code.FEATURE_OFF, facts={"gate": "DRAPartitionableDevices"})
    pool = device.pool
    own = dict(device.shape.draws)
    short = next((key for key, amount in own.items() if pool.counters_left.get(key, 0) < amount), None)
    if short is None and pool.overdrawn:
        short = next(key for key, left in pool.counters_left.items() if left < 0)
    if short is None:
        return None
    facts: Facts = {
        "counter_set": short[0],
        "counter": short[1],
        "needed": _counter_text(device.shape, short, own.get(short, 0)),
        "left": _counter_text(device.shape, short, pool.counters_left.get(short, 0)),
    }
    return Miss(code=Code.COUNTER_SHORT, facts=facts, holders=_drawers(device, short, pods))


def _counter_text(shape: Shape, key: CounterKey, nano: int) -> str:
    """The amount in the form in which the device publishes its draw."""
    for each in shape.device.consumes_counters:
        if each.counter_set == key[0] and key[1] in each.counters:
            return str(Quantity(nano, parse_quantity(each.counters[key[1]].value).format))
    return str(Quantity(nano))


def _drawers(device: DeviceView, key: CounterKey, pods: Pods) -> tuple[Holder, ...]:
    """Who holds devices that draw on this counter."""
    pool = device.pool
    held = tuple(
        holding
        for slice_ in (*pool.slices, *pool.gathered.elsewhere)
        for name, holdings in pool.use.holders.items()
        if name in slice_.layout.index
        if any(key == drawn for drawn, _ in slice_.layout.shapes[slice_.layout.index[name]].draws)
        for holding in holdings
    )
    return _holders(held, pods)


def _capacity_judge(ask: Ask, node: NodeView, pods: Pods) -> Judge:
    if not node.features.consumable_capacity:
        return lambda _: None
    fractional = node.features.fractional_capacity_range
    size = _remember(lambda device: _size_miss(ask, device.shape, fractional=fractional), _by_shape)
    return lambda device: size(device) or _share_miss(ask, device, pods, fractional=fractional)


def _size_miss(ask: Ask, shape: Shape, *, fractional: bool) -> Miss | None:
    try:
        if demand(shape.capacities, ask.requested, fractional=fractional) is not None:
            return None
    except CapacityError as fault:
        return Miss(code=Code.CAPACITY_FAULT, facts={"error": str(fault)})
    absent = min(ask.requested.keys() - shape.capacities.keys(), default=None)
    if absent is not None:
        return Miss(code=Code.CAPACITY_ABSENT, facts={"capacity": absent, "requested": str(ask.requested[absent])})
    return next(miss for name in sorted(shape.capacities) if (miss := _too_large(ask, shape, name, fractional)))


def _too_large(ask: Ask, shape: Shape, name: str, fractional: bool) -> Miss | None:  # noqa: FBT001
    capacity = shape.capacities[name]
    amount = rounded(capacity, ask.requested.get(name), fractional=fractional)
    why = refusal(capacity, amount, fractional=fractional)
    if not why:
        return None
    facts: Facts = {"capacity": name, "needed": str(amount)}
    if capacity.value < amount:
        return Miss(
            code=Code.CAPACITY_SHORT, facts={**facts, "left": str(capacity.value), "value": str(capacity.value)}
        )
    return Miss(code=Code.CAPACITY_POLICY, facts={**facts, "rule": why})


def _share_miss(ask: Ask, device: DeviceView, pods: Pods, *, fractional: bool) -> Miss | None:
    """What other shares leave of each capacity; a device that is not shared has none recorded."""
    consumed = device.pool.use.consumed.get(device.name)
    if not consumed:
        return None
    for name, capacity in device.shape.capacities.items():
        amount = rounded(capacity, ask.requested.get(name), fractional=fractional)
        left = Quantity(capacity.value.nano - consumed.get(name, 0), capacity.value.format)
        if left < amount:
            facts: Facts = {
                "capacity": name, "needed": str(amount), "left": str(left), "value": str(capacity.value),
            }  # fmt: skip
            return Miss(code=Code.CAPACITY_SHORT, facts=facts, holders=_holders(device.holders, pods))
    return None
