"""Compiles selectors and runs them: the whole way from a text to what it says about a device.

Follows `CompileCELExpression` and `DeviceMatches` of k8s.io/dynamic-resource-allocation/cel/compile.go.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from dra.cel import types
from dra.cel.ast import Checked
from dra.cel.checker import check
from dra.cel.cost.bounds import may_exceed
from dra.cel.cost.estimate import estimate
from dra.cel.cost.meter import Meter
from dra.cel.cost.metering import metered
from dra.cel.device import CelDevice
from dra.cel.environment import ENVIRONMENTS, Environment, EnvironmentName
from dra.cel.errors import CelRuntimeError, CelSyntaxError, CelTypeError
from dra.cel.evaluate import Plan, plan
from dra.cel.explain import Explanation, Term, explain, terms
from dra.cel.frames import UNSET, Eval, Frame, finished
from dra.cel.parser import Parsed, parse
from dra.cel.paths import Reads, reads
from dra.cel.places import place
from dra.cel.types import Kind, Type
from dra.cel.validate import validate
from dra.cel.values import NONE, CelMap, Optional, type_of

_CACHED: Final = 4096  # expressions
_GO_NAMES: Final = {
    "int": "unsupported type conversion from 'int' to bool",
    "uint": "unsupported type conversion from 'uint' to bool",
    "string": "unsupported native conversion from string to 'bool'",
    "double": "type conversion error from Double to 'bool'",
    "bytes": "type conversion error from Bytes to 'bool'",
    "list": "type conversion error from list to 'bool'",
    "map": "type conversion error from map to 'bool'",
    "null_type": "type conversion error from 'null_type' to 'bool'",
    "type": "type conversion not supported for 'type'",
    "google.protobuf.Timestamp": "type conversion error from 'Timestamp' to 'bool'",
    "google.protobuf.Duration": "type conversion error from 'Duration' to 'bool'",
    "kubernetes.NamedFormat": "type conversion error from 'Format' to 'bool'",
}


class Program:
    """A compiled selector. Made by `compile_expression`; knows no device.

    `reads` has part ("attributes" or "capacity"), domain and id of all that it can look at besides the driver and
    whether the device can be shared; None where that depends on more than the text. `max_cost` is the estimate that the
    API server compares with its limit.
    """

    __slots__ = ("_blank", "_counts", "_evaluate", "_metered", "_parsed", "_terms", "checked", "max_cost", "reads")

    def __init__(self, parsed: Parsed, checked: Checked, planned: Plan) -> None:
        self._parsed = parsed
        self._evaluate = planned.evaluate
        self._blank: Frame = [UNSET] * (planned.slots - 1)
        self._metered: Plan | None = None
        self._terms: tuple[Term, ...] | None = None
        self.checked = checked
        self.max_cost = estimate(checked).most
        self._counts = may_exceed(checked, self.max_cost)
        self.reads: Reads | None = reads(checked)

    @property
    def text(self) -> str:
        """The expression as it was written."""
        return self._parsed.text

    def explain(self, device: CelDevice) -> Explanation:
        """Which conditions of the selector hold for the device, and the values that they saw."""
        if self._terms is None:
            self._terms = terms(self._parsed, self.checked)
        return explain(self._terms, self.matches, device)

    def matches(self, device: CelDevice) -> bool:
        """What the selector says of the device, or CelRuntimeError. Costs are counted if they might be too high."""
        if self._counts:
            result, _ = self.cost(device)
            if isinstance(result, CelRuntimeError):
                raise result
            return result
        return _outcome(self._evaluate, [device.view(), *self._blank])

    def cost(self, device: CelDevice) -> tuple[bool | CelRuntimeError, int | None]:
        """What `matches` says or raises, and its cost in CEL's units; None for a device that cannot be converted."""
        if self._metered is None:
            self._metered = metered(self.checked)
        meter = Meter()
        blank = [UNSET] * (self._metered.slots - 1)
        try:
            view = device.view()
        except CelRuntimeError as error:
            return error, None
        try:
            return _outcome(self._metered.evaluate, [view, *blank, meter]), meter.cost
        except CelRuntimeError as error:
            return error, meter.cost


def _outcome(evaluate: Eval, frame: Frame) -> bool:
    result = finished(evaluate, frame)
    return result if result is True or result is False else as_bool(result)


def as_bool(result: object) -> bool:
    """The result as a bool, or the scheduler's error for one that is none. An optional counts as its value."""
    outer = type_of(result).name
    while isinstance(result, Optional) and result.present:
        result = result.value
    if isinstance(result, bool):
        return result
    raise CelRuntimeError(f"CEL result of type {outer} could not be converted to bool: {_reason(result)}")


def _reason(result: object) -> str:
    if result is NONE or isinstance(result, Optional):
        return "optional.none() dereference"
    name = type_of(result).name
    if isinstance(result, CelMap):
        name = "map"
    return _GO_NAMES.get(name) or f"type conversion error from '{name.rpartition('.')[2]}' to 'bool'"


@lru_cache(maxsize=_CACHED)
def compile_expression(text: str, *, environment: EnvironmentName = "stored") -> Program:
    """The selector, or CelCompileError with line, column and rule. "new" is stricter: see `dra.cel.environment`."""
    declared = ENVIRONMENTS[environment]
    try:
        parsed = parse(text)
        checked = check(parsed, declared)
        validate(checked)
        _check_result(checked, declared)
        return Program(parsed, checked, plan(checked))
    except RecursionError:
        message = "expression recursion limit exceeded"
        raise CelSyntaxError(message, line=1, column=1, rule="nesting of expressions") from None


def _check_result(checked: Checked, environment: Environment) -> None:
    """A selector is a bool, or an attribute that may turn out to be one."""
    found = checked.types[checked.root.id]
    if found in (types.BOOL, environment.attribute):
        return
    line, column = place(checked.text, checked.root.start)
    message = f"must evaluate to bool or the unknown type, not {_declared_name(found)}"
    raise CelTypeError(message, line=line, column=column, rule="result of a selector")


def _declared_name(found: Type) -> str:
    return str(found) if found.kind is not Kind.DYN else "dyn"
