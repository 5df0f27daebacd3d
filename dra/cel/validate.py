"""What cel-go's validators refuse of an expression that the checker passed. Evaluates only literals.

Follows cel-go cel/validator.go with the four validators that k8s.io/apiserver/pkg/cel/environment/base.go turns on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NoReturn

from dra.cel.ast import (
    Call,
    Checked,
    Comprehension,
    ListNode,
    Literal,
    MapNode,
    Node,
    Select,
    StructNode,
)
from dra.cel.environment import OVERLOADS
from dra.cel.errors import CelRuntimeError, CelTypeError
from dra.cel.libraries.format_check import check_format
from dra.cel.libraries.regex import compile_pattern
from dra.cel.places import place
from dra.cel.types import Type, is_dyn
from dra.cel.unify import equivalent, is_optional, text_of

_MIXING: Final = ("format",)  # functions whose operands may be lists of several types (cel-go ext/strings.go)


def validate(checked: Checked) -> None:
    """CelTypeError for a literal that cannot be what it is used as, or a list or map of several types."""
    for node in descendants(checked.root):
        if isinstance(node, Call):
            _validate_call(checked, node)
    for node in descendants(checked.root, but_below=_MIXING):
        if isinstance(node, ListNode):
            _validate_list(checked, node)
        elif isinstance(node, MapNode):
            _validate_map(checked, node)


def descendants(root: Node, but_below: Collection[str] = ()) -> Iterator[Node]:
    """All nodes, without recursion; of calls of the functions named, nothing below."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        if not (isinstance(node, Call) and node.function in but_below):
            waiting.extend(reversed(list(children(node))))


def children(node: Node) -> Iterable[Node]:
    """What stands directly below a node."""
    children: Iterable[Node] = ()
    match node:
        case Select(operand=operand):
            children = (operand,)
        case Call(target=target, args=args):
            children = args if target is None else (target, *args)
        case ListNode(elements=elements):
            children = elements
        case MapNode(entries=entries):
            children = [part for each in entries for part in (each.key, each.value)]
        case StructNode(fields=fields):
            children = [each.value for each in fields]
        case Comprehension():
            steps = (node.loop_condition, node.loop_step, node.result)
            children = (node.iter_range, node.accu_init, *steps)
    return children


def _refuse(checked: Checked, node: Node, message: str, rule: str) -> NoReturn:
    line, column = place(checked.text, node.start)
    raise CelTypeError(message, line=line, column=column, rule=rule)


def _validate_call(checked: Checked, call: Call) -> None:
    if call.args and isinstance(call.args[0], Literal):
        _validate_argument(checked, call, call.args[0])
    fault = check_format(call, checked.types)
    if fault is not None:
        _refuse(checked, fault.node, fault.message, "format")


def _validate_argument(checked: Checked, call: Call, argument: Literal) -> None:
    """A literal duration, timestamp or regular expression. As there, of matches(a, b) it is `a` that is looked at."""
    value, function = argument.value, checked.names.get(call.id, call.function)
    try:
        if function == "matches" and isinstance(value, str):
            compile_pattern(value)
        elif function in ("duration", "timestamp"):
            (overload,) = checked.overloads[call.id]
            OVERLOADS[overload].call(value)
    except CelRuntimeError:
        _refuse(checked, argument, f"invalid {function} argument", "literals")


def _validate_list(checked: Checked, node: ListNode) -> None:
    expected: Type | None = None
    for index, each in enumerate(node.elements):
        found = _written(checked, each, optional=index in node.optional)
        expected = _same(checked, each, expected, found)


def _validate_map(checked: Checked, node: MapNode) -> None:
    key: Type | None = None
    value: Type | None = None
    for entry in node.entries:
        key = _same(checked, entry.key, key, checked.types[entry.key.id])
        value = _same(checked, entry.value, value, _written(checked, entry.value, optional=entry.optional))


def _written(checked: Checked, node: Node, *, optional: bool) -> Type:
    """The type that an element adds. Upstream's validator crashes on `?` before what may or may not be optional."""
    found = checked.types[node.id]
    if not optional:
        return found
    if is_dyn(found):
        message = "an element written with ? must be known to be optional: kube-apiserver and kube-scheduler crash here"
        _refuse(checked, node, message, "optional elements")
    return _only(found.params) if is_optional(found) else found


def _only(params: Sequence[Type]) -> Type:
    return params[0]


def _same(checked: Checked, node: Node, expected: Type | None, found: Type) -> Type:
    if expected is not None and not equivalent(expected, found):
        message = f"expected type '{text_of(expected)}' but found '{text_of(found)}'"
        _refuse(checked, node, message, "homogeneous lists and maps")
    return found if expected is None else expected
