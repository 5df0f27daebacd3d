"""Which values of a device an expression reaches by names that stand in its text.

A path is what is selected of `device`, e.g. ("attributes", domain, id); names that `cel.bind` gives to a path count.
The domain that an expression writes as `device.driver` is OWN: which one it is, the device says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dra.cel.ast import Call, Checked, Comprehension, Ident, Literal, Node, Select
from dra.cel.validate import children

type Path = tuple[str, ...]
type Scope = Mapping[str, Path | None]
type Reads = frozenset[tuple[str, str, str]]

LEAF: Final = 3  # part, domain, id
OWN: Final = ""
_SELECTIONS: Final = ("_?._", "_[_]", "_[?_]")
_FIELDS: Final = ("driver", "allowMultipleAllocations")


class _UnknownError(Exception):
    """What is read depends on more than the text."""


def reads(checked: Checked) -> Reads | None:
    """Every attribute and capacity that the expression can look at; None where only an evaluation would tell."""
    found: set[tuple[str, str, str]] = set()
    try:
        _collect(checked.root, {}, found)
    except (_UnknownError, RecursionError):
        return None
    return frozenset(found)


def path_of(node: Node, scope: Scope) -> Path | None:
    """What the node selects of the device; None where it is anything else."""
    if isinstance(node, Ident):
        name = node.name.removeprefix(".")
        return scope[name] if name in scope and name == node.name else () if name == "device" else None
    operand, key = selection(node)
    if operand is None:
        return _own_domain(node, scope)
    path = path_of(operand, scope)
    return None if path is None or len(path) >= LEAF or path[:1] in [(each,) for each in _FIELDS] else (*path, key)


def _own_domain(node: Node, scope: Scope) -> Path | None:
    """The path of `device.attributes[device.driver]` and the like."""
    if not isinstance(node, Call) or node.function not in _SELECTIONS or path_of(node.args[1], scope) != ("driver",):
        return None
    path = path_of(node.args[0], scope)
    return (*path, OWN) if path is not None and len(path) == 1 and path[0] not in _FIELDS else None


def selection(node: Node) -> tuple[Node | None, str]:
    """Operand and key of a selection whose key stands in the text; no operand for any other node."""
    if isinstance(node, Select):
        return node.operand, node.field
    if isinstance(node, Call) and node.function in _SELECTIONS:
        operand, key = node.args
        if isinstance(key, Literal) and isinstance(key.value, str):
            return operand, key.value
    return None, ""


def is_leaf(path: Path | None) -> bool:
    """Whether it is one value: an attribute, a capacity, the driver, or whether the device can be shared."""
    return path is not None and (len(path) == LEAF or path[:1] in [(each,) for each in _FIELDS])


def is_bind(node: Node) -> bool:
    """Whether the node is what `cel.bind` expands to."""
    return isinstance(node, Comprehension) and node.iter_var == "#unused"


def inner_scope(node: Comprehension, scope: Scope) -> Scope:
    """The names within a comprehension: a bound path, or what hides a name."""
    path = path_of(node.accu_init, scope) if is_bind(node) else None
    hidden = {node.accu_var: path, node.iter_var: None, node.iter_var2: None}
    return {**scope, **hidden}


def _collect(node: Node, scope: Scope, found: set[tuple[str, str, str]]) -> None:
    path = path_of(node, scope)
    if path is not None:
        _note(node, path, found)
    elif isinstance(node, Comprehension):
        _collect_loop(node, scope, found)
    elif not _is_membership(node, scope, found):
        for each in children(node):
            _collect(each, scope, found)


def _note(node: Node, path: Path, found: set[tuple[str, str, str]]) -> None:
    """A whole map of values is unknown, but has() of a domain is always true."""
    if len(path) == LEAF:
        part, domain, id_ = path
        found.add((part, domain, id_))
    elif not is_leaf(path) and not (isinstance(node, Select) and node.test_only):
        raise _UnknownError


def _collect_loop(node: Comprehension, scope: Scope, found: set[tuple[str, str, str]]) -> None:
    inner = inner_scope(node, scope)
    if inner[node.accu_var] is None:
        _collect(node.accu_init, scope, found)
    _collect(node.iter_range, scope, found)
    within = (node.result,) if is_bind(node) else (node.loop_condition, node.loop_step, node.result)
    for each in within:
        _collect(each, inner, found)


def _is_membership(node: Node, scope: Scope, found: set[tuple[str, str, str]]) -> bool:
    """Whether the node is `"id" in device.attributes[domain]`, which is noted."""
    if not isinstance(node, Call) or node.function != "@in" or not isinstance(node.args[0], Literal):
        return False
    path, id_ = path_of(node.args[1], scope), node.args[0].value
    if path is None or len(path) != LEAF - 1 or not isinstance(id_, str):
        return False
    found.add((path[0], path[1], id_))
    return True
