"""The names and functions that a device selector may use: what kube-scheduler and the API server give it.

Follows `newCompiler` of k8s.io/dynamic-resource-allocation/cel/compile.go over k8s.io/apiserver/pkg/cel/environment.
Two environments: "stored" for selectors in stored objects, as the scheduler compiles them, and "new" for what the API
server checks of new objects with the gates of 1.37 as they are without flags.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Final, Literal

from dra.cel import types
from dra.cel.functions import Library, Overload
from dra.cel.libraries import (
    authorizer,
    cidr,
    conversions,
    formatting,
    ip,
    list_extensions,
    lists,
    named_formats,
    optionals,
    quantities,
    regex,
    semvers,
    sets,
    standard,
    strings,
    times,
    urls,
)
from dra.cel.types import Type, map_of

type EnvironmentName = Literal["stored", "new"]

# The order of base.go: of several overloads that fit, the first one says what type parameters stand for.
_FIRST: Final = (standard, conversions, times, urls, regex)
_LAST: Final = (
    authorizer,
    optionals,
    quantities,
    strings,
    formatting,
    sets,
    ip,
    cidr,
    named_formats,
    semvers,
    list_extensions,
)
_SINCE_1_37: Final = frozenset({"includes"})
TYPE_NAMES: Final[Mapping[str, Type]] = {
    each.name: each
    for each in (
        types.BOOL,
        types.BYTES,
        types.DOUBLE,
        types.DURATION,
        types.INT,
        types.LIST,
        types.MAP,
        types.NULL,
        types.STRING,
        types.TIMESTAMP,
        types.TYPE,
        types.UINT,
        types.OPTIONAL,
        types.IP,
        types.CIDR,
    )
}
CONSTANTS: Final[Mapping[str, int]] = {"google.protobuf.NullValue.NULL_VALUE": 0}


@dataclass(frozen=True, slots=True)
class Environment:
    """What is declared: functions by name, names with their types, and the fields of `device`.

    `attribute` is the type of an attribute's value, which a selector may also have as its result.
    """

    functions: Library
    names: Mapping[str, Type]
    device_fields: Mapping[str, Type]
    attribute: Type


def _environment(attribute: Type, functions: Library) -> Environment:
    fields = {
        "driver": types.STRING,
        "allowMultipleAllocations": types.BOOL,
        "attributes": map_of(types.STRING, map_of(types.STRING, attribute)),
        "capacity": map_of(types.STRING, map_of(types.STRING, types.QUANTITY)),
    }
    names = {
        "device": types.DEVICE,
        **{name: types.type_of_type(each) for name, each in TYPE_NAMES.items()},
        **dict.fromkeys(CONSTANTS, types.INT),
    }
    return Environment(functions, names, fields, attribute)


def _gathered(*modules: ModuleType) -> dict[str, tuple[Overload, ...]]:
    functions: dict[str, tuple[Overload, ...]] = {}
    for module in modules:
        for name, overloads in module.FUNCTIONS.items():
            functions[name] = functions.get(name, ()) + overloads
    return functions


_STORED: Final = _gathered(*_FIRST, *_LAST, lists)
_WITH_OLD_LISTS: Final = _gathered(*_FIRST, lists, *_LAST)
_NEW: Final = {name: overloads for name, overloads in _WITH_OLD_LISTS.items() if name not in _SINCE_1_37}
ENVIRONMENTS: Final[Mapping[EnvironmentName, Environment]] = {
    "stored": _environment(types.DYN, _STORED),
    "new": _environment(types.ANY, _NEW),
}
OVERLOADS: Final[Mapping[str, Overload]] = {each.id: each for overloads in _STORED.values() for each in overloads}
