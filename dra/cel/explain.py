"""Says why a selector matches a device or not: condition by condition, with the values that each condition saw.

The conditions are the terms that `&&` joins at the top, also below `cel.bind`. Each is evaluated by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from dra.cel.ast import Call, Checked, Comprehension, Node
from dra.cel.device import CelDevice
from dra.cel.errors import CelRuntimeError
from dra.cel.evaluate import plan
from dra.cel.frames import UNSET, finished
from dra.cel.libraries.go_text import general, quote
from dra.cel.parser import Parsed
from dra.cel.paths import Scope, inner_scope, is_bind, is_leaf, path_of
from dra.cel.validate import children
from dra.cel.values import CelMap, Optional, UInt, type_of

ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Seen:
    """A value that a condition looked at: how the selector writes it, and what the device has there, or "absent"."""

    text: str
    value: str


@dataclass(frozen=True, slots=True)
class Condition:
    """One term: its text as written, whether it held, or the error it raised, and the values it looked at."""

    text: str
    result: bool | None
    error: str | None
    seen: tuple[Seen, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a selector says of a device: `result`, or `error` as the scheduler would report it; term by term."""

    result: bool | None
    error: str | None
    conditions: tuple[Condition, ...]

    @property
    def failing(self) -> tuple[Condition, ...]:
        """The terms that did not hold."""
        return tuple(each for each in self.conditions if each.result is not True)


type Evaluate = Callable[[CelDevice], object]


@dataclass(frozen=True, slots=True)
class Term:
    """A condition of a selector, ready to be asked about devices."""

    text: str
    evaluate: Evaluate
    seen: tuple[tuple[str, Evaluate], ...]


def terms(parsed: Parsed, checked: Checked) -> tuple[Term, ...]:
    """The conditions of a selector that compiles."""
    return tuple(_term(parsed, checked, each) for each in _conjuncts(checked.root, {}, _as_it_is))


@dataclass(frozen=True, slots=True)
class _Conjunct:
    """A term, the names that hold there, and how to put a node below the `cel.bind` around it."""

    node: Node
    scope: Scope
    wrap: Callable[[Node], Node]


def _as_it_is(node: Node) -> Node:
    return node


def _conjuncts(node: Node, scope: Scope, wrap: Callable[[Node], Node]) -> Iterator[_Conjunct]:
    if isinstance(node, Call) and node.function == "_&&_":
        for each in node.args:
            yield from _conjuncts(each, scope, wrap)
    elif isinstance(node, Comprehension) and is_bind(node):
        bind = node
        yield from _conjuncts(node.result, inner_scope(node, scope), lambda inner: wrap(replace(bind, result=inner)))
    else:
        yield _Conjunct(node, scope, wrap)


def _term(parsed: Parsed, checked: Checked, conjunct: _Conjunct) -> Term:
    seen = {_text(parsed, each): _evaluator(checked, conjunct.wrap(each)) for each in _values_in(conjunct)}
    return Term(_text(parsed, conjunct.node), _evaluator(checked, conjunct.wrap(conjunct.node)), tuple(seen.items()))


def _text(parsed: Parsed, node: Node) -> str:
    start, end = parsed.spans.get(node.id, (0, len(parsed.text)))
    return parsed.text[start:end].strip()


def _values_in(conjunct: _Conjunct) -> Iterator[Node]:
    """The nodes of a term that are one value of the device, without those in loops that read loop variables."""
    waiting = [(conjunct.node, conjunct.scope)]
    while waiting:
        node, scope = waiting.pop()
        path = path_of(node, scope)
        if is_leaf(path):
            yield node
        elif isinstance(node, Comprehension):
            within = {**scope, node.accu_var: None, node.iter_var: None, node.iter_var2: None}
            waiting += [(node.loop_step, within), (node.accu_init, scope), (node.iter_range, scope)]
        else:
            waiting += [(each, scope) for each in reversed(list(children(node)))]


def _evaluator(checked: Checked, root: Node) -> Evaluate:
    planned = plan(replace(checked, root=root))
    blank = [UNSET] * (planned.slots - 1)
    return lambda device: finished(planned.evaluate, [device.view(), *blank])


def explain(every: tuple[Term, ...], whole: Evaluate, device: CelDevice) -> Explanation:
    """What the terms say of the device, and what the whole does."""
    try:
        result, error = whole(device), None
    except CelRuntimeError as raised:
        result, error = None, str(raised)
    conditions = tuple(_asked(each, device) for each in every)
    return Explanation(result if isinstance(result, bool) else None, error, conditions)


def _asked(term: Term, device: CelDevice) -> Condition:
    seen = tuple(Seen(text, _value_text(evaluate, device)) for text, evaluate in term.seen)
    try:
        value = term.evaluate(device)
    except CelRuntimeError as error:
        return Condition(term.text, None, str(error), seen)
    if isinstance(value, bool):
        return Condition(term.text, value, None, seen)
    return Condition(term.text, None, f"is no bool but {type_of(value).name}", seen)


def _value_text(evaluate: Evaluate, device: CelDevice) -> str:
    try:
        return text_of_value(evaluate(device))
    except CelRuntimeError as error:
        return ABSENT if str(error).startswith("no such key") else str(error)


def text_of_value(value: object) -> str:
    """The value as one would write it in an expression; quantities and versions as they are printed."""
    match value:
        case bool() | None:
            text = {True: "true", False: "false", None: "null"}[value]
        case UInt():
            text = f"{int(value)}u"
        case float():
            text = general(value)
        case str():
            text = quote(value)
        case tuple():
            text = f"[{', '.join(map(text_of_value, value))}]"
        case CelMap():
            text = f"{{{', '.join(f'{text_of_value(key)}: {text_of_value(each)}' for key, each in value.items())}}}"
        case Optional():
            text = text_of_value(value.value) if value.present else ABSENT
        case _:
            text = str(value)
    return text
