"""What cel-go's program has in place of each node of the tree, as far as costs depend on it.

Follows cel-go interpreter/planner.go and interpreter/decorators.go. Names, fields and keys in a row are one attribute
there, and so is a condition with two results: what stands inside of an attribute is resolved without a step of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dra.cel.ast import Call, Checked, Comprehension, Ident, ListNode, MapNode, Node, Select, StructNode

_REACHING: Final = frozenset({"_[_]", "_[?_]", "_?._"})


class Roles:
    """The parts of a checked expression. `constants` are the values made beforehand, by node id.

    `resolved` are attributes inside of attributes.
    """

    def __init__(self, checked: Checked, constants: Mapping[int, object]) -> None:
        self._checked = checked
        self.constants = constants
        self.resolved: set[int] = set()
        self._visit(checked.root)

    def operands(self, node: Call) -> tuple[Node, ...]:
        """What is evaluated for a call: the target, unless it is a namespace, and the arguments."""
        if node.target is None or node.id in self._checked.names:
            return node.args
        return (node.target, *node.args)

    def function(self, node: Call) -> str:
        """The function's full name."""
        return self._checked.names.get(node.id, node.function)

    def overload(self, node: Call) -> str:
        """The overload's id, empty where the checker left more than one."""
        overloads = self._checked.overloads.get(node.id, ())
        return overloads[0] if len(overloads) == 1 else ""

    def is_attribute(self, node: Node) -> bool:
        """Whether the node ends an attribute: a name, a field, a key or a condition."""
        if node.id in self.constants:
            return False
        return isinstance(node, Ident) or reaches(node) or is_condition(node)

    def is_set_test(self, node: Call) -> bool:
        """Whether `in` became a look into a set: among numbers, bools and strings, all constant."""
        values = self.constants.get(node.args[1].id) if self.overload(node) == "in_list" else None
        return isinstance(values, tuple) and all(isinstance(each, bool | int | float | str) for each in values)

    def root_of(self, node: Node) -> Node:
        """Where an attribute begins: what its first field or key is taken from."""
        while reaches(node) and node.id not in self.constants:
            node = operand_of(node)
        return node

    def _visit(self, node: Node) -> None:
        if node.id in self.constants:
            return
        for part in self.parts(node):
            self._visit(part)
        if reaches(node) or is_condition(node):
            inner = self.parts(node)[1:] if is_condition(node) else self.parts(node)
            self.resolved.update(part.id for part in inner if self.is_attribute(part))

    def parts(self, node: Node) -> tuple[Node, ...]:
        """The nodes right below, in the order in which they are evaluated."""
        match node:
            case Select() if node.id not in self._checked.names:
                return (node.operand,)
            case Call():
                return self.operands(node)
            case Comprehension():
                return node.iter_range, node.accu_init, node.loop_condition, node.loop_step, node.result
        return _elements(node)


def _elements(node: Node) -> tuple[Node, ...]:
    match node:
        case ListNode():
            return node.elements
        case MapNode():
            return tuple(part for entry in node.entries for part in (entry.key, entry.value))
        case StructNode():
            return tuple(field.value for field in node.fields)
    return ()


def reaches(node: Node) -> bool:
    """Whether the node takes a field or a key from its operand."""
    return isinstance(node, Select) or (isinstance(node, Call) and node.function in _REACHING)


def is_condition(node: Node) -> bool:
    """Whether the node is a condition with two results."""
    return isinstance(node, Call) and node.function == "_?_:_"


def operand_of(node: Node) -> Node:
    """What a field or key is taken from."""
    if isinstance(node, Select):
        return node.operand
    assert isinstance(node, Call)
    return node.args[0]
