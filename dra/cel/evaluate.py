"""Makes closures of a checked expression. Knows no text of the expression, and nothing of devices but their view.

Follows cel-go interpreter/planner.go and interpreter/decorators.go (`decOptimize`): lists, maps and conversions of
constants are made beforehand, and what fails there does not compile. With an observer, each node has a closure of its
own, and both operands of a call are evaluated even if one fails; without, common patterns have closures that do less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NoReturn

from dra.cel import calling, logic, looping, selecting, types
from dra.cel.ast import Call, Checked, Comprehension, Ident, ListNode, Literal, MapNode, Node, Select, StructNode
from dra.cel.calling import Dispatch
from dra.cel.chains import flattened, selected
from dra.cel.environment import CONSTANTS, OVERLOADS, TYPE_NAMES
from dra.cel.errors import CelAbortError, CelRuntimeError, CelTypeError
from dra.cel.frames import Eval, Frame, constant
from dra.cel.libraries import standard
from dra.cel.libraries.regex import compile_pattern
from dra.cel.literalvalues import list_of, map_of
from dra.cel.looping import Parts, Slots
from dra.cel.macroloops import macro_loop
from dra.cel.places import place
from dra.cel.types import Kind, Type
from dra.cel.values import type_of

type Observe = Callable[[Node, Eval], Eval]

_CONVERSIONS: Final = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)
_PATTERN_FUNCTIONS: Final = frozenset({"matches", "find", "findAll"})
_FOLDED: Final = frozenset({"string_to_quantity", "string_to_semver", "string_bool_to_semver"})
_PRIMITIVE: Final = (bool, int, float, str)
_OPEN: Final = frozenset({Kind.DYN, Kind.ANY, Kind.TYPE_PARAM, Kind.LIST, Kind.MAP, Kind.TYPE})


@dataclass(frozen=True, slots=True)
class Plan:
    """The closure of the whole expression, how many slots its frame has, and the values made beforehand, by node id."""

    evaluate: Eval
    slots: int
    constants: dict[int, object]


def plan(checked: Checked, observe: Observe | None = None) -> Plan:
    """Closures of the expression; CelTypeError where constants do not work."""
    planner = _Planner(checked, observe)
    try:
        evaluate = planner.node(checked.root)
    except CelAbortError as error:
        planner.fail(checked.root, str(error))
    return Plan(evaluate, planner.slots, planner.constants)


class _Planner:
    def __init__(self, checked: Checked, observe: Observe | None) -> None:
        self._checked = checked
        self._observe = observe
        self._scopes: list[dict[str, Eval]] = []
        self._certain: dict[int, Type] = {}
        self._known: dict[int, object] = {}
        self.constants: dict[int, object] = {}
        self.slots = 1
        self._special: dict[str, Callable[[Call], Eval]] = {
            "_&&_": self._logical,
            "_||_": self._logical,
            "_?_:_": self._choice,
            "_==_": self._equality,
            "_!=_": self._equality,
            "@in": self._membership,
            "@not_strictly_false": self._not_strictly_false,
            "_?._": self._optional_select,
            "_[_]": lambda node: self._index(node, how="get"),
            "_[?_]": lambda node: self._index(node, how="get_optional"),
        }

    def fail(self, node: Node, message: str) -> NoReturn:
        """Refuse the expression at the node."""
        line, column = place(self._checked.text, node.start)
        raise CelTypeError(
            f"program instantiation failed: {message}", line=line, column=column, rule="constants must work"
        )

    def node(self, node: Node) -> Eval:
        """The closure of a node, observed if there is an observer."""
        match node:
            case Literal(value=value):
                evaluate = self._constant(node, value)
            case Ident():
                evaluate = self._ident(node)
            case Select():
                evaluate = self._select(node)
            case Call():
                evaluate = self._call(node)
            case ListNode():
                evaluate = self._list(node)
            case MapNode():
                evaluate = self._map(node)
            case StructNode():
                evaluate = self._struct(node)
            case Comprehension():
                evaluate = self._comprehension(node)
            case _:
                raise AssertionError(node)
        return evaluate if self._observe is None else self._observe(node, evaluate)

    def _constant(self, node: Node, value: object) -> Eval:
        self.constants[node.id] = self._known[node.id] = value
        self._certain[node.id] = type_of(value)
        return constant(value)

    # --- names, fields, keys ---

    def _ident(self, node: Ident) -> Eval:
        name = self._checked.names[node.id]
        if self._checked.types[node.id].kind is Kind.TYPE:
            return self._type_name(node, name)
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return lambda frame: frame[0].as_map()

    def _type_name(self, node: Node, name: str) -> Eval:
        """The constant that a type's name is. As there, a loop's name that holds a type is looked up here, too."""
        found = TYPE_NAMES.get(name.removeprefix("."))
        if found is None:
            self.fail(node, f"reference to undefined type: {name}")
        return self._constant(node, found)

    def _select(self, node: Select) -> Eval:
        name = self._checked.names.get(node.id)
        if name is not None:
            return self._constant(node, CONSTANTS[name]) if name in CONSTANTS else self._type_name(node, name)
        if node.test_only:
            self._certain[node.id] = types.BOOL
            return self._reached(node, node.operand, node.field, how="has")
        return self._reached(node, node.operand, node.field, how="get")

    def _reached(self, node: Node, operand: Node, key: str, *, how: str) -> Eval:
        """operand.key, has(operand.key) or operand.?key."""
        path = self._device_path(operand) if self._observe is None else None
        if path is not None:
            return self._of_device(node, (*path, key), how=how)
        if self._observe is None and how == "get":
            short = self._device_field(node, operand, key)
            if short is not None:
                return short
        if how == "get" and self._is_plain_field(operand):
            how = "get_plain"
        return selecting.of_constant(self.node(operand), key, how=how)

    def _device_field(self, node: Node, operand: Node, key: str) -> Eval | None:
        """A closure for device.driver and device.attributes[key]."""
        if key == "driver" and self._is_device(operand):
            self._certain[node.id] = types.STRING
            return lambda frame: frame[0].driver
        if isinstance(operand, Select) and operand.field == "attributes" and self._is_device(operand.operand):
            return lambda frame: frame[0].attributes_of(key)
        return None

    def _of_device(self, node: Node, path: tuple[selecting.Part, str, str], *, how: str) -> Eval:
        if path[0] == "capacity" and how == "get":
            self._certain[node.id] = types.QUANTITY
        return selecting.of_device(*path, how=how)

    def _is_device(self, node: Node) -> bool:
        if not isinstance(node, Ident):
            return False
        name = self._checked.names[node.id]
        return name in ("device", ".device") and (name != "device" or not any(name in each for each in self._scopes))

    def _device_path(self, node: Node) -> tuple[selecting.Part, str] | None:
        """The part and the domain that the node selects of the device."""
        operand, domain = selected(node)
        if operand is None or not isinstance(operand, Select) or not self._is_device(operand.operand):
            return None
        if operand.field == "attributes":
            return "attributes", domain
        return ("capacity", domain) if operand.field == "capacity" else None

    def _is_plain_field(self, node: Node) -> bool:
        """Whether the node is a field or key of something that cannot be optional."""
        operand, _ = selected(node)
        if operand is None:
            return False
        kind = self._checked.types[operand.id].kind
        return kind not in (Kind.OPAQUE, Kind.DYN, Kind.ANY) or self._is_plain_field(operand)

    def _index(self, node: Call, *, how: str) -> Eval:
        operand, index = node.args
        key = self.node(index)
        if index.id not in self.constants:
            how = "get_plain" if how == "get" and self._is_plain_field(operand) else how
            return selecting.of_computed(self.node(operand), key, how=how)
        value = self.constants[index.id]
        if isinstance(value, str):
            return self._reached(node, operand, value, how=how)
        if not selecting.is_key(value):
            self.fail(node, str(selecting.bad_key(value)))
        return selecting.of_constant(self.node(operand), value, how=how)

    # --- calls ---

    def _call(self, node: Call) -> Eval:
        special = self._special.get(node.function)
        if special is not None:
            return special(node)
        namespaced = node.id in self._checked.names
        operands = node.args if node.target is None or namespaced else (node.target, *node.args)
        closures = [self.node(each) for each in operands]
        if node.function in ("or", "orValue") and len(closures) == 2:
            return logic.alternative(*closures, unwrap=node.function == "orValue")
        return self._function(node, operands, closures)

    def _function(self, node: Call, operands: tuple[Node, ...], closures: list[Eval]) -> Eval:
        name = self._checked.names.get(node.id, node.function)
        overloads = [OVERLOADS[each] for each in self._checked.overloads[node.id]]
        dispatch = Dispatch(name, overloads)
        given = [self._certain.get(each.id) for each in operands]
        result = dispatch.result(given)
        if result is not None and result.kind not in _OPEN and not result.params:
            self._certain[node.id] = result
        folded = self._folded(node, name, dispatch, operands)
        if folded is not None:
            return folded
        has_pattern = self._has_pattern(node, name, operands)
        if self._observe is not None:
            # A function of one binding for all overloads gets both operands even if one is an error.
            one_binding = name in standard.FUNCTIONS or name == "@sortByAssociatedKeys"
            in_order = has_pattern or (len(overloads) > 1 and not one_binding)
            return calling.observed_call(dispatch, closures, both=len(operands) == 2 and not in_order)
        if len(operands) == 2 and operands[1].id in self._known:
            return calling.call_with(dispatch, closures[0], self._known[operands[1].id], given[0])
        return calling.call(dispatch, closures, given)

    def _folded(self, node: Call, name: str, dispatch: Dispatch, operands: tuple[Node, ...]) -> Eval | None:
        """The constant that a conversion of a constant gives, as cel-go makes it; and quantities and versions."""
        if not operands or any(each.id not in self._known for each in operands):
            return None
        values = [self._known[each.id] for each in operands]
        if name in _CONVERSIONS and len(values) == 1 and operands[0].id in self.constants:
            try:
                return self._constant(node, dispatch.find(*values)(*values))
            except CelRuntimeError as error:
                self.fail(node, str(error))
        if self._observe is None and self._checked.overloads[node.id][0] in _FOLDED:
            return self._foreseen(node, dispatch, values)
        return None

    def _foreseen(self, node: Call, dispatch: Dispatch, values: list[object]) -> Eval | None:
        try:
            value = dispatch.find(*values)(*values)
        except CelRuntimeError:
            return None  # it fails when evaluated, if it is evaluated
        self._known[node.id] = value
        return constant(value)

    def _has_pattern(self, node: Call, name: str, operands: tuple[Node, ...]) -> bool:
        """Whether it is a call with a constant regular expression, which must compile."""
        if name not in _PATTERN_FUNCTIONS or len(operands) < 2:
            return False
        pattern = self.constants.get(operands[1].id)
        if not isinstance(pattern, str):
            return False
        try:
            compile_pattern(pattern)
        except CelRuntimeError as error:
            self.fail(node, str(error))
        return True

    def _equality(self, node: Call) -> Eval:
        negated = node.function == "_!=_"
        left, right = (self.node(each) for each in node.args)
        self._certain[node.id] = types.BOOL
        if self._observe is not None:
            return calling.observed_equality(left, right, negated=negated)
        if node.args[1].id in self._known:
            return calling.equality_with(left, self._known[node.args[1].id], negated=negated)
        return calling.equality(left, right, negated=negated)

    def _membership(self, node: Call) -> Eval:
        """`in`: of an empty constant list false without a look at the element; of a list of texts by their set."""
        closures = [self.node(each) for each in node.args]
        self._certain[node.id] = types.BOOL
        values = self.constants.get(node.args[1].id)
        if not isinstance(values, tuple) or self._checked.overloads[node.id] != ("in_list",):
            return self._function(node, node.args, closures)
        if not values:
            return self._constant(node, value=False)
        if all(isinstance(each, str) for each in values):
            return calling.in_texts(closures[0], values)
        if not all(isinstance(each, _PRIMITIVE) for each in values):
            return self._function(node, node.args, closures)
        return calling.in_primitives(closures[0], values)

    def _logical(self, node: Call) -> Eval:
        self._certain[node.id] = types.BOOL
        join = logic.every if node.function == "_&&_" else logic.some
        terms = node.args if self._observe is not None else flattened(node, node.function)
        return join(tuple(map(self.node, terms)))

    def _choice(self, node: Call) -> Eval:
        condition, when_true, when_false = node.args
        return logic.choice(self.node(condition), self._branch(when_true), self._branch(when_false))

    def _branch(self, node: Node) -> Eval:
        """What may be chosen. As there, has() of an optional's field is not yet made a bool where it stands alone."""
        if not isinstance(node, Select) or not node.test_only:
            return self.node(node)
        evaluate = self._reached(node, node.operand, node.field, how="has_unwrapped")
        return evaluate if self._observe is None else self._observe(node, evaluate)

    def _not_strictly_false(self, node: Call) -> Eval:
        return logic.not_strictly_false(self.node(node.args[0]))

    def _optional_select(self, node: Call) -> Eval:
        operand, field = node.args
        assert isinstance(field, Literal)
        return self._reached(node, operand, str(field.value), how="get_optional")

    # --- literals ---

    def _list(self, node: ListNode) -> Eval:
        evaluate = list_of([self.node(each) for each in node.elements], node.optional)
        return self._literal_of(node, list(node.elements), evaluate)

    def _map(self, node: MapNode) -> Eval:
        pairs = [(self.node(each.key), self.node(each.value)) for each in node.entries]
        evaluate = map_of(pairs, [each.optional for each in node.entries])
        return self._literal_of(node, [part for each in node.entries for part in (each.key, each.value)], evaluate)

    def _literal_of(self, node: Node, parts: list[Node], evaluate: Eval) -> Eval:
        """A constant, if all parts are."""
        if not all(each.id in self.constants for each in parts):
            return evaluate
        try:
            return self._constant(node, evaluate([]))
        except CelRuntimeError:
            return evaluate

    def _struct(self, node: StructNode) -> Eval:
        values = [self.node(each.value) for each in node.fields]

        def run(frame: Frame) -> object:
            for each in values:
                each(frame)
            raise CelRuntimeError(f"unknown type '{node.type_name.removeprefix('.')}'")

        return run

    # --- comprehensions ---

    def _slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def _comprehension(self, node: Comprehension) -> Eval:
        init = self.node(node.accu_init)
        source = self.node(node.iter_range)
        second = self._slot() if node.iter_var2 else None
        slots = Slots(accumulator=self._slot(), first=self._slot(), second=second)
        grows = node.accu_var.startswith("@") and node.iter_var[0] != "#"
        self._scopes.append({node.accu_var: looping.accumulator(slots.accumulator, init, grows=grows)})
        try:
            return self._loop(node, source, slots)
        finally:
            self._scopes.pop()

    def _loop(self, node: Comprehension, source: Eval, slots: Slots) -> Eval:
        if self._observe is None and node.iter_var == "#unused":
            self.node(node.loop_step)  # never evaluated, but it must be possible
            return looping.bound(slots.accumulator, self.node(node.result))
        names = {node.iter_var: _reader(slots.first)}
        if slots.second is not None:
            names[node.iter_var2] = _reader(slots.second)
        self._scopes.append(names)
        try:
            short = macro_loop(node, source, slots, self.node) if self._observe is None else None
            if short is not None:
                return short
            condition, step = self.node(node.loop_condition), self.node(node.loop_step)
        finally:
            self._scopes.pop()
        return looping.loop(Parts(source, condition, step, self.node(node.result)), slots)


def _reader(slot: int) -> Eval:
    return lambda frame: frame[slot]
