"""Expands macros into comprehensions and calls, as the parser meets them. Knows no types.

Follows cel-go parser/macro.go, ext/comprehensions.go, ext/bindings.go, ext/lists.go (sortBy) and cel/library.go
(optMap, optFlatMap). The accumulator is named @result, which no expression can name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from dra.cel.ast import Call, Comprehension, Entry, Field, Ident, ListNode, Literal, MapNode, Node, Select, StructNode

ACCUMULATOR: Final = "@result"
_OLD_ACCUMULATOR: Final = "__result__"
_UNUSED: Final = "#unused"
_SORT_INPUT: Final = "@__sortBy_input__"
_MAP_INSERT: Final = "cel.@mapInsert"

type Args = tuple[Node, ...]


class MacroError(Exception):
    """A macro is used wrongly; the parser adds the place of `start`."""

    def __init__(self, message: str, node: Node) -> None:
        super().__init__(message)
        self.start = node.start


class Builder:
    """Makes nodes with fresh ids at the place of a macro's call."""

    __slots__ = ("_next_id", "_start")

    def __init__(self, next_id: Callable[[], int], start: int) -> None:
        self._next_id = next_id
        self._start = start

    def literal(self, value: object) -> Node:
        """A constant."""
        return Literal(id=self._next_id(), start=self._start, value=value)

    def true(self) -> Node:
        """The constant true."""
        return self.literal(value=True)

    def false(self) -> Node:
        """The constant false."""
        return self.literal(value=False)

    def ident(self, name: str = ACCUMULATOR) -> Node:
        """A name; without one, the accumulator's."""
        return Ident(id=self._next_id(), start=self._start, name=name)

    def list(self, *elements: Node) -> Node:
        """A list literal."""
        return ListNode(id=self._next_id(), start=self._start, elements=elements)

    def empty_map(self) -> Node:
        """{}."""
        return MapNode(id=self._next_id(), start=self._start, entries=())

    def call(self, function: str, *args: Node, target: Node | None = None) -> Node:
        """function(args) or target.function(args)."""
        return Call(id=self._next_id(), start=self._start, function=function, args=args, target=target)

    def has(self, operand: Node, field: str) -> Node:
        """A test whether the operand has the field."""
        return Select(id=self._next_id(), start=self._start, operand=operand, field=field, test_only=True)

    def loop(self, over: Node, names: tuple[str, str], *parts: Node) -> Node:
        """A comprehension over one or two names; parts are first value, condition, step, and result if not @result."""
        init, condition, step, *result = parts
        return self._comprehension(over, (*names, ACCUMULATOR), (init, condition, step, *(result or [self.ident()])))

    def bind(self, name: str, value: Node, result: Node) -> Node:
        """A comprehension over nothing, which only names a value."""
        parts = (value, self.false(), self.ident(name), result)
        return self._comprehension(self.list(), (_UNUSED, "", name), parts)

    def _comprehension(self, over: Node, names: tuple[str, str, str], parts: tuple[Node, ...]) -> Node:
        iter_var, iter_var2, accu_var = names
        accu_init, condition, step, result = parts
        return Comprehension(
            id=self._next_id(),
            start=self._start,
            iter_range=over,
            iter_var=iter_var,
            iter_var2=iter_var2,
            accu_var=accu_var,
            accu_init=accu_init,
            loop_condition=condition,
            loop_step=step,
            result=result,
        )

    def copy(self, node: Node) -> Node:
        """The same tree with ids of its own."""
        if isinstance(node, Comprehension):
            return self._copied_loop(node)
        parts: dict[str, Any] = {}
        match node:
            case Select(operand=operand):
                parts = {"operand": self.copy(operand)}
            case Call(args=args, target=target):
                parts = {"args": self._all(args), "target": None if target is None else self.copy(target)}
            case ListNode(elements=elements):
                parts = {"elements": self._all(elements)}
            case MapNode(entries=entries):
                parts = {"entries": tuple(map(self._entry, entries))}
            case StructNode(fields=fields):
                parts = {"fields": tuple(map(self._field, fields))}
        return replace(node, id=self._next_id(), **parts)

    def _all(self, nodes: Args) -> Args:
        return tuple(map(self.copy, nodes))

    def _entry(self, entry: Entry) -> Entry:
        return replace(entry, id=self._next_id(), key=self.copy(entry.key), value=self.copy(entry.value))

    def _field(self, field: Field) -> Field:
        return replace(field, id=self._next_id(), value=self.copy(field.value))

    def _copied_loop(self, node: Comprehension) -> Node:
        parts = self._all((node.accu_init, node.loop_condition, node.loop_step, node.result))
        return self._comprehension(self.copy(node.iter_range), (node.iter_var, node.iter_var2, node.accu_var), parts)


def expand(make: Builder, function: str, target: Node | None, args: Args) -> Node | None:
    """What a call expands to; None when it is no macro's call. MacroError when a macro is used wrongly."""
    if target is None:
        return _has(make, args) if function == "has" and len(args) == 1 else None
    macro = _MACROS.get((function, len(args)))
    return None if macro is None else macro(make, target, args)


def _has(make: Builder, args: Args) -> Node:
    selected = args[0]
    if not isinstance(selected, Select):
        raise MacroError("invalid argument to has() macro", selected)
    return make.has(selected.operand, selected.field)


def _name(node: Node, message: str) -> str:
    if not isinstance(node, Ident):
        raise MacroError(message, node)
    if node.name in (ACCUMULATOR, _OLD_ACCUMULATOR):
        raise MacroError("iteration variable overwrites accumulator variable", node)
    return node.name


