"""A wish in the form in which nodes are asked: resource claims with what decides their answer beside the node. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from dra.allocation import is_identifier
from dra.cel import CelCompileError, compile_expression
from dra.objects import DeviceClass, DeviceSelector, ExactDeviceRequest, ResourceClaim


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """Resource claims to be granted together. Questions with the same `key` get the same answer from the same node.

    `reads_identity`: a selector or constraint reads what is each device's own, so that every node has to be asked.
    """

    claims: tuple[ResourceClaim, ...]
    key: bytes
    reads_identity: bool

    @property
    def only_request(self) -> ExactDeviceRequest | None:
        """The device request, if there is but one and it names a count."""
        requests = [request for claim in self.claims for request in claim.spec.devices.requests]
        exactly = requests[0].exactly if len(requests) == 1 else None
        return exactly if exactly is not None and exactly.allocation_mode in {"", "ExactCount"} else None

    def with_count(self, count: int) -> Question:
        """The same for `count` devices of the only request."""
        claims = tuple(_counted(each, count) for each in self.claims)
        return Question(claims, b"%d:%b" % (count, self.key), self.reads_identity)


def question(claims: tuple[ResourceClaim, ...], classes: Mapping[str, DeviceClass]) -> Question:
    """The claims with the classes that they name. A class that is missing or a selector that does not compile is the
    nodes' to answer.
    """
    named = {each.device_class_name for each in _requests(claims)}
    used = {name: classes[name] for name in sorted(named) if name in classes}
    # Names of claims stand in the texts of errors.
    asked = [(each.metadata.namespace, each.metadata.name, each.spec) for each in claims]
    key = msgspec.msgpack.encode((asked, {name: each.spec for name, each in used.items()}))
    return Question(claims, key, _reads_identity(claims, tuple(used.values())))


def _requests(claims: Sequence[ResourceClaim]) -> Iterator[ExactDeviceRequest]:
    for request in (request for claim in claims for request in claim.spec.devices.requests):
        if request.exactly is not None:
            yield request.exactly
        yield from request.first_available


def _reads_identity(claims: Sequence[ResourceClaim], classes: Sequence[DeviceClass]) -> bool:
    if any(request.derived_attributes for request in _requests(claims)):
        return True  # their expressions may read anything
    selectors = [each for device_class in classes for each in device_class.spec.selectors]
    selectors += [each for request in _requests(claims) for each in request.selectors]
    return any(map(_selector_reads, selectors)) or any(map(is_identifier, _matched(claims)))


def _selector_reads(selector: DeviceSelector) -> bool:
    if selector.cel is None:
        return False
    try:
        reads = compile_expression(selector.cel.expression).reads
    except CelCompileError:
        return False
    return reads is None or any(kind == "attributes" and is_identifier(name) for kind, _, name in reads)


def _matched(claims: Sequence[ResourceClaim]) -> Iterator[str]:
    for constraint in (each for claim in claims for each in claim.spec.devices.constraints):
        yield constraint.match_attribute or constraint.distinct_attribute or ""


def _counted(claim: ResourceClaim, count: int) -> ResourceClaim:
    replace = msgspec.structs.replace
    requests = tuple(
        replace(request, exactly=replace(request.exactly, count=count)) if request.exactly is not None else request
        for request in claim.spec.devices.requests
    )
    return replace(claim, spec=replace(claim.spec, devices=replace(claim.spec.devices, requests=requests)))
