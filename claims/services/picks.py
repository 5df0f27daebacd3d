"""What the form offers to pick from: attributes of a class's devices, and taints of the fleet. Reads memory only."""

from __future__ import annotations

from typing import Final

from claims.services.kept import Kept
from dra.allocation import Snapshot
from gpuinventory.gpuclasses import (
    AttributeSeen,
    GPUClassView,
    TaintSeen,
    attributes_of,
    expressions_of,
    shapes_of,
    taints_of,
)

_ATTRIBUTES: Final = Kept[tuple[AttributeSeen, ...]](64)
_TAINTS: Final = Kept[tuple[TaintSeen, ...]](1)


def attributes(view: GPUClassView | None, snapshot: Snapshot) -> tuple[AttributeSeen, ...]:
    """What can be matched on within the class, or in the whole fleet where none is chosen."""
    device_class = snapshot.classes.get(view.device_class) if view else None
    expressions = (*expressions_of(device_class), *(view.selectors if view else ())) if device_class else ()
    return _ATTRIBUTES.answer(
        snapshot.pools, expressions, lambda: attributes_of(view.taken if view else shapes_of(snapshot))
    )


def taints(snapshot: Snapshot) -> tuple[TaintSeen, ...]:
    """Taints that keep devices from claims."""
    rules = tuple(each.spec.taint for each in snapshot.taint_rules.values())
    return _TAINTS.answer(snapshot.pools, rules, lambda: taints_of(snapshot))
