"""What is known of a call before it happens, and what an estimate of it says.

Follows `AstNode` and `CallEstimate` of cel-go checker/cost.go and the factors of cel-go common/cost.go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dra.cel.ast import Literal, Node
from dra.cel.cost.paths import Path
from dra.cel.cost.ranges import ONE, UNKNOWN, Range
from dra.cel.cost.sizes import size_at
from dra.cel.types import Type

TRAVERSAL: Final = 0.1  # a character of a string read once
REGEX: Final = 0.25  # a character of a regular expression
LIST_BASE: Final = 10
MAP_BASE: Final = 30
STRUCT_BASE: Final = 40


@dataclass(frozen=True, slots=True)
class Operand:
    """The target or an argument of a call: its node, type, path from `device` (or empty) and size, if known."""

    node: Node
    type: Type
    path: Path
    known: Range | None

    @property
    def size(self) -> Range:
        """The size, from nothing to the largest where it is not known."""
        return UNKNOWN if self.known is None else self.known

    @property
    def element_size(self) -> Range:
        """The size of an item of the list, as far as it is declared."""
        return size_at([*self.path, "@items"] if self.path else []) or UNKNOWN


@dataclass(frozen=True, slots=True)
class CallShape:
    """What is known of a call before it happens."""

    function: str
    overload: str
    target: Operand | None
    args: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Estimate:
    """Cost of the call without its operands, and size of its result where something is known of it."""

    cost: Range
    size: Range | None = None


type Rule = Callable[[CallShape], Estimate | None]

NOMINAL: Final = Estimate(ONE)


def matching(text: Range, pattern: Range) -> Range:
    """Reading a text with a regular expression: one more than the text's length, so that an empty text is not free."""
    return (text + ONE).scaled(TRAVERSAL) * pattern.scaled(REGEX)


def literal_int(operand: Operand) -> int | None:
    """The number, where the operand is one written out."""
    node = operand.node
    return node.value if isinstance(node, Literal) and type(node.value) is int else None
