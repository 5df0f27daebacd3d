"""NVML's system, initialisation and event functions. Each takes the session and the C arguments, and returns nothing.

A process has one event set. It is told what happens to a card after the card was registered with it, in order.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from simulator.silicon import pointers
from simulator.silicon.handles import Session
from simulator.silicon.hardware import Event, NvmlReturn
from simulator.silicon.rules import Refused

_ERROR_STRINGS = {
    NvmlReturn.SUCCESS: "Success",
    NvmlReturn.UNINITIALIZED: "Uninitialized",
    NvmlReturn.INVALID_ARGUMENT: "Invalid Argument",
    NvmlReturn.NOT_SUPPORTED: "Not Supported",
    NvmlReturn.NOT_FOUND: "Not Found",
    NvmlReturn.INSUFFICIENT_SIZE: "Insufficient Size",
    NvmlReturn.TIMEOUT: "Timeout",
    NvmlReturn.GPU_IS_LOST: "GPU is lost",
    NvmlReturn.RESET_REQUIRED: "GPU requires reset",
    NvmlReturn.IN_USE: "In use by another client",
    NvmlReturn.INSUFFICIENT_RESOURCES: "Insufficient Resources",
    NvmlReturn.ARGUMENT_VERSION_MISMATCH: "Argument version mismatch",
}

# Xid, single and double bit ECC, MIG configuration change (nvmlEventType* in nvml.h).
_SUPPORTED_EVENTS = 0x8 | 0x1 | 0x2 | 0x100
_WHOLE_CARD = 0xFFFFFFFF
_POLL = 0.1  # seconds
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


def _event_set_create(session: Session, event_set: Any) -> None:
    pointers.put_handle(event_set, _EVENT_SET + session.begun)


def _event_set_free(session: Session, event_set: Any) -> None:
    _check_event_set(session, event_set)


def _register_events(session: Session, device: Any, types: Any, event_set: Any) -> None:
    gpu = session.gpu(device)
    _check_event_set(session, event_set)
    if pointers.number(types) & ~_SUPPORTED_EVENTS:
        raise Refused(NvmlReturn.NOT_SUPPORTED)
    events = session.state.read().events
    if not session.registered:
        session.told = events[-1].number if events else 0
    session.registered[gpu.pci_address] = pointers.number(types)


def _supported_event_types(session: Session, device: Any, types: Any) -> None:
    session.gpu(device)
    pointers.put(types, _SUPPORTED_EVENTS)


def _event_set_wait(session: Session, event_set: Any, data: Any, timeout_ms: Any) -> None:
    _check_event_set(session, event_set)
    end = time.monotonic() + pointers.number(timeout_ms) / 1000
    looked_at = session.state.stamp()
    while (event := _next_event(session)) is None:
        while (stamp := session.state.stamp()) == looked_at:  # the kernel waits, and costs its caller nothing
            if time.monotonic() >= end:
                raise Refused(NvmlReturn.TIMEOUT)
            time.sleep(_POLL)
        looked_at = stamp
    session.told = event.number
    pointers.put_handle_field(data, "device", session.gpu_handle(event.pci_address))
    instances = (_WHOLE_CARD if each is None else each for each in (event.gpu_instance, event.compute_instance))
    gi, ci = instances
    pointers.put_fields(data, eventType=event.type, eventData=event.data, gpuInstanceId=gi, computeInstanceId=ci)


def _next_event(session: Session) -> Event | None:
    """The first event that the set was not told of, of a card and a type that it asked for."""
    for event in session.state.read().events:
        if event.number > session.told and session.registered.get(event.pci_address, 0) & event.type:
            return event
    return None


def _check_event_set(session: Session, event_set: Any) -> None:
    if pointers.handle_value(event_set) != _EVENT_SET + session.begun:
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
