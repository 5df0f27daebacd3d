"""Whether an evaluation may cost more than the limit although the estimate does not: estimates are no upper bounds.

cel-go's estimate takes a flattened list for as long as the list of lists, an empty text for free where a pattern is
matched against it, fields of a computed value for cheaper than they are. What is not sure to stay below the limit is
metered; the margins below are for devices within the limits of the API.
"""

from __future__ import annotations

from typing import Final

from dra.cel.ast import Call, Checked, Comprehension, ListNode, Node, Select
from dra.cel.cost.meter import LIMIT
from dra.cel.types import Kind
from dra.cel.validate import descendants

# Their cost goes by what lists within lists hold, which estimates do not look at.
_DEEP: Final = frozenset({"flatten", "isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"})
_FLAT: Final = frozenset({Kind.BOOL, Kind.INT, Kind.UINT, Kind.DOUBLE, Kind.STRING, Kind.DURATION, Kind.TIMESTAMP})
# Each costs at most 1 more than estimated, and the size of its result is no larger. Others may be estimated as nothing.
_SURE: Final = frozenset(
    {"_&&_", "_||_", "!_", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "_+_", "_-_", "_*_", "_/_", "_%_"}
    | {"-_", "_[_]", "_[?_]", "_?._", "_?_:_", "@in", "@not_strictly_false", "size", "contains", "startsWith"}
    | {"endsWith", "matches", "lowerAscii", "upperAscii", "isGreaterThan", "isLessThan", "compareTo", "hasValue"}
    | {
        "orValue",
        "value",
        "cel.@mapInsert",
        "dyn",
        "int",
        "double",
        "major",
        "minor",
        "patch",
        "sign",
        "asInteger",
        "range",
    }
)
_MARGIN_OF_A_CALL: Final = 300  # of `validate`, whose longest pattern has 1103 characters; of a list within a device
_MARGIN_OF_SIZES: Final = 10  # bytes of a character, and sizes counted otherwise


def may_exceed(checked: Checked, estimated: int) -> bool:
    """Whether evaluating the expression may cost more than the limit, though at most `estimated` by its estimate."""
    nodes = list(descendants(checked.root))
    if estimated > LIMIT:
        return True
    if any(map(_loops, nodes)):
        # No step costs more than 1 above its estimate, and no loop has more rounds than estimated.
        return not all(map(_is_sure, nodes)) or estimated * (len(nodes) + 1) > LIMIT
    if any(_is_deep(checked, node) for node in nodes):
        return True
    return estimated * _MARGIN_OF_SIZES + len(nodes) * _MARGIN_OF_A_CALL > LIMIT


def _loops(node: Node) -> bool:
    """Whether the node is a comprehension over something: cel.bind's is over nothing."""
    over = node.iter_range if isinstance(node, Comprehension) else None
    return over is not None and not (isinstance(over, ListNode) and not over.elements)


def _is_sure(node: Node) -> bool:
    return not isinstance(node, Call) or node.function in _SURE


def _is_deep(checked: Checked, node: Node) -> bool:
    """Whether the call reads lists within lists: of an attribute's value it cannot, which has none."""
    if not isinstance(node, Call) or node.function not in _DEEP or node.target is None:
        return False
    target = node.target
    if node.function == "flatten":
        return True
    given = checked.types[target.id]
    if given.kind is Kind.LIST:
        return given.params[0].kind not in _FLAT
    return given.kind is not Kind.STRING and not _is_of_device(checked, target)


def _is_of_device(checked: Checked, node: Node) -> bool:
    while isinstance(node, Select) or (isinstance(node, Call) and node.function == "_[_]"):
        node = node.operand if isinstance(node, Select) else node.args[0]
    return checked.names.get(node.id) == "device"
