"""What can be said of a call of `string.format` before it runs: its text is a literal and its list is written out.

Follows `stringFormatValidator` of cel-go ext/formatting.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dra.cel.ast import Call, ListNode, Literal, MapNode, Node
from dra.cel.libraries.formatting import WRONG_TYPE, Clause, FormatError, interpolate
from dra.cel.types import Kind, Type

_NUMBERS: Final = frozenset({Kind.INT, Kind.UINT})
_TEXT: Final = frozenset({Kind.STRING, Kind.BYTES})
_DOUBLES: Final = frozenset({Kind.DOUBLE, Kind.STRING})  # a string may say NaN or Infinity
_PRINTABLE: Final = _NUMBERS | _TEXT | {Kind.LIST, Kind.MAP, Kind.DOUBLE, Kind.BOOL, Kind.TIMESTAMP, Kind.DURATION}
_TAKES: Final = {
    "s": _PRINTABLE | {Kind.TYPE, Kind.NULL},
    "d": _NUMBERS,
    "f": _DOUBLES,
    "e": _DOUBLES,
    "b": _NUMBERS | {Kind.BOOL},
    "x": _NUMBERS | _TEXT,
    "X": _NUMBERS | _TEXT,
    "o": _NUMBERS,
}


@dataclass(frozen=True, slots=True)
class FormatFault:
    """What is wrong with a call, and the node that it is said of."""

    message: str
    node: Node


def check_format(call: Call, types: Mapping[int, Type]) -> FormatFault | None:
    """What is wrong with a call of `format`; None also where the text or the list is known only later."""
    if call.function != "format" or not isinstance(call.target, Literal) or len(call.args) != 1:
        return None
    text, arguments = call.target.value, call.args[0]
    if not isinstance(text, str) or not isinstance(arguments, ListNode):
        return None
    checker = _Checker(arguments.elements, types)
    try:
        _, taken = interpolate(text, len(arguments.elements), checker.check)
    except FormatError as fault:
        return FormatFault(str(fault), checker.refused or call)
    if taken == len(arguments.elements):
        return None
    given = len(arguments.elements)
    return FormatFault(f"too many arguments supplied to string.format (expected {taken}, got {given})", call)


class _Checker:
    """Looks at the types of arguments where a call would print them."""

    __slots__ = ("_arguments", "_types", "refused")

    def __init__(self, arguments: tuple[Node, ...], types: Mapping[int, Type]) -> None:
        self._arguments = arguments
        self._types = types
        self.refused: Node | None = None

    def check(self, index: int, clause: Clause) -> str:
        """Nothing to print, or FormatError; `refused` is then the node."""
        argument = self._arguments[index]
        self.refused = self._unprintable(argument) if clause.verb == "s" else self._unfit(argument, clause.verb)
        if self.refused is None:
            return ""
        name = self._types[self.refused.id].name
        raise FormatError(f"error during formatting: {WRONG_TYPE[clause.verb]}{name}")

    def _unfit(self, node: Node, verb: str) -> Node | None:
        kind = self._types[node.id].kind
        return None if kind is Kind.DYN or kind in _TAKES[verb] else node

    def _unprintable(self, root: Node) -> Node | None:
        """The first node, as they are written, that %s cannot print; lists and maps written out are entered."""
        waiting = [root]
        while waiting:
            node = waiting.pop()
            if self._unfit(node, "s"):
                return node
            if isinstance(node, ListNode):
                waiting.extend(reversed(node.elements))
            elif isinstance(node, MapNode):
                waiting.extend(part for entry in reversed(node.entries) for part in (entry.value, entry.key))
        return None
