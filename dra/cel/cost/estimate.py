"""The range of what a checked expression may cost, which the API server compares with its limit of 1,000,000.

Follows `coster` of cel-go checker/cost.go with the options of Kubernetes (presence tests cost nothing) and the sizes
that DRA declares. It walks the tree once and keeps, by node id, paths and sizes that later nodes ask for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dra.cel.ast import Call, Checked, Comprehension, Ident, ListNode, Literal, MapNode, Node, Select, StructNode
from dra.cel.cost.calls import LIST_BASE, MAP_BASE, STRUCT_BASE, CallShape, Estimate, Operand
from dra.cel.cost.celgo_estimates import estimate_call
from dra.cel.cost.paths import Path
from dra.cel.cost.ranges import LARGEST, ONE, UNKNOWN, ZERO, Range
from dra.cel.cost.sizes import size_at
from dra.cel.types import DYN, Kind, Type

_IMPOSSIBLE: Final = Range(LARGEST, 0)  # the neutral range of a union
_ACCUMULATORS: Final = frozenset({"__result__", "@result"})
_SCALARS: Final = frozenset({Kind.BOOL, Kind.DOUBLE, Kind.DURATION, Kind.INT, Kind.TIMESTAMP, Kind.UINT})


def estimate(checked: Checked) -> Range:
    """What evaluating the expression costs at least and at most, in CEL's cost units."""
    return _Estimator(checked).cost(checked.root)


@dataclass(frozen=True, slots=True)
class _Entries:
    """Sizes of the keys and the values of a container, or of the items of a list."""

    is_list: bool
    key: Range
    value: Range


@dataclass(frozen=True, slots=True)
class _Local:
    path: Path
    size: Range | None
    entries: _Entries | None = None


