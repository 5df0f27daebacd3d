"""Closures that reach into values: fields, indices, their optional forms, and has().

Follows cel-go interpreter/attributes.go: a field or key of an optional gives an optional; what has no fields has no
key, and has() of it is false.
"""

from __future__ import annotations

import math
from typing import Final, Literal

from dra.cel.device import IdMap
from dra.cel.errors import CelRuntimeError
from dra.cel.frames import Eval, Frame
from dra.cel.values import INT_MAX, INT_MIN, NONE, CelMap, Optional, UInt, type_name

type Part = Literal["attributes", "capacity"]

_MISSING: Final = object()
_KEYS: Final = (str, int, UInt, bool, float)


def is_key(value: object) -> bool:
    """Whether the value may stand between brackets."""
    return type(value) in _KEYS


def bad_key(value: object) -> CelRuntimeError:
    """The error of another value between brackets."""
    return CelRuntimeError(f"invalid qualifier type: {type_name(value)}")


def _text(key: object) -> str:
    if isinstance(key, bool):
        return str(key).lower()
    return str(int(key)) if isinstance(key, int) else str(key)


def _index(key: object) -> int:
    """The key as an index into a list (common/types/list.go `IndexOrError`)."""
    if type(key) is int:
        return key
    if isinstance(key, UInt) and key <= INT_MAX:
        return int(key)
    if isinstance(key, float) and math.isfinite(key) and key.is_integer() and INT_MIN < key < INT_MAX:
        return int(key)
    if isinstance(key, UInt | float):
        raise CelRuntimeError(f"unsupported index value {_text(key)} in list")
    raise CelRuntimeError(f"unsupported index type '{type_name(key)}' in list")


def _found(target: object, key: object) -> object:
    """What the target has at the key, or _MISSING."""
    if isinstance(target, CelMap):
        return target.find(key, _MISSING)
    if not isinstance(target, tuple):
        return _MISSING
    index = _index(key)
    return target[index] if 0 <= index < len(target) else _MISSING


def get(target: object, key: object) -> object:
    """target[key]; of an optional, an optional."""
    if isinstance(target, Optional):
        return get_optional(target.value, key) if target.present else NONE
    found = _found(target, key)
    if found is not _MISSING:
        return found
    if isinstance(target, tuple):
        raise CelRuntimeError(f"index out of bounds: {_text(key)}")
    raise CelRuntimeError(f"no such key: {_text(key)}")


def get_plain(target: object, key: object) -> object:
    """Like `get`, where the target is a field itself: an optional that stands in a field has no fields."""
    if isinstance(target, Optional):
        raise CelRuntimeError(f"no such key: {_text(key)}")
    return get(target, key)


def get_optional(target: object, key: object) -> object:
    """target[?key]."""
    if isinstance(target, Optional):
        return get_optional(target.value, key) if target.present else NONE
    found = _found(target, key)
    return NONE if found is _MISSING else Optional(found)


def has(target: object, key: object) -> bool:
    """Whether the target has the key; what has no keys at all has not."""
    if isinstance(target, Optional):
        return target.present and has(target.value, key)
    return _found(target, key) is not _MISSING


def has_unwrapped(target: object, key: object) -> object:
    """Like `has`, but of an optional an optional: what cel-go gives where has() alone is chosen by `?:`."""
    if isinstance(target, Optional):
        return Optional(None) if has(target, key) else NONE
    return has(target, key)


def of_constant(target: Eval, key: object, *, how: str) -> Eval:
    """A closure for a key that is known; `how` names the function above."""
    reach = _REACH[how]
    if how not in ("get", "get_plain") or not isinstance(key, str):
        return lambda frame: reach(target(frame), key)

    def run(frame: Frame) -> object:
        operand = target(frame)
        if operand.__class__ is IdMap and key in operand.entries:
            return operand.entries[key]
        return reach(operand, key)

    return run


def of_computed(target: Eval, key: Eval, *, how: str) -> Eval:
    """A closure for a key that is evaluated; below an absent optional it is not."""
    reach, skips = _REACH[how], how != "get_plain"

    def run(frame: Frame) -> object:
        operand = target(frame)
        if operand.__class__ is Optional and skips and not operand.present:
            return NONE
        value = key(frame)
        if type(value) not in _KEYS:
            raise bad_key(value)
        return reach(operand, value)

    return run


_REACH: Final = {
    "get": get,
    "get_plain": get_plain,
    "get_optional": get_optional,
    "has": has,
    "has_unwrapped": has_unwrapped,
}


# --- device.attributes[domain].id and device.capacity[domain].id, without a step between ---


def of_device(part: Part, domain: str, id_: str, *, how: str) -> Eval:
    """A closure for a value of the device; `how` as above."""
    if how.startswith("has"):
        return _device_has(part, domain, id_)
    return (_device_optional if how == "get_optional" else _device_value)(part, domain, id_)


def _device_value(part: Part, domain: str, id_: str) -> Eval:
    def attribute(frame: Frame) -> object:
        try:
            return frame[0].attributes[domain][id_]
        except KeyError:
            raise CelRuntimeError(f"no such key: {id_}") from None

    def capacity(frame: Frame) -> object:
        try:
            return frame[0].capacity[domain][id_]
        except KeyError:
            raise CelRuntimeError(f"no such key: {id_}") from None

    return attribute if part == "attributes" else capacity


def _device_optional(part: Part, domain: str, id_: str) -> Eval:
    def run(frame: Frame) -> Optional:
        try:
            return Optional(getattr(frame[0], part)[domain][id_])
        except KeyError:
            return NONE

    return run


def _device_has(part: Part, domain: str, id_: str) -> Eval:
    return lambda frame: id_ in getattr(frame[0], part).get(domain, ())
