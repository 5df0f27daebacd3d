"""The syntax tree of an expression, macros expanded as cel-go expands them. Nodes are frozen and numbered.

Every node has an id, unique in its tree, and the place it came from: offsets in code points into the text.
"""

from __future__ import annotations

from dataclasses import dataclass

from dra.cel.types import Type


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Node:
    """What all nodes have: `id`, and `start` (the place errors name), offset in code points."""

    id: int
    start: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Literal(Node):
    """A constant: bool, int, UInt, float, str, bytes or None."""

    value: object


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ident(Node):
    """A name, or a name that starts with a dot."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Select(Node):
    """operand.field, or has(operand.field) when `test_only`."""

    operand: Node
    field: str
    test_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Call(Node):
    """function(args) or target.function(args). Operators have cel-go's names: _&&_, _==_, _[_], _?_:_, !_, -_, @in."""

    function: str
    args: tuple[Node, ...]
    target: Node | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ListNode(Node):
    """[elements]; `optional` holds the indices of elements written with `?`."""

    elements: tuple[Node, ...]
    optional: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entry(Node):
    """key: value of a map literal; `optional` when written `?key: value`."""

    key: Node
    value: Node
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MapNode(Node):
    """{entries}."""

    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Field(Node):
    """name: value of a message literal."""

    name: str
    value: Node
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StructNode(Node):
    """type_name{fields}."""

    type_name: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comprehension(Node):
    """A loop with an accumulator, which macros expand to (cel-go ast.ComprehensionExpr)."""

    iter_range: Node
    iter_var: str
    iter_var2: str
    accu_var: str
    accu_init: Node
    loop_condition: Node
    loop_step: Node
    result: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """An expression that passed the checker: the tree, each node's type by id, and overloads or names by id.

    `overloads` has, for a call's id, the ids of the overloads that may be called; for an identifier's or select's id
    that is a name of the environment, `names` has that name; for a call with a namespace or leading dot, the function.
    """

    text: str
    root: Node
    types: dict[int, Type]
    overloads: dict[int, tuple[str, ...]]
    names: dict[int, str]
