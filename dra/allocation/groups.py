"""Compatibility groups of a counter set: which devices may draw on it together. Pure, but mutable.

Gate DRADeviceCompatibilityGroups; follows `compatibility_groups.go` of the experimental allocator: all devices on a
counter set, allocated or in hand, must have a group in common; devices without groups go only with their like.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dra.allocation.shapes import Shape
from dra.allocation.view import PoolView


@dataclass(frozen=True, slots=True)
class _Common:
    """What the devices so far have in common; None groups: they declared none."""

    groups: frozenset[str] | None

    def admits(self, groups: frozenset[str]) -> bool:
        if not groups or self.groups is None:
            return not groups and self.groups is None
        return not self.groups.isdisjoint(groups)

    def add(self, groups: frozenset[str]) -> _Common:
        if not groups or self.groups is None:
            return self
        return _Common(self.groups & groups)


class Compatibility:
    """The groups in play on each counter set; what was added last is removed first."""

    def __init__(self) -> None:
        self._common: dict[tuple[int, str], list[_Common | None]] = {}

    def add(self, pool: PoolView, shape: Shape) -> bool:
        """Whether the device goes with the others; it is then counted among them."""
        for number, (counter_set, groups) in enumerate(shape.groups):
            stack = self._stack(pool, counter_set)
            common = stack[-1]
            if common is not None and not common.admits(groups):
                self._pop(pool, shape.groups[:number])
                return False
            stack.append(_joined(common, groups))
        return True

    def remove(self, pool: PoolView, shape: Shape) -> None:
        """Undo the latest `add` that succeeded."""
        self._pop(pool, shape.groups)

    def _pop(self, pool: PoolView, groups: Iterable[tuple[str, frozenset[str]]]) -> None:
        for counter_set, _ in groups:
            self._common[id(pool), counter_set].pop()

    def _stack(self, pool: PoolView, counter_set: str) -> list[_Common | None]:
        key = (id(pool), counter_set)
        if key not in self._common:
            self._common[key] = [_allocated(pool, counter_set)]
        return self._common[key]


def _joined(common: _Common | None, groups: frozenset[str]) -> _Common:
    return _Common(groups or None) if common is None else common.add(groups)


def _allocated(pool: PoolView, counter_set: str) -> _Common | None:
    """What allocated devices, here or on other nodes, leave in common on a counter set."""
    used = pool.use.whole | pool.use.shared
    common: _Common | None = None
    for layout in (each.layout for each in (*pool.gathered.slices, *pool.gathered.elsewhere)):
        for name, shape in zip(layout.names, layout.shapes, strict=True):
            if name in used:
                for name_of_set, groups in shape.groups:
                    if name_of_set == counter_set:
                        common = _joined(common, groups)
    return common