class _Estimator:
    def __init__(self, checked: Checked) -> None:
        self._checked = checked
        self._paths: dict[int, Path] = {}
        self._sizes: dict[int, Range] = {}
        self._entries: dict[int, _Entries] = {}
        self._locals: dict[str, list[_Local]] = {}

    def cost(self, node: Node) -> Range:
        match node:
            case Ident() | Select() if node.id in self._checked.names:
                return self._ident(node, self._checked.names[node.id])
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case Comprehension():
                return self._bind(node) if _is_bind(node) else self._comprehension(node)
        return self._literal(node)

    def _ident(self, node: Node, name: str) -> Range:
        local = self._local(name)
        self._paths[node.id] = local.path if local is not None else Path(name)
        return ONE

    def _literal(self, node: Node) -> Range:
        match node:
            case ListNode():
                return self._list(node)
            case MapNode():
                return self._map(node)
            case StructNode():
                return sum((self.cost(field.value) for field in node.fields), Range.exactly(STRUCT_BASE))
        return ZERO

    def _select(self, node: Select) -> Range:
        cost = self.cost(node.operand)
        if node.test_only:
            return cost
        if self._type(node.operand).kind in {Kind.MAP, Kind.STRUCT, Kind.TYPE_PARAM}:
            cost += ONE
        self._paths[node.id] = self._path(node.operand).append(node.field)
        return cost

    def _list(self, node: ListNode) -> Range:
        cost, sizes = Range.exactly(LIST_BASE), ZERO if not node.elements else _IMPOSSIBLE
        for element in node.elements:
            cost += self.cost(element)
            sizes |= self._size(element) or UNKNOWN
        self._entries[node.id] = _Entries(is_list=True, key=ONE, value=sizes)
        return cost

    def _map(self, node: MapNode) -> Range:
        cost, keys = Range.exactly(MAP_BASE), ZERO if not node.entries else _IMPOSSIBLE
        values = keys
        for entry in node.entries:
            cost += self.cost(entry.key) + self.cost(entry.value)
            keys |= self._size(entry.key) or UNKNOWN
            values |= self._size(entry.value) or UNKNOWN
        self._entries[node.id] = _Entries(is_list=False, key=keys, value=values)
        return cost

    # --- calls

    def _call(self, node: Call) -> Range:
        if node.function == "dyn":  # only switches checks off
            cost = self.cost(node.args[0]) + ONE
            self._copy_sizes(node, node.args[0])
            return cost
        costs, args = self._arguments(node)
        overloads = self._checked.overloads.get(node.id, ())
        if not overloads:
            return ZERO
        cost, target = ZERO, None
        if node.target is not None and node.id not in self._checked.names:  # a namespace is no target
            cost = self.cost(node.target)
            target = self._operand(node.target)
        return cost + self._overloads(node, overloads, target, args, costs)

    def _arguments(self, node: Call) -> tuple[list[Range], tuple[Operand, ...]]:
        costs, args = [], []
        for arg in node.args:
            costs.append(self.cost(arg))
            args.append(self._operand(arg))
        return costs, tuple(args)

    def _overloads(
        self,
        node: Call,
        overloads: tuple[str, ...],
        target: Operand | None,
        args: tuple[Operand, ...],
        costs: list[Range],
    ) -> Range:
        """The union over all overloads that the call may choose, and what is known of the result's size."""
        cost, size = _IMPOSSIBLE, None
        function = self._checked.names.get(node.id, node.function)
        for overload in overloads:
            found = self._overload(node, CallShape(function, overload, target, args), costs)
            cost |= found.cost
            if found.size is not None:
                size = found.size if size is None else size | found.size
            if overload in {"index_list", "index_map"}:
                size = self._indexed(node, overload)
            size = size or self._size(node)
        if size is not None:
            self._sizes[node.id] = size
        return cost

    def _overload(self, node: Call, call: CallShape, costs: list[Range]) -> Estimate:
        match call.overload:
            case "logical_and" | "logical_or":
                return Estimate(Range(costs[0].least, (costs[0] + costs[1]).most))
            case "conditional":
                entries = _union(self._entry_sizes(node.args[1]), self._entry_sizes(node.args[2]))
                self._keep_entries(node, entries)
                return Estimate(costs[0] + (costs[1] | costs[2]), call.args[1].size | call.args[2].size)
            case "add_string" | "add_bytes" | "add_list":
                entries = _union(self._entry_sizes(node.args[0]), self._entry_sizes(node.args[1]))
                self._keep_entries(node, entries)
        found = estimate_call(call)
        return Estimate(sum(costs, found.cost), found.size)

    def _indexed(self, node: Call, overload: str) -> Range | None:
        entries = self._entry_sizes(node.args[0])
        self._paths[node.id] = self._path(node.args[0]).append("@items" if overload == "index_list" else "@values")
        return None if entries is None else entries.value

    # --- loops

    def _bind(self, node: Comprehension) -> Range:
        cost = self.cost(node.iter_range) + self.cost(node.accu_init)
        self._push_value_of(node.accu_var, node.accu_init)
        cost += self.cost(node.result)
        self._locals[node.accu_var].pop()
        self._copy_sizes(node, node.result)
        return cost

    def _comprehension(self, node: Comprehension) -> Range:
        cost = self.cost(node.iter_range) + self.cost(node.accu_init)
        self._push_value_of(node.accu_var, node.accu_init)
        self._push_iteration(node)
        each = self.cost(node.loop_condition)
        each += self.cost(node.loop_step)
        self._locals[node.iter_var].pop()
        if node.iter_var2:
            self._locals[node.iter_var2].pop()
        cost += self.cost(node.result)
        self._locals[node.accu_var].pop()
        count = self._size(node.iter_range) or UNKNOWN
        self._keep_result(node, count)
        return cost + count * each

    def _keep_result(self, node: Comprehension, count: Range) -> None:
        if isinstance(node.accu_init, Literal):
            self._keep_size(node, self._size(node.accu_init))
        elif isinstance(node.accu_init, ListNode | MapNode):
            self._sizes[node.id] = count
            self._keep_entries(node, self._entry_sizes(node.loop_step))

    def _push_value_of(self, name: str, node: Node) -> None:
        local = _Local(self._path(node), self._size(node), self._entry_sizes(node))
        self._locals.setdefault(name, []).append(local)

    def _push_iteration(self, node: Comprehension) -> None:
        entries, path = self._entry_sizes(node.iter_range), self._path(node.iter_range)
        key, value = (None, None) if entries is None else (entries.key, entries.value)
        in_list = self._type(node.iter_range).kind is Kind.LIST if entries is None else entries.is_list
        if node.iter_var2:
            self._push(node.iter_var, path.append("@indices" if in_list else "@keys"), key)
            self._push(node.iter_var2, path.append("@items" if in_list else "@values"), value)
        elif in_list:
            self._push(node.iter_var, path.append("@items"), value)
        else:
            self._push(node.iter_var, path.append("@keys"), key)

    def _push(self, name: str, path: Path, size: Range | None) -> None:
        self._locals.setdefault(name, []).append(_Local(path, size))

    # --- what is known of nodes

    def _type(self, node: Node) -> Type:
        return self._checked.types.get(node.id, DYN)  # the field's name of `a.?b` has no type

    def _local(self, name: str) -> _Local | None:
        stack = self._locals.get(name)
        return stack[-1] if stack else None

    def _path(self, node: Node) -> Path:
        local = self._local(node.name) if isinstance(node, Ident) else None
        return local.path if local is not None else self._paths.get(node.id, Path())

    def _operand(self, node: Node) -> Operand:
        path = self._path(node)
        hidden = next(iter(path), None) in _ACCUMULATORS
        return Operand(node, self._type(node), Path() if hidden else path, self._size(node))

    def _size(self, node: Node) -> Range | None:
        known = self._sizes.get(node.id) or _written_size(node)
        if known is not None:
            return known
        declared = size_at(list(self._path(node)))
        if declared is not None:
            self._sizes[node.id] = declared
            return declared
        if _is_scalar(self._type(node)):
            return ONE
        local = self._local(node.name) if isinstance(node, Ident) else None
        return None if local is None else local.size

    def _entry_sizes(self, node: Node) -> _Entries | None:
        known = self._entries.get(node.id)
        local = self._local(node.name) if known is None and isinstance(node, Ident) else None
        return known if local is None else local.entries

    def _keep_size(self, node: Node, size: Range | None) -> None:
        if size is not None:
            self._sizes[node.id] = size

    def _keep_entries(self, node: Node, entries: _Entries | None) -> None:
        if entries is not None:
            self._entries[node.id] = entries

    def _copy_sizes(self, to: Node, source: Node) -> None:
        self._keep_size(to, self._size(source))
        self._keep_entries(to, self._entry_sizes(source))


def _is_bind(node: Comprehension) -> bool:
    """Whether the loop is what cel.bind becomes: over nothing, with a variable of its own."""
    over_nothing = isinstance(node.iter_range, ListNode) and not node.iter_range.elements
    condition = node.loop_condition
    never = isinstance(condition, Literal) and condition.value is False
    return over_nothing and never and node.accu_var != "__result__"


def _union(one: _Entries | None, other: _Entries | None) -> _Entries | None:
    if one is None or other is None:
        return None
    return _Entries(is_list=one.is_list, key=one.key | other.key, value=one.value | other.value)


def _written_size(node: Node) -> Range | None:
    match node:
        case Literal():
            return Range.exactly(len(node.value)) if isinstance(node.value, str | bytes) else ONE
        case ListNode():
            return Range.exactly(len(node.elements))
        case MapNode():
            return Range.exactly(len(node.entries))
    return None


def _is_scalar(given: Type) -> bool:
    if given.kind is Kind.OPAQUE and given.name == "optional_type":
        return _is_scalar(given.params[0])
    return given.kind in _SCALARS
