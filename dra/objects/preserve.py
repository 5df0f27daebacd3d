"""Write a changed object back without losing what Portico does not know of it.

Only what differs between the struct as read and the struct as wanted is changed in the original JSON; unknown fields,
also inside list entries, stay. May not send anything: bytes in, bytes out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from dra.errors import InvalidObjectError
from dra.objects.meta import JsonObject, encode

# How the API server tells entries of a list apart (listMapKey); entries of other lists are told by their place.
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "requests": ("name",),
    "firstAvailable": ("name",),
    "devices": ("driver", "pool", "device", "shareID", "name"),
    "sharedCounters": ("name",),
    "consumesCounters": ("counterSet",),
    "conditions": ("type",),
    "reservedFor": ("uid",),
    "ownerReferences": ("uid",),
    "derivedAttributes": ("name",),
    "containers": ("name",),
    "initContainers": ("name",),
    "resourceClaims": ("name",),
}


def write_back[S: msgspec.Struct](original: bytes, before: S, after: S) -> bytes:
    """The original with what `after` changes in `before`; both are of the kind and version of the original.

    A field that `after` unsets is taken out. InvalidObjectError where the original is no JSON object.
    """
    try:
        plain = msgspec.json.decode(original)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InvalidObjectError(f"{type(after).__name__}: the original is no JSON: {error}") from error
    if not isinstance(plain, dict):
        raise InvalidObjectError(f"{type(after).__name__}: the original is no JSON object")
    return msgspec.json.encode(_merged_object(plain, _as_read(before), _as_read(after)))


def _as_read(struct: msgspec.Struct) -> JsonObject:
    """Lists as lists, as the original has them; `to_json` would give tuples."""
    value: JsonObject = msgspec.json.decode(encode(struct))
    return value


def _merged(original: Any, before: Any, after: Any, name: str) -> Any:
    if before == after:
        return original
    if isinstance(original, dict) and isinstance(before, dict) and isinstance(after, dict):
        return _merged_object(original, before, after)
    if isinstance(original, list) and isinstance(before, list) and isinstance(after, list):
        return _merged_list(original, before, after, name)
    return after


def _merged_object(original: JsonObject, before: JsonObject, after: JsonObject) -> JsonObject:
    taken_out = before.keys() - after.keys()
    merged = {name: value for name, value in original.items() if name not in taken_out}
    for name, value in after.items():
        merged[name] = _merged(original.get(name), before.get(name), value, name)
    return merged if before != after else original


def _merged_list(original: list[Any], before: list[Any], after: list[Any], name: str) -> list[Any]:
    """Entries in the order of `after`; each finds its own original by its keys, else by its place."""
    pairs = {
        _identity(read, index, name): (source, read)
        for index, (source, read) in enumerate(zip(original, before, strict=False))
    }
    return [
        _merged(*pairs.get(_identity(wanted, index, name), (None, None)), wanted, name)
        for index, wanted in enumerate(after)
    ]


def _identity(entry: Any, index: int, name: str) -> tuple[object, ...]:
    keys = _KEYS.get(name, ())
    if isinstance(entry, dict) and any(key in entry for key in keys):
        return tuple(entry.get(key) for key in keys)
    return (index,)
