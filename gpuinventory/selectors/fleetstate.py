"""Rows to the fleet that allocation reads: everything once, then what is newer than a revision, object by object.

A change costs what it changed (and the copy of a mapping of pools), never the fleet. Reads only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from dra.allocation import PublishedSlice, Snapshot, compile_slice
from dra.allocation.use import holdings
from dra.errors import DraError
from dra.kube.requests import DEVICE_CLASSES, DEVICE_TAINT_RULES, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from dra.objects import DeviceClass, DeviceTaintRule, Node, Pod, ResourceClaim, ResourceSlice, decode
from gpuinventory.capabilities import Capabilities
from gpuinventory.claimstate import owning_pod
from gpuinventory.kinds import CAPABILITIES
from gpuinventory.models import ClusterObject, Tombstone
from gpuinventory.selectors.capabilities import capabilities, read_capabilities
from gpuinventory.selectors.podusage import Place, PodUsage, place_of

type Key = tuple[str, str, str]
"""Kind, namespace, name."""
type Row = tuple[Key, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetState:
    """What was read. `wanted` are the classes that each waiting claim names, `waiting` their number by class; `pods`
    what the pods of each node take. The snapshot judges by the features of `capabilities`.
    """

    capabilities: Capabilities
    snapshot: Snapshot
    pods: PodUsage
    wanted: Mapping[Key, frozenset[str]]
    waiting: Mapping[str, int]
    problems: Mapping[Key, str]


@dataclass(frozen=True, slots=True)
class _Kind:
    """How a kind is read, and how it comes into a snapshot and out of it."""

    parse: Callable[[bytes], Any]
    put: Callable[[Snapshot, Any], Snapshot]
    drop: Callable[[Snapshot, str, str], Snapshot]


def read_all() -> FleetState:
    """Two queries. Costs the whole fleet."""
    problems: dict[Key, str] = {}
    read: dict[str, dict[Key, Any]] = {kind: {} for kind in _PARSERS}
    for key, body in _rows(ClusterObject.objects.filter(kind__in=_PARSERS).order_by("namespace", "name")):
        try:
            read[key[0]][key] = _PARSERS[key[0]](body)
        except DraError as error:
            problems[key] = _problem(key, error)
    claims = read[RESOURCE_CLAIMS.kind]
    seen = capabilities()
    snapshot = Snapshot.build(
        nodes=read[NODES.kind].values(),
        slices=read[RESOURCE_SLICES.kind].values(),
        classes=read[DEVICE_CLASSES.kind].values(),
        taint_rules=read[DEVICE_TAINT_RULES.kind].values(),
        resource_claims=claims.values(),
        features=seen.features,
    )
    wanted = {key: classes for key, claim in claims.items() if (classes := _waits_for(claim))}
    pods = PodUsage().with_changes((key[1:], place) for key, place in read[PODS.kind].items())
    return FleetState(
        capabilities=seen,
        snapshot=snapshot,
        pods=pods,
        wanted=wanted,
        waiting=_counted(wanted),
        problems=problems,
    )


def read_changes(state: FleetState, since: int) -> FleetState:
    """With what changed after that revision. Two queries; all anew where the cluster's own features changed.

    They name the revision alone: with the kind or an order beside it SQLite takes that index, and reads every row.
    """
    gone = list(Tombstone.objects.filter(revision__gt=since).values_list("kind", "namespace", "name"))
    for key in (each for each in gone if each[0] in _KINDS):
        state = _without(state, key)
    changed = list(_rows(ClusterObject.objects.filter(changed_at_revision__gt=since)))
    for seen in (read_capabilities(body) for key, body in changed if key[0] == CAPABILITIES):
        if seen.features != state.snapshot.features:
            return read_all()
        state = replace(state, capabilities=seen)
    for key, body in sorted(row for row in changed if row[0][0] in _KINDS):
        state = _with(state, key, body)
    return _with_pods(replace(state, waiting=_counted(state.wanted)), gone, changed)


def _rows(query: Any) -> Iterator[Row]:
    for kind, namespace, name, body in query.values_list("kind", "namespace", "name", "body").iterator():
        yield (kind, namespace, name), bytes(body)


def _with(state: FleetState, key: Key, body: bytes) -> FleetState:
    kind = _KINDS[key[0]]
    try:
        found = kind.parse(body)
    except DraError as error:
        less = _without(state, key)
        return replace(less, problems={**less.problems, key: _problem(key, error)})
    more = replace(state, snapshot=kind.put(state.snapshot, found), problems=_less(state.problems, key))
    if not isinstance(found, ResourceClaim):
        return more
    classes, others = _waits_for(found), _less(state.wanted, key)
    return replace(more, wanted={**others, key: classes} if classes else others)


def _with_pods(state: FleetState, gone: Iterable[Key], changed: Iterable[Row]) -> FleetState:
    """All pods in one step: they change often, and each step copies which pod is where."""
    places: dict[Key, Place | None] = {key: None for key in gone if key[0] == PODS.kind}
    problems: dict[Key, str] = {}
    for key, body in (row for row in changed if row[0][0] == PODS.kind):
        try:
            places[key] = _place(body)
        except DraError as error:
            places[key], problems[key] = None, _problem(key, error)
    kept = {key: told for key, told in state.problems.items() if key not in places}
    usage = state.pods.with_changes((key[1:], place) for key, place in places.items())
    return replace(state, pods=usage, problems={**kept, **problems})


def _without(state: FleetState, key: Key) -> FleetState:
    """Without an object that is gone, or that can no longer be read."""
    kind, namespace, name = key
    return replace(
        state,
        snapshot=_KINDS[kind].drop(state.snapshot, namespace, name),
        wanted=_less(state.wanted, key),
        problems=_less(state.problems, key),
    )


def _less[T](mapping: Mapping[Key, T], key: Key) -> Mapping[Key, T]:
    return {each: value for each, value in mapping.items() if each != key} if key in mapping else mapping


def _problem(key: Key, error: DraError) -> str:
    kind, namespace, name = key
    return f"{kind} {namespace}/{name}: {error}" if namespace else f"{kind} {name}: {error}"


def _slice(body: bytes) -> PublishedSlice:
    return compile_slice(decode(body, ResourceSlice))


def _claim(body: bytes) -> ResourceClaim:
    """A claim whose holdings can be read, too: one malformed amount shall not stop the whole snapshot."""
    claim = decode(body, ResourceClaim)
    holdings(claim, shares=True)
    return claim


def _place(body: bytes) -> Place | None:
    return place_of(decode(body, Pod))


def _waits_for(claim: ResourceClaim) -> frozenset[str]:
    """The classes that a waiting claim names; a claim without a pod waits for none."""
    if claim.status.allocation is not None or claim.metadata.deletion_timestamp or not owning_pod(claim):
        return frozenset()
    requests = claim.spec.devices.requests
    exact = {each.exactly.device_class_name for each in requests if each.exactly is not None}
    return frozenset(exact | {sub.device_class_name for each in requests for sub in each.first_available})


def _counted(wanted: Mapping[Key, Iterable[str]]) -> Mapping[str, int]:
    return Counter(name for classes in wanted.values() for name in classes)


_KINDS: Final[dict[str, _Kind]] = {
    NODES.kind: _Kind(
        lambda body: decode(body, Node), Snapshot.with_node, lambda snapshot, _, name: snapshot.without_node(name)
    ),
    RESOURCE_SLICES.kind: _Kind(_slice, Snapshot.with_slice, lambda snapshot, _, name: snapshot.without_slice(name)),
    DEVICE_CLASSES.kind: _Kind(
        lambda body: decode(body, DeviceClass),
        Snapshot.with_class,
        lambda snapshot, _, name: snapshot.without_class(name),
    ),
    DEVICE_TAINT_RULES.kind: _Kind(
        lambda body: decode(body, DeviceTaintRule),
        Snapshot.with_taint_rule,
        lambda snapshot, _, name: snapshot.without_taint_rule(name),
    ),
    RESOURCE_CLAIMS.kind: _Kind(_claim, Snapshot.with_claim, Snapshot.without_claim),
}
_PARSERS: Final[dict[str, Callable[[bytes], Any]]] = {
    **{name: kind.parse for name, kind in _KINDS.items()},
    PODS.kind: _place,
}
