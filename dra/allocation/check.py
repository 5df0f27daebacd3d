"""A judge of allocation results that shares no step with the engine: it counts again. Pure.

It knows what an allocation must be, not how one is found, and reads what is published and held. Only selectors are
asked of the same CEL engine. Constraints on derived attributes are taken on trust. For tests, and for answers about
which the scheduler has nothing to say.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dra.allocation.shapes import PublishedSlice, Shape
from dra.allocation.snapshot import Snapshot
from dra.allocation.use import Holding
from dra.cel import CelRuntimeError, compile_expression
from dra.names import DeviceID
from dra.objects import (
    AllocationResult,
    DeviceAttribute,
    DeviceClaim,
    DeviceRequestAllocationResult,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
    Node,
    NodeSelector,
    ResourceClaim,
)
from dra.objects.nodeselector import matches
from dra.pools import PoolID
from dra.quantity import parse_quantity

_MOST = 32


@dataclass(frozen=True, slots=True)
class _Given:
    """One result with the device that it names."""

    claim: int
    result: DeviceRequestAllocationResult
    slice_: PublishedSlice
    index: int

    @property
    def shape(self) -> Shape:
        return self.slice_.layout.shapes[self.index]

    @property
    def id(self) -> DeviceID:
        return DeviceID(self.result.driver, self.result.pool, self.result.device)

    @property
    def attributes(self) -> Mapping[str, DeviceAttribute]:
        identities = self.slice_.identities
        return self.shape.attributes_of(identities[self.index] if identities else ())


def violations(
    snapshot: Snapshot, node_name: str, resource_claims: Sequence[ResourceClaim], results: Sequence[AllocationResult]
) -> list[str]:
    """What is wrong with these results of these claims on that node, in words; empty where nothing is.

    UnknownNodeError where the snapshot has no such node.
    """
    if len(results) != len(resource_claims):
        return [f"{len(resource_claims)} claims have {len(results)} results"]
    node = snapshot.node(node_name).node
    found: list[str] = []
    given: list[_Given] = []
    for number, result in enumerate(results):
        for each in result.devices.results:
            place = _published(snapshot, node, each)
            if isinstance(place, str):
                found.append(place)
            else:
                given.append(_Given(number, each, *place))
    for number, (claim, result) in enumerate(zip(resource_claims, results, strict=True)):
        own = [each for each in given if each.claim == number]
        found += _of_claim(snapshot, claim.spec.devices, own)
        found += _of_node(node, own, result.node_selector)
    return [*found, *_twice(snapshot, given), *_overdrawn(snapshot, node, given), *_overconsumed(snapshot, given)]


def _published(
    snapshot: Snapshot, node: Node, result: DeviceRequestAllocationResult
) -> tuple[PublishedSlice, int] | str:
    """Where the device is published for the node in a complete pool, or what is wrong."""
    name = f"{result.driver}/{result.pool}/{result.device}"
    slices = _seen(snapshot, PoolID(result.driver, result.pool))
    here = [
        (each, index)
        for each in slices
        for index, device in enumerate(each.layout.names)
        if device == result.device and _reaches(each, index, node)
    ]
    if not here:
        return f"{name} is not published for node {node.metadata.name}"
    newest = max(each.generation for each, _ in here)
    place = next((each, index) for each, index in here if each.generation == newest)
    current = [each for each in slices if each.generation == newest]
    here_alone = [each for each in current if _slice_reaches(each, node)]
    # Slices for the node alone may be as many as the pool names; slices may disagree on how many that are.
    if not any(len(each) in {known.slice_count for known in current} for each in (current, here_alone)):
        return f"{name}: its pool has {len(current)} of {place[0].slice_count} slices"
    return place


def _seen(snapshot: Snapshot, pool: PoolID) -> Sequence[PublishedSlice]:
    """The slices of a pool; with the gate off, one with compatibility groups is as if it were not there."""
    grouped = snapshot.features.device_compatibility_groups
    return [each for each in snapshot.pools.get(pool, ()) if grouped or not each.layout.grouped]


def _slice_reaches(slice_: PublishedSlice, node: Node) -> bool:
    if slice_.layout.per_device_node_selection:
        return any(_reaches(slice_, index, node) for index in range(len(slice_.layout.names)))
    return _selects(node, slice_.node_name, slice_.layout.node_selector, everywhere=slice_.layout.all_nodes)


def _reaches(slice_: PublishedSlice, index: int, node: Node) -> bool:
    if not slice_.layout.per_device_node_selection:
        return _slice_reaches(slice_, node)
    device = slice_.layout.shapes[index].device
    return _selects(node, device.node_name or "", device.node_selector, everywhere=device.all_nodes)


def _selects(node: Node, name: str, selector: NodeSelector | None, *, everywhere: bool) -> bool:
    if name:
        return name == node.metadata.name
    return everywhere or (selector is not None and matches(selector, node.metadata.name, node.metadata.labels))


def _of_claim(snapshot: Snapshot, wanted: DeviceClaim, given: Sequence[_Given]) -> Iterator[str]:
    if len(given) > _MOST:
        yield f"a claim has {len(given)} devices, {_MOST} are the most"
    by_request: dict[str, list[_Given]] = defaultdict(list)
    for each in given:
        by_request[each.result.request].append(each)
    for request in wanted.requests:
        alternatives: dict[str, ExactDeviceRequest] = {
            f"{request.name}/{each.name}": each for each in request.first_available
        }
        if request.exactly is not None:
            alternatives = {request.name: request.exactly}
        taken = [name for name in alternatives if name in by_request]
        if len(taken) != 1:
            yield f"request {request.name} is answered by {taken or 'nothing'}"
            continue
        devices = by_request.pop(taken[0])
        asked = alternatives[taken[0]]
        if asked.allocation_mode != "All" and len(devices) != (asked.count or 1):
            yield f"request {taken[0]} has {len(devices)} devices for {asked.count or 1}"
        for each in devices:
            yield from _of_device(snapshot, asked, each)
    if by_request:
        yield f"results for requests that there are not: {', '.join(sorted(by_request))}"
    yield from _of_constraints(wanted, given)


def _of_constraints(wanted: DeviceClaim, given: Sequence[_Given]) -> Iterator[str]:
    derived = _derived(wanted)
    for constraint in wanted.constraints:
        if {constraint.match_attribute, constraint.distinct_attribute} & derived:
            continue
        bound = [each for each in given if _is_bound(constraint.requests, each.result.request)]
        if constraint.match_attribute and not _have_common(bound, constraint.match_attribute):
            yield f"devices differ in {constraint.match_attribute}"
        if constraint.distinct_attribute and not _all_differ(bound, constraint.distinct_attribute):
            yield f"devices share {constraint.distinct_attribute}"


def _derived(wanted: DeviceClaim) -> set[str | None]:
    asked = [each for request in wanted.requests for each in (request.exactly, *request.first_available) if each]
    return {attribute.name for each in asked for attribute in each.derived_attributes}


def _is_bound(names: Sequence[str], request: str) -> bool:
    return not names or request in names or request.partition("/")[0] in names


def _of_device(snapshot: Snapshot, asked: ExactDeviceRequest, given: _Given) -> Iterator[str]:
    device_class = snapshot.classes.get(asked.device_class_name)
    if device_class is None:
        yield f"{given.id}: class {asked.device_class_name} does not exist"
        return
    for selector in (*device_class.spec.selectors, *asked.selectors):
        yield from _of_selector(selector.cel.expression if selector.cel else "", given)
    for taint in (*given.shape.taints, *_from_rules(snapshot, given.id)) if snapshot.features.device_taints else ():
        if taint.effect in {"NoSchedule", "NoExecute"} and not any(_covers(each, taint) for each in asked.tolerations):
            yield f"{given.id}: taint {taint.key}={taint.value}:{taint.effect} is not tolerated"
    for name, text in (asked.capacity.requests if asked.capacity else {}).items():
        there = given.shape.device.capacity.get(name)
        amount = given.result.consumed_capacity.get(name) or (there.value if there else "0")
        if there is None or parse_quantity(amount) < parse_quantity(text):
            yield f"{given.id}: {text} of {name} were asked for, {amount} are given"


def _of_selector(text: str, given: _Given) -> Iterator[str]:
    identities = given.slice_.identities
    device = given.shape.cel_of(identities[given.index] if identities else ())
    try:
        if not compile_expression(text).matches(device):
            yield f"{given.id}: {text} is false"
    except CelRuntimeError as error:
        yield f"{given.id}: {text} fails: {error}"


def _from_rules(snapshot: Snapshot, device: DeviceID) -> Iterator[DeviceTaint]:
    for rule in snapshot.taint_rules.values() if snapshot.features.device_taint_rules else ():
        selector = rule.spec.device_selector
        if selector is not None and all(
            wanted in {None, seen}
            for wanted, seen in (
                (selector.driver, device.driver),
                (selector.pool, device.pool),
                (selector.device, device.device),
            )
        ):
            yield rule.spec.taint


def _covers(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    same_value = toleration.operator == "Exists" or toleration.value == taint.value
    return same_value and toleration.key in {"", taint.key} and toleration.effect in {"", taint.effect}


def _values(given: _Given, name: str) -> frozenset[tuple[str, object]]:
    domain, _, identifier = name.partition("/")
    attribute = given.attributes.get(name)
    if attribute is None and domain == given.result.driver:
        attribute = given.attributes.get(identifier)
    if attribute is None:
        return frozenset()
    lists = {"int": attribute.ints, "bool": attribute.bools, "string": attribute.strings, "version": attribute.versions}
    single = {
        "int": attribute.int_,
        "bool": attribute.bool_,
        "string": attribute.string,
        "version": attribute.version,
    }
    several = {(kind, value) for kind, values in lists.items() for value in values or ()}
    return frozenset(several | {(kind, value) for kind, value in single.items() if value is not None})


def _have_common(given: Sequence[_Given], name: str) -> bool:
    values = [_values(each, name) for each in given]
    return not values or bool(frozenset.intersection(*values))


def _all_differ(given: Sequence[_Given], name: str) -> bool:
    values = [_values(each, name) for each in given]
    seen = Counter(value for each in values for value in each)
    return all(values) and all(count == 1 for count in seen.values())


def _of_node(node: Node, given: Sequence[_Given], selector: NodeSelector | None) -> Iterator[str]:
    if selector is not None and not matches(selector, node.metadata.name, node.metadata.labels):
        yield f"the node selector excludes node {node.metadata.name}"
    if selector is None and any(each.slice_.node_name or each.shape.device.binds_to_node for each in given):
        yield "a device of one node is given without a node selector"


def _held(snapshot: Snapshot) -> Iterator[Holding]:
    return (each for held in snapshot.held.values() for holdings in held.values() for each in holdings)


def _twice(snapshot: Snapshot, given: Sequence[_Given]) -> Iterator[str]:
    whole = Counter(each.id for each in given if each.result.share_id is None and not each.result.admin_access)
    yield from (f"{device} is given {count} times" for device, count in whole.items() if count > 1)
    taken = {holding.device for holding in _held(snapshot) if not holding.share}
    for each in given:
        if each.id in taken and not each.result.admin_access:
            yield f"{each.id} is in use"
    admins = Counter(
        (each.claim, each.id) for each in given if each.result.admin_access and each.result.share_id is None
    )
    yield from (f"{device} is given twice in one claim" for (_, device), count in admins.items() if count > 1)


def _overdrawn(snapshot: Snapshot, node: Node, given: Sequence[_Given]) -> Iterator[str]:
    """A device is charged once while anybody has it, and again for admin access."""
    held = {each.device for each in _held(snapshot)}
    fresh = [each for each in given if each.result.share_id is None or each.id not in held]
    charges = Counter(held)
    charges.update(each.id for each in fresh if each.result.share_id is None)
    charges.update({each.id for each in fresh if each.result.share_id is not None})
    # What others overdrew is not this allocation's fault, unless it draws on the same pool.
    for place in {(each.result.driver, each.result.pool, each.slice_.generation) for each in fresh if each.shape.draws}:
        driver, pool, generation = place
        current = [each for each in _seen(snapshot, PoolID(driver, pool)) if each.generation == generation]
        slices = _that_count(current, node)
        left = Counter({key: total for each in slices for key, total in each.layout.counters.items()})
        for slice_ in slices:
            for name, shape in zip(slice_.layout.names, slice_.layout.shapes, strict=True):
                times = charges[DeviceID(driver, pool, name)]
                for draw in shape.device.consumes_counters if times else ():
                    for counter, amount in draw.counters.items():
                        left[draw.counter_set, counter] -= times * parse_quantity(amount.value).nano
        yield from (f"{pool}: counter {'/'.join(key)} is overdrawn" for key, amount in left.items() if amount < 0)


def _that_count(current: Sequence[PublishedSlice], node: Node) -> Sequence[PublishedSlice]:
    """The slices that draw on the pool's counters as the scheduler sees it from this node.

    Where those for the node alone are as many as one of them names, it looks at no others (`GatherPools`). That they
    leave some out happens only where slices disagree on their number (kubernetes/kubernetes#141117).
    """
    here = [each for each in current if _slice_reaches(each, node)]
    return here if len(here) in {each.slice_count for each in here} else current


def _overconsumed(snapshot: Snapshot, given: Sequence[_Given]) -> Iterator[str]:
    """All shares of a device together fit into it."""
    used: Counter[tuple[DeviceID, str]] = Counter()
    for holding in _held(snapshot):
        used.update({(holding.device, name): amount for name, amount in (holding.consumed or {}).items()})
    for each in given:
        amounts = each.result.consumed_capacity.items()
        used.update({(each.id, name): parse_quantity(amount).nano for name, amount in amounts})
        if (
            each.result.share_id is not None
        ) is not each.shape.allow_multiple and snapshot.features.consumable_capacity:
            yield f"{each.id}: a share has a share ID, a whole device has none"
    for device, shape in {each.id: each.shape for each in given}.items():
        for name, capacity in shape.device.capacity.items():
            if used[device, name] > parse_quantity(capacity.value).nano:
                yield f"{device}: more than {capacity.value} of {name} is consumed"
