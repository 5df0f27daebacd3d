"""What is wrong with the selectors of a class, tried on every device of the fleet. Pure.

A selector that fails on one device aborts the scheduling of every pod of the class, so that each such device is named,
with the key it lacks and the selector guarded against that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from dra.allocation import Snapshot
from dra.cel import CelCompileError, CelDevice, CelRuntimeError, Condition, Program, compile_expression
from dra.cel.cost.meter import LIMIT
from gpuinventory.gpuclasses.fleetshapes import FleetShape, shapes_of
from gpuinventory.gpuclasses.matching import Failing, Matches, compiled, matches
from gpuinventory.gpuclasses.traits import Traits, traits_of

_MEMBER: Final = re.compile(r"(?P<of>.+)\.(?P<key>[A-Za-z_][A-Za-z0-9_]*)", re.DOTALL)
_INDEX: Final = re.compile(r"(?P<of>.+)\[(?P<key>\"[^\"]*\"|'[^']*')\]", re.DOTALL)
_ABSENT: Final = "absent"
_STRANGER: Final = CelDevice.of("driver-of-nobody.invalid", {}, {}, allow_multiple=False)


class FindingCode(StrEnum):
    """What was found; those of `BLOCKING` must not be stored."""

    COMPILE = "compile"
    COSTLY = "costly"
    ABORTS = "aborts"
    NOTHING = "nothing"
    EVERYTHING = "everything"
    DRIVERS = "drivers"


BLOCKING: Final = frozenset({FindingCode.COMPILE, FindingCode.COSTLY})


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fault. `selector` counts from 1, 0 stands for all together.

    For ABORTS `device` is the first that the selector fails on, `devices` how many there are, `key` what it lacks
    ("" where it is another error), `guarded` the whole selector with a guard that was tried ("" where none helped).
    """

    code: FindingCode
    selector: int = 0
    error: str = ""
    device: str = ""
    devices: int = 0
    key: str = ""
    guarded: str = ""

    @property
    def blocking(self) -> bool:
        """Whether the API server would refuse it."""
        return self.code in BLOCKING


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Devices of one kind that the selectors take."""

    traits: Traits
    devices: int
    example: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The live answer of the editor: how many of all devices match, of which kinds, and what is wrong.

    `unasked` devices were too many to be looked at.
    """

    devices: int
    total: int
    unasked: int = 0
    taken: tuple[Taken, ...]
    findings: tuple[Finding, ...]


def check(expressions: Sequence[str], snapshot: Snapshot) -> Check:
    """What these selectors, all of which must hold, mean to this fleet. Nothing is raised."""
    unfit = tuple(_unfit(expressions))
    programs = compiled(expressions)
    if unfit or isinstance(programs, CelCompileError):
        return Check(devices=0, total=0, taken=(), findings=unfit)
    found = matches(programs, snapshot, shapes_of(snapshot))
    return Check(
        devices=found.devices,
        total=found.total,
        unasked=found.unasked,
        taken=tuple(map(_taken, found.taken)),
        findings=(*_aborts(programs, found), *_extent(programs, found)),
    )


def _unfit(expressions: Sequence[str]) -> Iterator[Finding]:
    """Selectors that the API server refuses: it compiles new ones in a stricter environment, and bounds their cost."""
    for number, expression in enumerate(expressions, 1):
        try:
            program = compile_expression(expression, environment="new")
            compile_expression(expression)
        except CelCompileError as error:
            yield Finding(code=FindingCode.COMPILE, selector=number, error=str(error))
            continue
        if program.max_cost > LIMIT:
            yield Finding(code=FindingCode.COSTLY, selector=number, error=f"{program.max_cost} of at most {LIMIT}")


def _taken(found: FleetShape) -> Taken:
    return Taken(traits=traits_of(found.shape), devices=found.devices, example=str(found.example))


def _aborts(programs: Sequence[Program], found: Matches) -> Iterator[Finding]:
    """One finding for each selector and error, with the number of devices it concerns."""
    groups: dict[tuple[int, str], list[Failing]] = {}
    for each in found.failing:
        groups.setdefault((each.selector, each.error), []).append(each)
    for (number, error), failing in groups.items():
        program, first = programs[number], failing[0]
        condition = _failed_condition(program, first)
        yield Finding(
            code=FindingCode.ABORTS,
            selector=number + 1,
            error=error,
            device=str(first.found.example),
            devices=sum(each.found.devices for each in failing),
            key=_absent(condition),
            guarded=_guarded(program, condition, failing),
        )


def _failed_condition(program: Program, failing: Failing) -> Condition | None:
    conditions = program.explain(failing.device).failing
    return next((each for each in conditions if each.error is not None), None)


def _absent(condition: Condition | None) -> str:
    """What the condition reads and the device does not have, as the selector writes it."""
    return next((each.text for each in condition.seen if each.value == _ABSENT), "") if condition else ""


def _guarded(program: Program, condition: Condition | None, failing: Sequence[Failing]) -> str:
    """The selector with its failing condition guarded, if that compiles and fails on none of these devices."""
    guard = _guard(_absent(condition))
    if condition is None or not guard or program.text.count(condition.text) != 1:
        return ""
    text = program.text.replace(condition.text, f"({guard} && {condition.text})")
    try:
        changed = compile_expression(text, environment="new")
        for each in failing:
            changed.matches(each.device)
    except (CelCompileError, CelRuntimeError):
        return ""
    return text


def _guard(absent: str) -> str:
    if found := _MEMBER.fullmatch(absent):
        return f"has({found[0]})"
    if found := _INDEX.fullmatch(absent):
        return f"{found['key']} in {found['of']}"
    return ""


def _extent(programs: Sequence[Program], found: Matches) -> Iterator[Finding]:
    """A class that takes nothing, anything of anybody, or devices of several drivers."""
    drivers = sorted({each.shape.driver for each in found.taken})
    if all(map(_takes_a_stranger, programs)):
        yield Finding(code=FindingCode.EVERYTHING, devices=found.total, key=", ".join(drivers))
    elif not found.devices:
        yield Finding(code=FindingCode.NOTHING, devices=found.total)
    elif len(drivers) > 1:
        yield Finding(code=FindingCode.DRIVERS, devices=found.devices, key=", ".join(drivers))


def _takes_a_stranger(program: Program) -> bool:
    """Whether the selector takes a device of which nothing is known, whoever its driver is."""
    try:
        return program.matches(_STRANGER)
    except CelRuntimeError:
        return False
