"""Fields whose feature gates are off in Kubernetes 1.37 as it comes: dropped from new objects without a word.

`dropDisabledFields` of pkg/registry/resource/*/strategy.go and pkg/api/resourceclaimspec. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from simulator import kinds
from simulator.kinds import Kind
from simulator.store import Object

EVERY: Final = "*"
_DEVICE: Final = ("spec", "devices", EVERY)
_ATTRIBUTE: Final = (*_DEVICE, "attributes", EVERY)
_SLICE: Final = (
    ("spec", "skipNodeOperations"),
    ("spec", "partitionTypeAttribute"),
    (*_DEVICE, "nodeAllocatableResources"),
    (*_DEVICE, "consumesCounters", EVERY, "compatibilityGroups"),
    *((*_ATTRIBUTE, name) for name in ("strings", "ints", "bools", "versions")),
)
_REQUEST: Final = ("spec", "devices", "requests", EVERY)
_CLAIM: Final = (
    (*_REQUEST, "exactly", "derivedAttributes"),
    (*_REQUEST, "firstAvailable", EVERY, "derivedAttributes"),
)
_OFF: Final[Mapping[Kind, tuple[tuple[str, ...], ...]]] = {
    kinds.RESOURCE_SLICE: _SLICE,
    kinds.RESOURCE_CLAIM: _CLAIM,
    kinds.RESOURCE_CLAIM_TEMPLATE: tuple(("spec", *path) for path in _CLAIM),
}


def drop_disabled(kind: Kind, given: Object) -> Object:
    """The object without them."""
    for path in _OFF.get(kind, ()):
        given = _without(given, path)
    return given


def _without(value: Any, path: tuple[str, ...]) -> Any:
    first, rest = path[0], path[1:]
    if first == EVERY and isinstance(value, list):
        return [_without(each, rest) for each in value]
    if not isinstance(value, dict):
        return value
    if first == EVERY:
        return {key: _without(each, rest) for key, each in value.items()}
    if first not in value:
        return value
    if not rest:
        return {key: each for key, each in value.items() if key != first}
    return value | {first: _without(value[first], rest)}
