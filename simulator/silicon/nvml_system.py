"""NVML's system, initialisation and event functions. Each takes the session and the C arguments, and returns nothing.

Event sets can be made, registered and waited on; no event has a source yet, so every wait ends in TIMEOUT.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from simulator.silicon import pointers
from simulator.silicon.handles import Session
from simulator.silicon.hardware import NvmlReturn
from simulator.silicon.rules import Refused

_ERROR_STRINGS = {
    NvmlReturn.SUCCESS: "Success",
    NvmlReturn.UNINITIALIZED: "Uninitialized",
    NvmlReturn.INVALID_ARGUMENT: "Invalid Argument",
    NvmlReturn.NOT_SUPPORTED: "Not Supported",
    NvmlReturn.NOT_FOUND: "Not Found",
    NvmlReturn.INSUFFICIENT_SIZE: "Insufficient Size",
    NvmlReturn.TIMEOUT: "Timeout",
    NvmlReturn.RESET_REQUIRED: "GPU requires reset",
    NvmlReturn.IN_USE: "In use by another client",
    NvmlReturn.INSUFFICIENT_RESOURCES: "Insufficient Resources",
    NvmlReturn.ARGUMENT_VERSION_MISMATCH: "Argument version mismatch",
}

# Xid, single and double bit ECC, MIG configuration change (nvmlEventType* in nvml.h).
_SUPPORTED_EVENTS = 0x8 | 0x1 | 0x2 | 0x100
_EVENT_SET = 0x7E0000001000


def error_string(code: int) -> str:
    """NVML's words for a return code."""
    known = {int(value): words for value, words in _ERROR_STRINGS.items()}
    return known.get(code, "Unknown Error")


def _init_with_flags(session: Session, _flags: Any) -> None:
    session.init()


def _shutdown(session: Session) -> None:
    session.shutdown()


def _driver_version(session: Session, buffer: Any, length: Any) -> None:
    pointers.put_text(buffer, length, session.state.read().driver_version)


def _nvml_version(session: Session, buffer: Any, length: Any) -> None:
    silicon = session.state.read()
    pointers.put_text(buffer, length, f"{silicon.cuda_version // 1000}.{silicon.driver_version}")


def _cuda_driver_version(session: Session, version: Any) -> None:
    pointers.put(version, session.state.read().cuda_version)


def _event_set_create(_session: Session, event_set: Any) -> None:
    pointers.put_handle(event_set, _EVENT_SET)


def _event_set_free(_session: Session, event_set: Any) -> None:
    _check_event_set(event_set)


def _register_events(session: Session, device: Any, types: Any, event_set: Any) -> None:
    session.gpu(device)
    _check_event_set(event_set)
    if pointers.number(types) & ~_SUPPORTED_EVENTS:
        raise Refused(NvmlReturn.NOT_SUPPORTED)


def _supported_event_types(session: Session, device: Any, types: Any) -> None:
    session.gpu(device)
    pointers.put(types, _SUPPORTED_EVENTS)


def _event_set_wait(_session: Session, event_set: Any, _data: Any, timeout_ms: Any) -> None:
    _check_event_set(event_set)
    time.sleep(pointers.number(timeout_ms) / 1000)
    raise Refused(NvmlReturn.TIMEOUT)


def _check_event_set(event_set: Any) -> None:
    if pointers.handle_value(event_set) != _EVENT_SET:
        raise Refused(NvmlReturn.INVALID_ARGUMENT)


FUNCTIONS: dict[str, Callable[..., None]] = {
    "nvmlInitWithFlags": _init_with_flags,
    "nvmlShutdown": _shutdown,
    "nvmlSystemGetDriverVersion": _driver_version,
    "nvmlSystemGetNVMLVersion": _nvml_version,
    "nvmlSystemGetCudaDriverVersion": _cuda_driver_version,
    "nvmlSystemGetCudaDriverVersion_v2": _cuda_driver_version,
    "nvmlEventSetCreate": _event_set_create,
    "nvmlEventSetFree": _event_set_free,
    "nvmlDeviceRegisterEvents": _register_events,
    "nvmlDeviceGetSupportedEventTypes": _supported_event_types,
    "nvmlEventSetWait_v2": _event_set_wait,
}
