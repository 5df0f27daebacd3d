"""Which selectors of a class or a device request a device fails, and by which conjunct and value.

Answers are kept per expression and shape, since all devices of a shape see a selector alike, unless the expression
reads identifiers: those are asked per device.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from dra.advice.explanation import Code, Facts, Miss
from dra.allocation.shapes import Identity, Shape, is_identifier
from dra.cel import CelCompileError, Condition, Explanation, compile_expression
from dra.objects.deviceclass import DeviceSelector

_MEMORY: Final = 16384  # answers kept; one is a few hundred bytes


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
    seen = identity if identity and reads_identifiers(expression) else ()
    facts = _judged(expression, shape, seen)
    if facts is None:
        return None
    code = Code.SELECTOR_ERROR if "error" in facts else Code.SELECTOR_FALSE
    return Miss(code=code, facts={"selector": selector, **facts})


@lru_cache(maxsize=_MEMORY)
def _judged(expression: str, shape: Shape, identity: Identity) -> Facts | None:
    try:
        program = compile_expression(expression)
    except CelCompileError as error:
        return {"conjunct": expression.strip(), "error": str(error)}
    said = program.explain(shape.cel_of(identity) if identity else shape.cel)
    if said.result:
        return None
    if said.error is not None:
        return {"conjunct": _raising(said).text if said.failing else expression.strip(), "error": said.error}
    return _false(next(each for each in said.conditions if each.result is False))


def _raising(said: Explanation) -> Condition:
    """The condition that raised the error; a false one beside it would have absorbed it."""
    return next((each for each in said.failing if each.error == said.error), said.failing[0])


def _false(condition: Condition) -> Facts:
    values = tuple(f"{seen.text} = {seen.value}" for seen in condition.seen)
    return {"conjunct": condition.text, "values": values}
