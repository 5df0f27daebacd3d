"""Reading and writing the ctypes arguments that pynvml hands to a C function. Knows layouts, no GPUs.

pynvml passes output as `byref(x)`, whose target is `._obj`; strings as buffers; numbers as int or as ctypes values;
opaque handles as pointers. ctypes itself is untyped here, hence `Any` at this door and at no other.
"""

from __future__ import annotations

import ctypes
from typing import Any

from simulator.silicon.hardware import NvmlReturn
from simulator.silicon.rules import Refused

POINTER_SIZE = ctypes.sizeof(ctypes.c_void_p)


def target(ref: Any) -> Any:
    """What a `byref` points at; an array or a typed pointer is its own target."""
    return getattr(ref, "_obj", ref)


def number(value: Any) -> int:
    """An int that came plain or as a ctypes number."""
    return int(getattr(value, "value", value))


def text(value: Any) -> str:
    """A C string; INVALID_ARGUMENT for NULL."""
    raw = value.value
    if raw is None:
        raise Refused(NvmlReturn.INVALID_ARGUMENT)
    return bytes(raw).decode()


def put(ref: Any, value: float) -> None:
    """`*ref = value`."""
    target(ref).value = value


def put_text(buffer: Any, length: Any, value: str) -> None:
    """Copy a string into a caller's buffer of `length` bytes; INSUFFICIENT_SIZE when it does not fit with its NUL."""
    raw = value.encode()
    if len(raw) >= number(length):
        raise Refused(NvmlReturn.INSUFFICIENT_SIZE)
    target(buffer).value = raw


def put_fields(ref: Any, **values: float | bytes) -> None:
    """Set fields of the struct behind `ref`."""
    struct = target(ref)
    for name, value in values.items():
        setattr(struct, name, value)


def check_version(ref: Any, *known: int) -> None:
    """ARGUMENT_VERSION_MISMATCH unless the struct's version word (size | version << 24) is a known one."""
    if target(ref).version not in known:
        raise Refused(NvmlReturn.ARGUMENT_VERSION_MISMATCH)


def is_handle(value: Any) -> bool:
    """Whether the argument is an opaque pointer."""
    return isinstance(value, ctypes._Pointer)  # noqa: SLF001 - ctypes names the base of its pointers so


def handle_value(handle: Any) -> int:
    """The number inside an opaque pointer; INVALID_ARGUMENT for NULL."""
    value = ctypes.cast(handle, ctypes.c_void_p).value
    if value is None:
        raise Refused(NvmlReturn.INVALID_ARGUMENT)
    return value


def put_handle(ref: Any, value: int) -> None:
    """`*ref = handle`."""
    ctypes.c_void_p.from_address(ctypes.addressof(target(ref))).value = value


def put_handle_field(ref: Any, field: str, value: int) -> None:
    """Set a handle inside the struct behind `ref`."""
    struct = target(ref)
    ctypes.c_void_p.from_address(ctypes.addressof(struct) + getattr(type(struct), field).offset).value = value


def put_handles(array: Any, values: list[int]) -> None:
    """Fill a caller's array of handles from its start. The array came as such, by `byref`, or as a pointer to it."""
    base = ctypes.cast(array, ctypes.c_void_p).value
    if base is None:
        raise Refused(NvmlReturn.INVALID_ARGUMENT)
    for i, value in enumerate(values):
        ctypes.c_void_p.from_address(base + i * POINTER_SIZE).value = value
