"""Derived attributes: a CEL expression whose value becomes an attribute of a device (gate DRADerivedAttributes).

Follows `EvaluateDerivedAttribute` and `validateOutputType` of k8s.io/dynamic-resource-allocation/cel/compile.go, in the
environment for stored expressions. A result is a bool, int, string or version, or a list of one of these.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from dra.cel import types
from dra.cel.checker import check
from dra.cel.device import CelDevice
from dra.cel.environment import ENVIRONMENTS
from dra.cel.errors import CelRuntimeError, CelTypeError
from dra.cel.evaluate import Plan, plan
from dra.cel.frames import UNSET
from dra.cel.parser import parse
from dra.cel.places import place
from dra.cel.types import Type
from dra.cel.validate import validate
from dra.cel.values import UInt, type_of
from dra.objects import DeviceAttribute
from dra.semver import Semver

_CACHED: Final = 256  # expressions
_ELEMENTS: Final = (types.BOOL, types.INT, types.STRING, types.ANY, types.DYN, types.opaque("kubernetes.Semver"))


class DerivedAttribute:
    """A compiled expression. Made by `compile_derived`; knows no device."""

    __slots__ = ("_plan",)

    def __init__(self, planned: Plan) -> None:
        self._plan = planned

    def of(self, device: CelDevice) -> DeviceAttribute:
        """The attribute of that device, or CelRuntimeError."""
        try:
            return _attribute(self._plan.evaluate([device.view(), *[UNSET] * (self._plan.slots - 1)]))
        except RecursionError:
            raise CelRuntimeError("expression nested too deeply") from None


@lru_cache(maxsize=_CACHED)
def compile_derived(text: str) -> DerivedAttribute:
    """The expression, or CelCompileError with line, column and rule."""
    checked = check(parse(text), ENVIRONMENTS["stored"])
    validate(checked)
    found = checked.types[checked.root.id]
    if not _allowed(found):
        line, column = place(checked.text, checked.root.start)
        rule = "must evaluate to a primitive scalar (string, integer, boolean, semver) or a list of these scalars"
        raise CelTypeError(f"{rule}, not {found}", line=line, column=column, rule="result of a derived attribute")
    return DerivedAttribute(plan(checked))


def _allowed(found: Type) -> bool:
    return found in _ELEMENTS or any(found == types.list_of(element) for element in _ELEMENTS)


def _attribute(value: object) -> DeviceAttribute:
    if isinstance(value, list | tuple):
        return _list_attribute(tuple(value))
    match _kind(value):
        case "bool":
            return DeviceAttribute(bool_=bool(value))
        case "int" if isinstance(value, int):
            return DeviceAttribute(int_=value)
        case "string":
            return DeviceAttribute(string=str(value))
        case "version":
            return DeviceAttribute(version=str(value))
        case _:
            raise CelRuntimeError(f"unsupported CEL return type: {type_of(value).name}")


def _list_attribute(values: tuple[object, ...]) -> DeviceAttribute:
    kind = _kind(values[0]) if values else "string"
    for index, value in enumerate(values):
        if _kind(value) != kind:
            raise CelRuntimeError(
                f"expected list element at index {index} to be {kind}, got {type_of(value).name}"
                if kind
                else f"unsupported list element type: {type_of(value).name}"
            )
    match kind:
        case "bool":
            return DeviceAttribute(bools=tuple(map(bool, values)))
        case "int":
            return DeviceAttribute(ints=tuple(value for value in values if isinstance(value, int)))
        case "string":
            return DeviceAttribute(strings=tuple(map(str, values)))
        case "version":
            return DeviceAttribute(versions=tuple(map(str, values)))
        case _:
            raise CelRuntimeError(f"unsupported list element type: {type_of(values[0]).name}")


def _kind(value: object) -> str:
    """Which field of a DeviceAttribute takes the value, "" for none."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int) and not isinstance(value, UInt):
        return "int"
    if isinstance(value, str):
        return "string"
    return "version" if isinstance(value, Semver) else ""