def _names(args: Args) -> tuple[tuple[str, str], Args]:
    """The one or two loop variables that a macro's arguments begin with, and the other arguments."""
    if len(args) == 2:
        return (_name(args[0], "argument must be a simple name"), ""), args[1:]
    for each in args[:2]:
        if not isinstance(each, Ident):
            raise MacroError("argument must be a simple name", each)
    first, second = (_name(each, "") for each in args[:2])
    if first == second:
        raise MacroError(f"duplicate variable name: {first}", args[1])
    return (first, second), args[2:]


def _all(make: Builder, target: Node, args: Args) -> Node:
    names, (condition,) = _names(args)
    going_on = make.call("@not_strictly_false", make.ident())
    return make.loop(target, names, make.true(), going_on, make.call("_&&_", make.ident(), condition))


def _exists(make: Builder, target: Node, args: Args) -> Node:
    names, (condition,) = _names(args)
    going_on = make.call("@not_strictly_false", make.call("!_", make.ident()))
    return make.loop(target, names, make.false(), going_on, make.call("_||_", make.ident(), condition))


def _exists_one(make: Builder, target: Node, args: Args) -> Node:
    names, (condition,) = _names(args)
    more = make.call("_+_", make.ident(), make.literal(1))
    step = make.call("_?_:_", condition, more, make.ident())
    result = make.call("_==_", make.ident(), make.literal(1))
    return make.loop(target, names, make.literal(0), make.true(), step, result)


def _collect(make: Builder, over: tuple[Node, tuple[str, str]], init: Node, step: Node, *, only: Node | None) -> Node:
    """A loop that goes over everything, and takes the step where the condition `only` holds."""
    if only is not None:
        step = make.call("_?_:_", only, step, make.ident())
    return make.loop(*over, init, make.true(), step)


def _map(make: Builder, target: Node, args: Args) -> Node:
    name = _name(args[0], "argument is not an identifier")
    *only, value = args[1:]
    step = make.call("_+_", make.ident(), make.list(value))
    return _collect(make, (target, (name, "")), make.list(), step, only=only[0] if only else None)


def _filter(make: Builder, target: Node, args: Args) -> Node:
    name = _name(args[0], "argument is not an identifier")
    step = make.call("_+_", make.ident(), make.list(args[0]))
    return _collect(make, (target, (name, "")), make.list(), step, only=args[1])


def _transform_list(make: Builder, target: Node, args: Args) -> Node:
    names, (*only, value) = _names(args)
    step = make.call("_+_", make.ident(), make.list(value))
    return _collect(make, (target, names), make.list(), step, only=only[0] if only else None)


def _transform_map(make: Builder, target: Node, args: Args) -> Node:
    names, (*only, value) = _names(args)
    step = make.call(_MAP_INSERT, make.ident(), make.ident(names[0]), value)
    return _collect(make, (target, names), make.empty_map(), step, only=only[0] if only else None)


def _transform_map_entry(make: Builder, target: Node, args: Args) -> Node:
    names, (*only, value) = _names(args)
    step = make.call(_MAP_INSERT, make.ident(), value)
    return _collect(make, (target, names), make.empty_map(), step, only=only[0] if only else None)


def _bind(make: Builder, target: Node, args: Args) -> Node | None:
    if not isinstance(target, Ident) or target.name != "cel":
        return None
    if not isinstance(args[0], Ident):
        raise MacroError("cel.bind() variable names must be simple identifiers", args[0])
    return make.bind(args[0].name, args[1], args[2])


def _opt_map(make: Builder, target: Node, args: Args) -> Node:
    bound = _bound_value(make, target, args, "optMap")
    return _if_present(make, target, make.call("optional.of", bound))


def _opt_flat_map(make: Builder, target: Node, args: Args) -> Node:
    return _if_present(make, target, _bound_value(make, target, args, "optFlatMap"))


def _bound_value(make: Builder, target: Node, args: Args, macro: str) -> Node:
    if not isinstance(args[0], Ident):
        raise MacroError(f"{macro}() variable name must be a simple identifier", args[0])
    return make.bind(args[0].name, make.call("value", target=make.copy(target)), args[1])


def _if_present(make: Builder, target: Node, value: Node) -> Node:
    return make.call("_?_:_", make.call("hasValue", target=target), value, make.call("optional.none"))


def _sort_by(make: Builder, target: Node, args: Args) -> Node:
    if isinstance(target, Literal | MapNode | StructNode):
        message = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise MacroError(message, target)
    keys = _map(make, make.ident(_SORT_INPUT), args)
    call = make.call("@sortByAssociatedKeys", keys, target=make.ident(_SORT_INPUT))
    return make.bind(_SORT_INPUT, target, call)


_MACROS: Final[dict[tuple[str, int], Callable[[Builder, Node, Args], Node | None]]] = {
    ("all", 2): _all,
    ("all", 3): _all,
    ("exists", 2): _exists,
    ("exists", 3): _exists,
    ("exists_one", 2): _exists_one,
    ("existsOne", 3): _exists_one,
    ("filter", 2): _filter,
    ("map", 2): _map,
    ("map", 3): _map,
    ("transformList", 3): _transform_list,
    ("transformList", 4): _transform_list,
    ("transformMap", 3): _transform_map,
    ("transformMap", 4): _transform_map,
    ("transformMapEntry", 3): _transform_map_entry,
    ("transformMapEntry", 4): _transform_map_entry,
    ("bind", 3): _bind,
    ("optMap", 2): _opt_map,
    ("optFlatMap", 2): _opt_flat_map,
    ("sortBy", 2): _sort_by,
}
