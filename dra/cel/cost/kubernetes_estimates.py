"""What a call of a Kubernetes function may cost, by name of the function, from the sizes its operands may have.

Follows `EstimateCallCost` of k8s.io/apiserver/pkg/cel/library/cost.go, oddities included: these numbers are API.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from dra.cel import types
from dra.cel.cost.calls import LIST_BASE, NOMINAL, REGEX, TRAVERSAL, CallShape, Estimate, Rule, literal_int, matching
from dra.cel.cost.ranges import LARGEST, ONE, ZERO, Range
from dra.cel.types import Kind


def _nominal(_call: CallShape) -> Estimate:
    return NOMINAL


def _authorization_check(_call: CallShape) -> Estimate:
    return Estimate(Range.exactly(350_000))


def _selector(call: CallShape) -> Estimate | None:
    if len(call.args) != 1:
        return None
    size = call.args[0].size
    requirements = size.scaled(0.5).scaled(50.0)
    return Estimate(Range.exactly(LIST_BASE) + size.scaled(TRAVERSAL) + requirements)


def _each_element(call: CallShape) -> Estimate | None:
    target = call.target
    if target is None:
        return None
    if target.type.params:
        cost = ONE
        if target.type.params[0].kind in {Kind.STRING, Kind.BYTES}:
            cost += target.element_size.scaled(TRAVERSAL)
        return Estimate(target.size * cost)
    return Estimate(target.size if call.function == "includes" else target.size.scaled(TRAVERSAL))


def _argument_traversed(call: CallShape) -> Estimate | None:
    return Estimate(call.args[0].size.scaled(TRAVERSAL)) if call.args else None


def _url(call: CallShape) -> Estimate | None:
    if len(call.args) != 1:
        return None
    return Estimate(call.args[0].size.scaled(TRAVERSAL), call.args[0].size)


def _text_transformed(call: CallShape) -> Estimate | None:
    return None if call.target is None else Estimate(call.target.size.scaled(TRAVERSAL), call.target.size)


def _replace(call: CallShape) -> Estimate | None:
    if call.target is None or len(call.args) < 2:
        return None
    size, old, new = call.target.size, call.args[0].size, call.args[1].size
    most, kept_most = _replacements(size.most, old.least, shrinks=new.most <= old.least)
    least, kept_least = _replacements(size.least, old.most, shrinks=old.most <= new.least)
    result = Range(least, most) * new + Range(kept_least, kept_most)
    return Estimate(size.scaled(2 * TRAVERSAL), result)


def _replacements(length: int, replaced: int, *, shrinks: bool) -> tuple[int, int]:
    """How often something of that length is replaced, and how much of the original is counted besides."""
    if replaced == 0:
        return min(length + 1, LARGEST), length
    if shrinks:
        return 0, length
    return min(math.ceil(float(length) / float(replaced)), LARGEST), 0


def _split(call: CallShape) -> Estimate | None:
    if call.target is None:
        return None
    size = call.target.size
    most = size.most
    if len(call.args) > 1:
        limit = literal_int(call.args[1])
        most = most if limit is None else limit % 2**64
    return Estimate(size.scaled(2 * TRAVERSAL), Range(0, most))


def _join(call: CallShape) -> Estimate | None:
    target = call.target
    if target is None:
        return None
    size = target.size * target.element_size if target.type.params else ZERO
    if call.args:
        separators = Range(max(target.size.least - 1, 0), max(target.size.most - 1, 0))
        size += call.args[0].size * separators
    return Estimate(size.scaled(TRAVERSAL), size)


def _find(call: CallShape) -> Estimate | None:
    if call.target is None or not call.args:
        return None
    size = call.target.size
    return Estimate(matching(size, call.args[0].size), Range(0, size.most))


def _ip(call: CallShape) -> Estimate | None:
    return NOMINAL if call.overload == "cidr_ip" else _argument_traversed(call)


def _is_canonical(call: CallShape) -> Estimate | None:
    return Estimate(call.args[0].size.scaled(2 * TRAVERSAL)) if call.args else None


_ADDRESS: Final = Range(4, 16)  # bytes


def _contains_ip(call: CallShape) -> Estimate | None:
    if not call.args:
        return None
    cost = (_ADDRESS + _ADDRESS).scaled(TRAVERSAL)
    if call.overload == "cidr_contains_ip_string":
        cost += call.args[0].size.scaled(TRAVERSAL)
    return Estimate(cost)


def _contains_cidr(call: CallShape) -> Estimate | None:
    if not call.args:
        return None
    cost = (_ADDRESS + _ADDRESS).scaled(TRAVERSAL) + _ADDRESS.scaled(TRAVERSAL) + ONE
    if call.overload == "cidr_contains_cidr_string":
        cost += call.args[0].size.scaled(TRAVERSAL)
    return Estimate(cost)


def _validate(call: CallShape) -> Estimate | None:
    longest_pattern = 128
    return Estimate(call.args[0].size.scaled(TRAVERSAL).scaled(longest_pattern * REGEX)) if call.args else None


def _kubernetes_equal(call: CallShape) -> Estimate | None:
    left, right = call.args[0].type, call.args[1].type
    if left.name != right.name:
        return None
    if left in {types.IP, types.CIDR, types.QUANTITY, types.SEMVER}:
        return NOMINAL
    if left == types.NAMED_FORMAT:
        return Estimate(Range(1, 64).scaled(TRAVERSAL))
    if left == types.URL:  # upstream looks at the right operand twice
        known = call.args[1].known
        return Estimate(Range(1, 1 if known is None else known.most).scaled(TRAVERSAL))
    return None


KUBERNETES: Final[Mapping[str, Rule]] = {
    "check": _authorization_check,
    **dict.fromkeys(
        ["serviceAccount", "path", "group", "resource", "subresource", "namespace", "name", "allowed", "reason"],
        _nominal,
    ),
    **dict.fromkeys(["error", "errored", "format.named", "masked", "prefixLength", "family"], _nominal),
    **dict.fromkeys(["isUnspecified", "isLoopback", "isLinkLocalMulticast", "isLinkLocalUnicast"], _nominal),
    **dict.fromkeys(["isGlobalUnicast", "sign", "asInteger", "isInteger", "asApproximateFloat"], _nominal),
    **dict.fromkeys(["isGreaterThan", "isLessThan", "compareTo", "add", "sub", "major", "minor", "patch"], _nominal),
    **dict.fromkeys(["getScheme", "getHostname", "getHost", "getPort", "getEscapedPath", "getQuery"], _nominal),
    **dict.fromkeys(["fieldSelector", "labelSelector"], _selector),
    **dict.fromkeys(["isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"], _each_element),
    **dict.fromkeys(["cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"], _argument_traversed),
    **dict.fromkeys(["lowerAscii", "upperAscii", "substring", "trim"], _text_transformed),
    **dict.fromkeys(["find", "findAll"], _find),
    "url": _url,
    "replace": _replace,
    "split": _split,
    "join": _join,
    "ip": _ip,
    "ip.isCanonical": _is_canonical,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
    "_==_": _kubernetes_equal,
}
