"""Which of a fleet's devices a list of selectors takes, in the scheduler's order: the first that says no ends it. Pure.

A selector that fails on a device aborts the scheduler's search (`CELDeviceSelector` errors are fatal); whom it fails on
is kept beside the matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Final

from dra.allocation import Snapshot
from dra.cel import CelCompileError, CelDevice, CelRuntimeError, Program, compile_expression
from gpuinventory.gpuclasses.fleetshapes import FleetShape, devices_of, reads_identity, seen_by_selectors

MOST_ALONE: Final = 2_000
"""Devices that are asked each by itself, about a quarter of a second's work; those after them are not looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """Devices on which selector number `selector` (from 0) fails, how, and what the selector saw of the first one."""

    selector: int
    found: FleetShape
    error: str
    device: CelDevice


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """What the selectors say of a fleet of `total` devices, of which `unasked` were too many to be looked at."""

    taken: tuple[FleetShape, ...]
    failing: tuple[Failing, ...]
    total: int
    unasked: int = 0

    @property
    def devices(self) -> int:
        """The number of devices that are taken."""
        return sum(each.devices for each in self.taken)


def compiled(expressions: Iterable[str]) -> tuple[Program, ...] | CelCompileError:
    """The selectors, or the error of the first that is none."""
    try:
        return tuple(compile_expression(each) for each in expressions)
    except CelCompileError as error:
        return error


def matches(programs: Sequence[Program], snapshot: Snapshot, shapes: tuple[FleetShape, ...]) -> Matches:
    """What the selectors say of every device of the snapshot, whose kinds are `shapes`; selectors that read identifiers
    are asked for each device by itself.
    """
    unasked = 0
    total = sum(each.devices for each in shapes)
    asked: Iterator[tuple[FleetShape, CelDevice]] = ((each, each.shape.cel) for each in shapes)
    if any(map(reads_identity, programs)):
        shapes = tuple(_could_match(programs, shapes))
        unasked = max(sum(each.devices for each in shapes) - MOST_ALONE, 0)
        asked = islice(_alone(shapes, snapshot), MOST_ALONE)
    taken: list[FleetShape] = []
    failing: list[Failing] = []
    for found, device in asked:
        said = _said(programs, device)
        if said is True:
            taken.append(found)
        elif said is not False:
            failing.append(Failing(selector=said[0], found=found, error=said[1], device=device))
    return Matches(taken=_together(taken), failing=tuple(failing), total=total, unasked=unasked)


def _could_match(programs: Sequence[Program], shapes: Iterable[FleetShape]) -> Iterator[FleetShape]:
    """The kinds of devices that the selectors before the first that reads identifiers do not leave out."""
    before = tuple(takewhile(lambda program: not reads_identity(program), programs))
    return (each for each in shapes if _said(before, each.shape.cel) is not False)


def _alone(shapes: Iterable[FleetShape], snapshot: Snapshot) -> Iterator[tuple[FleetShape, CelDevice]]:
    """Every device of these kinds by itself."""
    for shape, identity, name in devices_of(snapshot, {each.shape for each in shapes}):
        yield FleetShape(shape=shape, devices=1, example=name), seen_by_selectors(shape, identity)


def _said(programs: Sequence[Program], device: CelDevice) -> bool | tuple[int, str]:
    for number, program in enumerate(programs):
        try:
            if not program.matches(device):
                return False
        except CelRuntimeError as error:
            return number, str(error)
    return True


def _together(found: Iterable[FleetShape]) -> tuple[FleetShape, ...]:
    """Devices of one shape as one entry."""
    sums: dict[int, FleetShape] = {}
    for each in found:
        known = sums.get(id(each.shape))
        number = each.devices + (known.devices if known else 0)
        first = known.example if known else each.example
        sums[id(each.shape)] = FleetShape(shape=each.shape, devices=number, example=first)
    return tuple(sums.values())
