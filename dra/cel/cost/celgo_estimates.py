"""What any call may cost, from the sizes its operands may have: cel-go's own functions, then those of Kubernetes.

Lists and sets follow cel-go ext/lists.go and ext/sets.go and come first, by overload; the functions of Kubernetes are
next; the standard overloads follow `functionCost` of cel-go checker/cost.go. Anything else costs 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from dra.cel.cost.calls import LIST_BASE, NOMINAL, TRAVERSAL, CallShape, Estimate, Operand, Rule, literal_int, matching
from dra.cel.cost.kubernetes_estimates import KUBERNETES
from dra.cel.cost.ranges import LARGEST, ONE, Range


def estimate_call(call: CallShape) -> Estimate:
    """The cost of the call beyond that of its operands. `&&`, `||` and `?:` are not calls in this sense."""
    for rule in (EXTENSIONS.get(call.overload), KUBERNETES.get(call.function), _STANDARD.get(call.overload)):
        found = rule(call) if rule is not None else None
        if found is not None:
            return found
    return NOMINAL


# --- lists and sets, by overload


def _new_list(size: Range, factor: float = 1.0) -> Estimate:
    return Estimate(size.scaled(factor) + ONE + Range.exactly(LIST_BASE), size)


def _list_slice(call: CallShape) -> Estimate | None:
    if call.target is None or len(call.args) != 2:
        return None
    start = _whole(call.args[0], 0)
    return _new_list(Range.exactly((_whole(call.args[1], call.target.size.most) - start) % 2**64))


def _lists_range(call: CallShape) -> Estimate | None:
    if call.target is not None or len(call.args) != 1:
        return None
    return _new_list(Range.exactly(_whole(call.args[0], LARGEST)))


def _list_reverse(call: CallShape) -> Estimate | None:
    return None if call.target is None else _new_list(call.target.size)


def _list_flatten(call: CallShape) -> Estimate | None:
    if call.target is None:
        return None
    depth = _whole(call.args[0], LARGEST) if call.args else 1
    return _new_list(call.target.size, float(depth))


def _list_distinct(call: CallShape) -> Estimate | None:
    return None if call.target is None else _new_list(call.target.size * call.target.size, 2.0)


def _list_sort(factor: float) -> Rule:
    def rule(call: CallShape) -> Estimate | None:
        return None if call.target is None else _new_list(call.target.size * call.target.size, factor)

    return rule


def _list_sort_by(factor: float) -> Rule:
    def rule(call: CallShape) -> Estimate | None:
        if call.target is None or len(call.args) != 1:
            return None
        return _new_list(call.args[0].size * call.args[0].size, factor)

    return rule


def _sets(factor: float) -> Rule:
    def rule(call: CallShape) -> Estimate | None:
        if len(call.args) != 2:
            return None
        return Estimate((call.args[0].size * call.args[1].size).scaled(factor) + ONE)

    return rule


def _whole(operand: Operand, default: int) -> int:
    """The number if it is written out, 0 if that is negative (cel-go `nodeAsUintValue`)."""
    number = literal_int(operand)
    return default if number is None else max(number, 0)


def of_sorts[T](plain: T, text: T) -> dict[str, T]:
    """Rules for the overloads of sort and sortBy by element type, `{}` in their ids: those of text cost more."""
    plain_types = ["int", "uint", "double", "bool", "google.protobuf.Duration", "google.protobuf.Timestamp"]
    return {**dict.fromkeys(plain_types, plain), **dict.fromkeys(["string", "bytes"], text)}


EXTENSIONS: Final[Mapping[str, Rule]] = {
    "list_slice": _list_slice,
    "list_flatten": _list_flatten,
    "list_flatten_int": _list_flatten,
    "lists_range": _lists_range,
    "list_reverse": _list_reverse,
    "list_distinct": _list_distinct,
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
    **{f"list_{name}_sort": rule for name, rule in of_sorts(_list_sort(2.0), _list_sort(2.1)).items()},
    **{
        f"list_{name}_sortByAssociatedKeys": rule
        for name, rule in of_sorts(_list_sort_by(2.0), _list_sort_by(2.1)).items()
    },
}


# --- the standard library, by overload


def _format(call: CallShape) -> Estimate | None:
    return None if call.target is None else Estimate(call.target.size.scaled(TRAVERSAL))


def _encoded(result: Callable[[Range], Range]) -> Rule:
    def rule(call: CallShape) -> Estimate | None:
        if len(call.args) != 1:
            return None
        size = call.args[0].size
        return Estimate(size.scaled(TRAVERSAL), result(size))

    return rule


def _prefix(call: CallShape) -> Estimate | None:
    return Estimate(call.args[0].size.scaled(TRAVERSAL)) if len(call.args) == 1 else None


def _in_list(call: CallShape) -> Estimate | None:
    return Estimate(call.args[1].size.scaled(1.0)) if len(call.args) == 2 else None


def _matches_member(call: CallShape) -> Estimate | None:
    if call.target is None or len(call.args) != 1:
        return None
    return Estimate(matching(call.target.size, call.args[0].size))


def _matches(call: CallShape) -> Estimate | None:
    if call.target is not None or len(call.args) != 2:
        return None
    return Estimate(matching(call.args[0].size, call.args[1].size))


def _contains(call: CallShape) -> Estimate | None:
    if call.target is None or len(call.args) != 1:
        return None
    return Estimate(call.target.size.scaled(TRAVERSAL) * call.args[0].size.scaled(TRAVERSAL))


def _add_text(call: CallShape) -> Estimate | None:
    size = call.args[0].size + call.args[1].size
    return Estimate(size.scaled(TRAVERSAL), size)


def _add_list(call: CallShape) -> Estimate | None:
    return Estimate(ONE, call.args[0].size + call.args[1].size)


def _compared(call: CallShape) -> Estimate:
    most = min(call.args[0].size.most, call.args[1].size.most)
    return Estimate(Range(min(most, 1), most).scaled(TRAVERSAL))


_STANDARD: Final[Mapping[str, Rule]] = {
    "string_format": _format,
    "string_to_bytes": _encoded(lambda size: Range(size.least, size.most * 4 % 2**64)),
    "bytes_to_string": _encoded(lambda size: Range(size.least // 4, size.most)),
    "strings_quote": _encoded(lambda size: Range((size.least + 2) % 2**64, (size.most * 2 + 2) % 2**64)),
    "starts_with_string": _prefix,
    "ends_with_string": _prefix,
    "in_list": _in_list,
    "matches": _matches,
    "matches_string": _matches_member,
    "contains_string": _contains,
    "add_string": _add_text,
    "add_bytes": _add_text,
    "add_list": _add_list,
    **dict.fromkeys(["equals", "not_equals", "less_string", "greater_string", "less_equals_string"], _compared),
    **dict.fromkeys(["greater_equals_string", "less_bytes", "greater_bytes", "less_equals_bytes"], _compared),
    "greater_equals_bytes": _compared,
}
