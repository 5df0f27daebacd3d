"""Which selectors of a class or a device request a device fails, and by which conjunct and value.

Answers are kept per expression and shape, since all devices of a shape see a selector alike, unless the expression
reads identifiers: those are asked per device.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from dra.advice.explanation import Code, Facts, Miss
from dra.allocation.shapes import Identity, Shape, is_identifier
from dra.cel import CelCompileError, CelRuntimeError, Condition, compile_expression
from dra.objects.deviceclass import DeviceSelector

_MEMORY: Final = 16384  # answers kept; one is a few hundred bytes
_EXPRESSIONS: Final = 1024


@lru_cache(maxsize=_EXPRESSIONS)
def reads_identifiers(expression: str) -> bool:
    """Whether the answer can differ between devices of one shape. True where that is not known."""
    try:
        reads = compile_expression(expression).reads
    except CelCompileError:
        return False
    return reads is None or any(source == "attributes" and is_identifier(name) for source, _, name in reads)


def expressions(selectors: Iterable[DeviceSelector]) -> tuple[str, ...]:
    """The CEL texts of the selectors."""
    return tuple(selector.cel.expression for selector in selectors if selector.cel is not None)


def selector_miss(selector: int, expression: str, shape: Shape, identity: Identity) -> Miss | None:
    """Why a device of that shape fails selector number `selector`, or None where it passes."""
    return _missed(selector, expression, shape, identity if identity and reads_identifiers(expression) else ())


@lru_cache(maxsize=_MEMORY)
def _missed(selector: int, expression: str, shape: Shape, identity: Identity) -> Miss | None:
    facts = _judged(expression, shape, identity)
    return None if facts is None else _miss(("selector", selector), *facts.items())


@lru_cache(maxsize=_MEMORY)
def _miss(*facts: tuple[str, str | int | tuple[str, ...]]) -> Miss:
    """One object for equal reasons, by which devices are then grouped."""
    found: Facts = dict(facts)
    return Miss(code=Code.SELECTOR_ERROR if "error" in found else Code.SELECTOR_FALSE, facts=found)


def _judged(expression: str, shape: Shape, identity: Identity) -> Facts | None:
    try:
        program = compile_expression(expression)
    except CelCompileError as error:
        return {"conjunct": expression.strip(), "error": str(error)}
    device = shape.cel_of(identity) if identity else shape.cel
    try:
        matches = program.matches(device)
    except CelRuntimeError as error:
        return {
            "conjunct": expression.strip(),
            **_first(program.explain(device).failing, wanted=None),
            "error": str(error),
        }
    if matches:
        return None
    return {"conjunct": expression.strip(), **_first(program.explain(device).failing, wanted=False)}


def _first(failing: Sequence[Condition], *, wanted: bool | None) -> Facts:
    """The first condition with that result, what it saw, and how many conditions do not hold in all.

    An error beside a false condition does not count: `&&` absorbs it.
    """
    found = next((each for each in failing if each.result is wanted), None)
    if found is None:
        return {}
    values = tuple(f"{seen.text} = {seen.value}" for seen in found.seen)
    return {"conjunct": found.text, "values": values, "failing": len(failing)}
