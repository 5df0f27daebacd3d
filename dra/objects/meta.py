"""What every Kubernetes object carries, and how wire JSON becomes a frozen struct.

The structs name what Portico reads; a field they do not know is ignored on reading. Bytes as received are kept beside
the struct where an object is stored; `dra.objects.preserve` writes a changed object back without losing such a field.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from dra.objects.reading import read_carefully

type JsonObject = dict[str, Any]
type Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
type QuantityText = Annotated[str, msgspec.Meta(extra={"form": "quantity"})]  # `dra.quantity` reads it


class ApiStruct(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """Base of all API structs: snake_case here, camelCase on the wire, unset fields not written.

    They are trees of JSON, so no cycle is ever collected: without `gc` a fleet in memory is not walked through.
    """


class OwnerReference(ApiStruct, frozen=True, kw_only=True):
    """Who owns an object; the garbage collector removes it with its owner."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False


class ObjectMeta(ApiStruct, frozen=True, kw_only=True):
    """The part of metadata that Portico reads. Times are RFC 3339 texts, as the API server writes them."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()


def decode[S: msgspec.Struct](body: bytes | msgspec.Raw, kind: type[S]) -> S:
    """Read one object from wire JSON. As for the API server, null is absent and a quantity may be a number.

    InvalidObjectError names the kind, the JSON pointer, the value and the rule, for bad JSON line and column.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, RecursionError):
        return read_carefully(bytes(body), kind)


def encode(struct: msgspec.Struct) -> bytes:
    """Wire JSON of a struct, fields in declared order."""
    return msgspec.json.encode(struct)


def encode_value(value: JsonObject) -> bytes:
    """JSON of plain values, without spaces."""
    return msgspec.json.encode(value)


def to_json(struct: msgspec.Struct) -> JsonObject:
    """The struct as plain JSON values."""
    value: JsonObject = msgspec.to_builtins(struct)
    return value
