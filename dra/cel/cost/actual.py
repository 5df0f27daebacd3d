"""What one call did cost, by function and overload, from the values it met. Errors count as values of size 1.

Order as in cel-go interpreter/runtimecost.go `costCall`: trackers of lists and sets (ext/lists.go, ext/sets.go), then
`CallCost` of k8s.io/apiserver/pkg/cel/library/cost.go, then the standard overloads; anything else costs 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

from dra.cel.cost.calls import LIST_BASE, REGEX, TRAVERSAL
from dra.cel.cost.celgo_estimates import of_sorts
from dra.cel.cost.meter import CancelledError
from dra.cel.cost.ranges import LARGEST
from dra.cel.libraries.named_formats import NamedFormat
from dra.cel.libraries.netip import IPAddress, Prefix
from dra.cel.values import CelMap, GrowingList, Opaque, Optional
from dra.quantity import Quantity
from dra.semver import Semver

type Values = tuple[object, ...]
type _Rule = Callable[[Values, object], int | None]


def call_cost(function: str, overload: str, args: Values, result: object) -> int:
    """The cost of a call with these arguments, the receiver first. `overload` is empty where several could be meant.

    CancelledError where upstream's tracker takes a value for a list that is none, and panics.
    """
    kubernetes = _KUBERNETES_OVERLOADS.get(overload) or _KUBERNETES.get(function)
    for rule in (_TRACKERS.get(overload), kubernetes, _STANDARD.get(overload)):
        cost = rule(args, result) if rule is not None else None
        if cost is not None:
            return cost
    return 1


def size_of(value: object) -> int:
    """What `size()` says of strings, bytes, lists and maps, the bytes of an address or a prefix, 1 of the rest."""
    if isinstance(value, str | bytes | tuple | GrowingList | CelMap):
        return len(value)
    if isinstance(value, IPAddress):
        return value.bits // 8
    return -(-value.length // 8) if isinstance(value, Prefix) else 1


def _read(value: object, factor: float = TRAVERSAL) -> int:
    return math.ceil(float(size_of(value)) * factor)


# --- lists and sets, by overload


def _new_list(factor: float, size: int) -> int:
    cost = int(float(min(size, LARGEST)) * (1.0 if factor < 0 else factor))
    return min(cost + 1 + LIST_BASE, LARGEST)


def _output(_args: Values, result: object) -> int:
    return _new_list(1.0, size_of(result))


def _flatten(args: Values, _result: object) -> int:
    depth = 1
    if len(args) == 2:
        if type(args[1]) is not int:
            raise CancelledError("internal error: interface conversion: the depth is not types.Int")
        depth = args[1]
    return _new_list(float(depth), size_of(args[0]))


def _self_compare(position: int) -> _Rule:
    def rule(args: Values, _result: object) -> int:
        values = args[position]
        if not isinstance(values, tuple):
            raise CancelledError("internal error: interface conversion: the operand is not traits.Lister")
        factor = 2.1 if values and isinstance(values[0], str | bytes) else 2.0
        return _new_list(factor, len(values) ** 2)

    return rule


def _sets(factor: float) -> _Rule:
    return lambda args, _result: 1 + int(float(size_of(args[0]) * size_of(args[1])) * factor)


_TRACKERS: Final[Mapping[str, _Rule]] = {
    "list_slice": _output,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _output,
    "list_reverse": _output,
    "list_distinct": _self_compare(0),
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
    **{f"list_{name}_sort": _self_compare(0) for name in of_sorts(plain=0, text=0)},
    **{f"list_{name}_sortByAssociatedKeys": _self_compare(1) for name in of_sorts(plain=0, text=0)},
}


# --- Kubernetes libraries, by function


def _nominal(_args: Values, _result: object) -> int:
    return 1


def _walk(args: Values, _result: object) -> int:
    return _walked(args[0]) if args else 0


def _walked(value: object) -> int:
    """A value read through as a tree (`traversalCost`); strings by their bytes, rounded down."""
    if isinstance(value, str):
        return int(float(len(value.encode("utf-8", "surrogatepass"))) * TRAVERSAL)
    if isinstance(value, bytes):
        return int(float(len(value)) * TRAVERSAL)
    if isinstance(value, tuple):
        return sum(map(_walked, value))
    if isinstance(value, CelMap):
        return sum(_walked(key) + _walked(each) for key, each in value.items())
    return 1


def _first_read(factor: float = TRAVERSAL) -> _Rule:
    return lambda args, _result: _read(args[0], factor) if args else None


def _result_read_twice(_args: Values, result: object) -> int:
    return _read(result, 2 * TRAVERSAL)


def _matched(text: object, regex_size: int) -> int:
    return math.ceil((1.0 + size_of(text)) * TRAVERSAL) * math.ceil(float(regex_size) * REGEX)


def _match(args: Values, _result: object) -> int | None:
    return _matched(args[0], size_of(args[1])) if len(args) >= 2 else None


def _contains_ip(args: Values, _result: object) -> int | None:
    return math.ceil(float(2 * size_of(args[0])) * TRAVERSAL) if len(args) >= 2 else None


def _contains_ip_text(args: Values, _result: object) -> int:
    return math.ceil(float(2 * size_of(args[0])) * TRAVERSAL) + _read(args[1])


def _contains_cidr(args: Values, _result: object) -> int | None:
    return math.ceil(float(2 * size_of(args[0])) * TRAVERSAL) + _read(args[0]) + 1 if len(args) >= 2 else None


def _contains_cidr_text(args: Values, _result: object) -> int:
    return math.ceil(float(2 * size_of(args[0])) * TRAVERSAL) + _read(args[0]) + 1 + _read(args[1])


def _validate(args: Values, _result: object) -> int | None:
    return _matched(args[1], args[0].regex_size) if isinstance(args[0], NamedFormat) else None


def _equal(args: Values, _result: object) -> int | None:
    return 1 if isinstance(args[0], _PRICED_AS_ONE) else None


_PRICED_AS_ONE: Final = (Quantity, Semver, Opaque)

_KUBERNETES_OVERLOADS: Final[Mapping[str, _Rule]] = {
    "cidr_ip": _nominal,
    "cidr_contains_ip_string": _contains_ip_text,
    "cidr_contains_cidr_string": _contains_cidr_text,
}
_KUBERNETES: Final[Mapping[str, _Rule]] = {
    **dict.fromkeys(["masked", "prefixLength", "family", "isUnspecified", "isLoopback"], _nominal),
    **dict.fromkeys(["isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast", "format.named"], _nominal),
    **dict.fromkeys(["sign", "asInteger", "isInteger", "asApproximateFloat", "isGreaterThan", "isLessThan"], _nominal),
    **dict.fromkeys(["compareTo", "add", "sub", "major", "minor", "patch"], _nominal),
    **dict.fromkeys(["getScheme", "getHostname", "getHost", "getPort", "getEscapedPath", "getQuery"], _nominal),
    **dict.fromkeys(["isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"], _walk),
    **dict.fromkeys(["url", "lowerAscii", "upperAscii", "substring", "trim"], _first_read()),
    **dict.fromkeys(["ip", "cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"], _first_read()),
    **dict.fromkeys(["replace", "split", "ip.isCanonical"], _first_read(2 * TRAVERSAL)),
    **dict.fromkeys(["find", "findAll"], _match),
    "join": _result_read_twice,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
    "_==_": _equal,
}


# --- the standard library, by overload


def _second_read(args: Values, _result: object) -> int:
    return _read(args[1])


def _in_list(args: Values, _result: object) -> int:
    return _deep_size(args[1])


def _compared(args: Values, _result: object) -> int:
    return math.ceil(float(min(_deep_size(args[0]), _deep_size(args[1]))) * TRAVERSAL)


def _both_read(args: Values, _result: object) -> int:
    return math.ceil(float(size_of(args[0]) + size_of(args[1])) * TRAVERSAL)


def _contains(args: Values, _result: object) -> int:
    return _read(args[0]) * _read(args[1])


def _deep_size(value: object) -> int:
    """The size of what an optional holds, where it is one: so cel-go, and only cel-go, counts."""
    return _deep_size(value.value) if isinstance(value, Optional) and value.present else size_of(value)


_STANDARD: Final[Mapping[str, _Rule]] = {
    **dict.fromkeys(["starts_with_string", "ends_with_string"], _second_read),
    **dict.fromkeys(["string_to_bytes", "bytes_to_string", "strings_quote", "string_format"], _first_read()),
    "in_list": _in_list,
    **dict.fromkeys(["less_string", "greater_string", "less_equals_string", "greater_equals_string"], _compared),
    **dict.fromkeys(["less_bytes", "greater_bytes", "less_equals_bytes", "greater_equals_bytes"], _compared),
    **dict.fromkeys(["equals", "not_equals"], _compared),
    **dict.fromkeys(["add_string", "add_bytes"], _both_read),
    **dict.fromkeys(["matches", "matches_string"], _match),
    "contains_string": _contains,
}
