"""How selections and conditions are chained in the syntax tree. Evaluates nothing."""

from __future__ import annotations

from dra.cel.ast import Call, Literal, Node, Select


def selected(node: Node) -> tuple[Node | None, str]:
    """Operand and text of operand.text or operand["text"]; no operand for any other node."""
    if isinstance(node, Select) and not node.test_only:
        return node.operand, node.field
    if isinstance(node, Call) and node.function == "_[_]":
        operand, index = node.args
        if isinstance(index, Literal) and isinstance(index.value, str):
            return operand, index.value
    return None, ""


def flattened(node: Node, function: str) -> list[Node]:
    """The terms that a chain of `&&` or `||` joins, in their order."""
    if isinstance(node, Call) and node.function == function:
        return [term for each in node.args for term in flattened(each, function)]
    return [node]
