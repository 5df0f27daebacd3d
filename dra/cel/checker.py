"""Finds the type of every node, and which overloads a call may mean; refuses what has none. Evaluates nothing.

Follows cel-go checker/checker.go with cross-type numeric comparison on. It stops at the first fault; cel-go goes on
and lists more.
"""

from __future__ import annotations

from typing import Final, NoReturn

from dra.cel import types
from dra.cel.ast import (
    Call,
    Checked,
    Comprehension,
    Entry,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    Select,
    StructNode,
)
from dra.cel.environment import Environment
from dra.cel.errors import CelTypeError
from dra.cel.functions import Overload
from dra.cel.parser import Parsed
from dra.cel.places import place
from dra.cel.types import Kind, Type, is_dyn, optional_of
from dra.cel.unify import Substitution, TypesTooLargeError, is_optional, most_general, text_of, unwrapped
from dra.cel.values import type_of

_OPT_SELECT: Final = "select_optional_field"


def check(parsed: Parsed, environment: Environment) -> Checked:
    """The tree with its types, or CelTypeError. Its result may be of any type."""
    checker = _Checker(parsed, environment)
    try:
        return checker.run()
    except TypesTooLargeError:
        checker.fail(parsed.root, "types of the expression are too large", "size of types")


class _Checker:
    def __init__(self, parsed: Parsed, environment: Environment) -> None:
        self._parsed = parsed
        self._environment = environment
        self._known = Substitution()
        self._types: dict[int, Type] = {}
        self._overloads: dict[int, tuple[str, ...]] = {}
        self._names: dict[int, str] = {}
        self._scopes: list[dict[str, Type]] = []

    def run(self) -> Checked:
        """Check everything from the root."""
        self._check(self._parsed.root)
        return Checked(
            text=self._parsed.text,
            root=self._parsed.root,
            types={id_: self._known.resolve(each, finally_=True) for id_, each in self._types.items()},
            overloads=self._overloads,
            names=self._names,
        )

    def fail(self, node: Node, message: str, rule: str = "types") -> NoReturn:
        """Refuse the expression at the node."""
        line, column = place(self._parsed.text, node.start)
        raise CelTypeError(message, line=line, column=column, rule=rule)

    def _mismatch(self, node: Node, expected: Type, found: Type) -> NoReturn:
        self.fail(node, f"expected type '{text_of(expected)}' but found '{text_of(found)}'")

    def _undeclared(self, node: Node, name: str) -> NoReturn:
        self.fail(node, f"undeclared reference to '{name}' (in container '')", "names of the environment")

    def _check(self, node: Node) -> Type:
        match node:
            case Literal(value=value):
                found = type_of(value)
            case Ident():
                found = self._ident(node)
            case Select():
                found = self._select(node)
            case Call():
                found = self._call(node)
            case ListNode():
                found = self._list(node)
            case MapNode():
                found = self._map(node)
            case StructNode():
                found = self._struct(node)
            case Comprehension():
                found = self._comprehension(node)
            case _:
                raise AssertionError(node)
        self._types[node.id] = found
        return found

    # --- names and fields ---

    def _local(self, name: str) -> Type | None:
        return next((scope[name] for scope in reversed(self._scopes) if name in scope), None)

    def _ident(self, node: Ident) -> Type:
        name = node.name.removeprefix(".")
        local = self._local(name)
        if local is not None and name == node.name:
            self._names[node.id] = name
            return local
        found = self._environment.names.get(name)
        if found is None:
            self._undeclared(node, node.name)
        self._names[node.id] = name if local is None else f".{name}"
        return found

    def _qualified(self, node: Select) -> Type | None:
        """The type of a dotted name of the environment."""
        parts: list[str] = []
        operand: Node = node
        while isinstance(operand, Select) and not operand.test_only:
            parts.append(operand.field)
            operand = operand.operand
        if not isinstance(operand, Ident) or self._local(operand.name) is not None:
            return None
        name = ".".join([operand.name, *reversed(parts)]).removeprefix(".")
        found = self._environment.names.get(name)
        if found is not None:
            self._names[node.id] = name
        return found

    def _select(self, node: Select) -> Type:
        named = self._qualified(node)
        if named is not None:
            return named
        found = self._field(node, node.operand, node.field)
        return types.BOOL if node.test_only else self._known.resolve(found)

    def _field(self, node: Node, operand: Node, field: str) -> Type:
        """The type of operand.field; of an optional operand, an optional."""
        given = self._known.resolve(self._check(operand))
        target = unwrapped(given)
        found = self._field_of(node, target, field)
        return optional_of(found) if is_optional(given) else found

    def _field_of(self, node: Node, target: Type, field: str) -> Type:
        if target.kind is Kind.MAP:
            return target.params[1]
        if target.kind is Kind.STRUCT:
            return self._struct_field(node, target, field)
        if target.kind is Kind.TYPE_PARAM:
            self._known.assign((types.DYN,), (target,))
        elif not is_dyn(target):
            self.fail(node, f"type '{text_of(target)}' does not support field selection")
        return types.DYN

    def _struct_field(self, node: Node, target: Type, field: str) -> Type:
        if target != types.DEVICE:
            self.fail(node, f"unexpected failed resolution of '{target.name}'", "fields")
        found = self._environment.device_fields.get(field)
        if found is None:
            self.fail(node, f"undefined field '{field}'", "fields of device")
        return found

    # --- calls ---

    def _call(self, node: Call) -> Type:
        if node.function == "_?._":
            return self._optional_select(node)
        for each in node.args:
            self._check(each)
        name = node.function.removeprefix(".")
        overloads = self._environment.functions.get(name, ())
        if node.target is None:
            if name != node.function:
                self._names[node.id] = name
            return self._resolved(node, name, overloads, None)
        namespace = _dotted(node.target)
        if namespace is not None:
            full_name = f"{namespace}.{node.function}".removeprefix(".")
            functions = self._environment.functions.get(full_name)
            if functions is not None:
                self._names[node.id] = full_name
                return self._resolved(node, full_name, functions, None)
        self._check(node.target)
        return self._resolved(node, node.function, overloads, node.target)

    def _optional_select(self, node: Call) -> Type:
        operand, field = node.args
        assert isinstance(field, Literal)
        found = self._field(node, operand, str(field.value))
        self._overloads[node.id] = (_OPT_SELECT,)
        return self._known.resolve(found if is_optional(self._types[operand.id]) else optional_of(found))

    def _resolved(self, node: Call, name: str, overloads: tuple[Overload, ...], target: Node | None) -> Type:
        """The result type of the overloads that fit; dyn where they differ."""
        if not overloads:
            self._undeclared(node, name)
        operands = node.args if target is None else (target, *node.args)
        given = tuple(self._types[each.id] for each in operands)
        if name in ("_&&_", "_||_"):
            return self._logical(node, overloads[0], given)
        fitting: list[str] = []
        result: Type | None = None
        for overload in overloads:
            if overload.member != (target is not None):
                continue
            *params, declared = self._known.instantiate((*overload.params, overload.result))
            if not self._known.assign(given, params):
                continue
            fitting.append(overload.id)
            found = self._known.resolve(declared)
            result = _joined(result, found)
        if result is None:
            self._no_overload(node, name, given, member=target is not None)
        self._overloads[node.id] = tuple(fitting)
        return result

    def _logical(self, node: Call, overload: Overload, given: tuple[Type, ...]) -> Type:
        for each, found in zip(node.args, given, strict=True):
            if not self._known.assign((found,), (types.BOOL,)):
                self._mismatch(each, types.BOOL, found)
        self._overloads[node.id] = (overload.id,)
        return types.BOOL

    def _no_overload(self, node: Call, name: str, given: tuple[Type, ...], *, member: bool) -> NoReturn:
        texts = [text_of(self._known.resolve(each, finally_=True)) for each in given]
        receiver = f"{texts.pop(0)}." if member else ""
        message = f"found no matching overload for '{name}' applied to '{receiver}({', '.join(texts)})'"
        self.fail(node, message, "overloads")

    # --- literals ---

    def _join(self, before: Type | None, found: Type) -> Type:
        """The type of elements so far, with one more; `validate` refuses most lists of several types."""
        if before is None:
            return found
        return most_general(before, found) if self._known.assign((before,), (found,)) else types.DYN

    def _optional_value(self, node: Node, found: Type) -> Type:
        """What an element written with `?` adds."""
        if not is_optional(found) and not is_dyn(found):
            self._mismatch(node, optional_of(found), found)
        return unwrapped(found)

    def _list(self, node: ListNode) -> Type:
        element: Type | None = None
        for index, each in enumerate(node.elements):
            found = self._check(each)
            if index in node.optional:
                found = self._optional_value(each, found)
            element = self._join(element, found)
        return types.list_of(element or self._known.fresh())

    def _map(self, node: MapNode) -> Type:
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            key = self._join(key, self._check(entry.key))
            value = self._join(value, self._entry_value(entry))
        return types.map_of(key or self._known.fresh(), value or self._known.fresh())

    def _entry_value(self, entry: Entry) -> Type:
        found = self._check(entry.value)
        return self._optional_value(entry.value, found) if entry.optional else found

    def _struct(self, node: StructNode) -> Type:
        """Only `device`'s own type is declared; making one compiles, and fails when evaluated."""
        name = node.type_name.removeprefix(".")
        if name != types.DEVICE.name:
            self._undeclared(node, node.type_name)
        for field in node.fields:
            found = self._check(field.value)
            wanted = self._struct_field(field, types.DEVICE, field.name)
            if field.optional:
                found = self._optional_value(field.value, found)
            if not self._known.assign((wanted,), (found,)):
                provided = f"'{text_of(wanted)}' but provided type is '{text_of(found)}'"
                self.fail(field, f"expected type of field '{field.name}' is {provided}", "fields")
        return types.DEVICE

    # --- comprehensions ---

    def _comprehension(self, node: Comprehension) -> Type:
        given = self._check(node.iter_range)
        accumulated = self._check(node.accu_init)
        names = self._loop_names(node, self._known.resolve(given))
        self._scopes.append({node.accu_var: accumulated})
        self._scopes.append(names)
        self._assert_type(node.loop_condition, types.BOOL)
        self._assert_type(node.loop_step, accumulated)
        self._scopes.pop()
        result = self._check(node.result)
        self._scopes.pop()
        return self._known.resolve(result)

    def _assert_type(self, node: Node, wanted: Type) -> None:
        found = self._check(node)
        if not self._known.assign((wanted,), (found,)):
            self._mismatch(node, wanted, found)

    def _loop_names(self, node: Comprehension, given: Type) -> dict[str, Type]:
        """The types of the loop's one or two names: elements, keys, index and element, key and value."""
        if given.kind is Kind.LIST:
            first, second = types.INT, given.params[0]
            first = first if node.iter_var2 else second
        elif given.kind is Kind.MAP:
            first, second = given.params
        elif given.kind in (Kind.DYN, Kind.TYPE_PARAM):
            self._known.assign((types.DYN,), (given,))
            first = second = types.DYN
        else:
            rule = "(must be list, map, or dynamic)"
            message = f"expression of type '{text_of(given)}' cannot be range of a comprehension {rule}"
            self.fail(node.iter_range, message)
        return {node.iter_var: first, node.iter_var2: second} if node.iter_var2 else {node.iter_var: first}


def _joined(before: Type | None, found: Type) -> Type:
    """The result type of overloads so far, with one more that fits."""
    if before is None or is_dyn(before) or before == found:
        return before or found
    return types.DYN


def _dotted(node: Node) -> str | None:
    """a.b.c of a chain of selections from a name."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test_only:
        prefix = _dotted(node.operand)
        return None if prefix is None else f"{prefix}.{node.field}"
    return None
