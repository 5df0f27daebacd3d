"""Nodes of one kind: those that get the same answer for a wish, so that one of them is asked for all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from dra.advice.selectors import expressions, reads_identifiers
from dra.allocation import Answer, Snapshot, is_identifier
from dra.errors import InvalidObjectError
from dra.objects.resourceclaim import DeviceRequest, ExactDeviceRequest, ResourceClaim

NOT_ASKED: Final[Mapping[str, Answer]] = MappingProxyType({})
"""No answer of any node is known."""


def node_kinds(
    snapshot: Snapshot, resource_claims: Sequence[ResourceClaim], *, classes: Sequence[str] = ()
) -> tuple[tuple[str, ...], ...]:
    """Names of nodes, grouped: the first of each group stands for it. A wish that reads identifiers of devices (uuid
    and the like), itself or by one of its classes or `classes`, has a group for each node.
    """
    if any(_reads_identifiers(snapshot, each) for each in resource_claims) or any(
        reads_identifiers(text) for name in classes for text in _class_texts(snapshot, name)
    ):
        return tuple((name,) for name in snapshot.nodes)
    kinds: dict[object, list[str]] = {}
    for name in snapshot.nodes:
        kinds.setdefault(_key(snapshot, name), []).append(name)
    return tuple(map(tuple, kinds.values()))


def _key(snapshot: Snapshot, name: str) -> object:
    """A node that meets a malformed node selector is of its own kind: the scheduler's error names what it met."""
    try:
        return snapshot.node(name).key
    except InvalidObjectError:
        return name


def _reads_identifiers(snapshot: Snapshot, resource_claim: ResourceClaim) -> bool:
    devices = resource_claim.spec.devices
    named = (each.match_attribute or each.distinct_attribute or "" for each in devices.constraints)
    if any(map(is_identifier, named)):
        return True
    return any(map(reads_identifiers, _texts(snapshot, devices.requests)))


def _texts(snapshot: Snapshot, device_requests: Iterable[DeviceRequest]) -> Iterator[str]:
    for exact in _exact(device_requests):
        yield from expressions(exact.selectors)
        yield from (each.expression for each in exact.derived_attributes)
        yield from _class_texts(snapshot, exact.device_class_name)


def _class_texts(snapshot: Snapshot, name: str) -> tuple[str, ...]:
    device_class = snapshot.classes.get(name)
    return expressions(device_class.spec.selectors) if device_class is not None else ()


def _exact(device_requests: Iterable[DeviceRequest]) -> Iterator[ExactDeviceRequest]:
    for each in device_requests:
        if each.exactly is not None:
            yield each.exactly
        yield from each.first_available
