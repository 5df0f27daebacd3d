"""Literals in a selector that a person could change: conjuncts that compare a device's value with a constant.

Reads the syntax tree of an expression and puts another literal into its text; whether devices then match is for others
to find out. Only plain conjuncts count: a comparison below `||`, `!` or a macro is left alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from dra.cel import ast
from dra.cel.errors import CelCompileError
from dra.cel.parser import Parsed, parse
from dra.cel.values import UInt

type Relation = Literal["==", ">=", ">", "<=", "<"]
type Source = Literal["attributes", "capacity"]

_RELATIONS: Final[dict[str, Relation]] = {
    "_==_": "==",
    "_>=_": ">=",
    "_>_": ">",
    "_<=_": "<=",
    "_<_": "<",
}
_METHODS: Final[dict[str, Relation]] = {"isGreaterThan": ">", "isLessThan": "<"}
_MIRROR: Final[dict[Relation, Relation]] = {"==": "==", ">=": "<=", ">": "<", "<=": ">=", "<": ">"}
_WRAPPERS: Final = frozenset({"quantity", "semver"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """`device.<source>[<domain>].<identifier> <relation> <literal>` in an expression; `start`, `end` bound the literal.

    The domain is "" where the expression says `device.driver`. `wrapper` is quantity, semver or "".
    """

    expression: str
    source: Source
    domain: str
    identifier: str
    relation: Relation
    wrapper: str
    value: str | int
    start: int
    end: int

    def with_value(self, value: str | int) -> str:
        """The whole expression with another literal."""
        # JSON's escapes are a part of CEL's.
        return self.expression[: self.start] + json.dumps(value, ensure_ascii=False) + self.expression[self.end :]


def comparisons(expression: str) -> tuple[Comparison, ...]:
    """Every conjunct that compares a value of the device with a literal; nothing for a text that does not parse."""
    try:
        parsed = parse(expression)
    except CelCompileError:
        return ()
    found = (_comparison(parsed, conjunct) for conjunct in conjuncts(parsed.root))
    return tuple(each for each in found if each is not None)


def conjuncts(node: ast.Node) -> Iterator[ast.Node]:
    """The operands of the top-level `&&`, from left to right."""
    if isinstance(node, ast.Call) and node.function == "_&&_":
        for each in node.args:
            yield from conjuncts(each)
    else:
        yield node


def _comparison(parsed: Parsed, node: ast.Node) -> Comparison | None:
    if not isinstance(node, ast.Call):
        return None
    if node.function in _METHODS and node.target is not None and len(node.args) == 1:
        return _compared(parsed, node.target, _METHODS[node.function], node.args[0])
    relation = _RELATIONS.get(node.function)
    if relation is None:
        return None
    left, right = node.args
    if isinstance(left, ast.Call) and left.function == "compareTo" and left.target and _is_zero(right):
        return _compared(parsed, left.target, relation, left.args[0]) if len(left.args) == 1 else None
    return _compared(parsed, left, relation, right) or _compared(parsed, right, _MIRROR[relation], left)


def _compared(parsed: Parsed, subject: ast.Node, relation: Relation, other: ast.Node) -> Comparison | None:
    path, (wrapper, literal) = _path(subject), _literal(other)
    if path is None or literal is None or not isinstance(literal.value, str | int):
        return None
    if isinstance(literal.value, bool | UInt):
        return None
    source, domain, identifier = path
    start, end = parsed.spans[literal.id]
    return Comparison(
        expression=parsed.text,
        source=source,
        domain=domain,
        identifier=identifier,
        relation=relation,
        wrapper=wrapper,
        value=literal.value,
        start=start,
        end=end,
    )


def _path(node: ast.Node) -> tuple[Source, str, str] | None:
    """Source, domain and identifier of `device.attributes["domain"].identifier`."""
    parts = _member(node)
    inner = _member(parts[0]) if parts else None
    if parts is None or inner is None or not isinstance(parts[1], str):
        return None
    match inner[0]:
        case ast.Select(operand=ast.Ident(name="device"), field="attributes" | "capacity" as source):
            domain = "" if _is_driver(inner[1]) else inner[1]
            return (source, domain, parts[1]) if isinstance(domain, str) else None
        case _:
            return None


def _member(node: ast.Node) -> tuple[ast.Node, str | ast.Node] | None:
    """Operand and key of `x.key` or `x["key"]`."""
    match node:
        case ast.Select(operand=operand, field=name, test_only=False):
            return operand, name
        case ast.Call(function="_[_]", args=(operand, ast.Literal(value=str() as key))):
            return operand, key
        case ast.Call(function="_[_]", args=(operand, key_node)):
            return operand, key_node
        case _:
            return None


def _is_driver(key: str | ast.Node) -> bool:
    match key:
        case ast.Select(operand=ast.Ident(name="device"), field="driver"):
            return True
        case _:
            return False


def _literal(node: ast.Node) -> tuple[str, ast.Literal | None]:
    """The literal and the function around it."""
    match node:
        case ast.Literal():
            return "", node
        case ast.Call(function=name, args=(ast.Literal() as literal,), target=None) if name in _WRAPPERS:
            return name, literal
        case _:
            return "", None


def _is_zero(node: ast.Node) -> bool:
    return isinstance(node, ast.Literal) and node.value == 0 and not isinstance(node.value, bool)
