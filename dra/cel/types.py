"""The types of CEL as the checker sees them, and the names that `type()` shows at run time. Values stand in `values`.

Types are compared by structure. Follows cel-go common/types/types.go; assignability stands in `unify`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final


class Kind(Enum):
    """What sort of type it is (cel-go `types.Kind`)."""

    DYN = auto()
    ANY = auto()
    BOOL = auto()
    BYTES = auto()
    DOUBLE = auto()
    DURATION = auto()
    ERROR = auto()
    INT = auto()
    LIST = auto()
    MAP = auto()
    NULL = auto()
    OPAQUE = auto()
    STRING = auto()
    STRUCT = auto()
    TIMESTAMP = auto()
    TYPE = auto()
    TYPE_PARAM = auto()
    UINT = auto()


@dataclass(frozen=True, slots=True)
class Type:
    """A type: kind, run-time name, parameters. `nullable` marks protobuf wrapper types, which null is assignable to."""

    kind: Kind
    name: str
    params: tuple[Type, ...] = ()
    nullable: bool = False

    def __str__(self) -> str:
        if self.kind is Kind.TYPE_PARAM:
            return f"<{self.name}>"
        name = f"wrapper({self.name})" if self.nullable else self.name
        return f"{name}({', '.join(map(str, self.params))})" if self.params else name


DYN: Final = Type(Kind.DYN, "dyn")
ANY: Final = Type(Kind.ANY, "google.protobuf.Any")
BOOL: Final = Type(Kind.BOOL, "bool")
BYTES: Final = Type(Kind.BYTES, "bytes")
DOUBLE: Final = Type(Kind.DOUBLE, "double")
DURATION: Final = Type(Kind.DURATION, "google.protobuf.Duration")
ERROR: Final = Type(Kind.ERROR, "error")
INT: Final = Type(Kind.INT, "int")
NULL: Final = Type(Kind.NULL, "null_type")
STRING: Final = Type(Kind.STRING, "string")
TIMESTAMP: Final = Type(Kind.TIMESTAMP, "google.protobuf.Timestamp")
TYPE: Final = Type(Kind.TYPE, "type")
UINT: Final = Type(Kind.UINT, "uint")


def list_of(element: Type) -> Type:
    """list(element)."""
    return Type(Kind.LIST, "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """map(key, value)."""
    return Type(Kind.MAP, "map", (key, value))


def opaque(name: str, *params: Type) -> Type:
    """A type without fields, such as net.IP (cel-go `OpaqueType`)."""
    return Type(Kind.OPAQUE, name, params)


def struct(name: str) -> Type:
    """An object type, such as kubernetes.Quantity (cel-go `ObjectType`)."""
    return Type(Kind.STRUCT, name)


def optional_of(value: Type) -> Type:
    """optional_type(value)."""
    return opaque("optional_type", value)


def type_of_type(described: Type) -> Type:
    """type(described): the type of a type's name in an expression."""
    return Type(Kind.TYPE, "type", (described,))


def type_param(name: str) -> Type:
    """A type parameter of an overload; the checker finds what it stands for."""
    return Type(Kind.TYPE_PARAM, name)


LIST: Final = list_of(DYN)
MAP: Final = map_of(DYN, DYN)
OPTIONAL: Final = optional_of(DYN)
DEVICE: Final = struct("kubernetes.DRADevice")
QUANTITY: Final = struct("kubernetes.Quantity")
SEMVER: Final = struct("kubernetes.Semver")
URL: Final = struct("kubernetes.URL")
NAMED_FORMAT: Final = struct("kubernetes.NamedFormat")
IP: Final = opaque("net.IP")
CIDR: Final = opaque("net.CIDR")


def is_dyn(given: Type) -> bool:
    """Whether the checker lets the type pass anywhere: dyn or any."""
    return given.kind is Kind.DYN or given.kind is Kind.ANY
