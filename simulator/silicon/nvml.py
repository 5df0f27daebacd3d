"""The library that stands under pynvml: C function names in, nvmlReturn_t out, over the shared state.

`install` puts it where pynvml keeps `libnvidia-ml.so.1`, before `nvmlInit`. A function that is not in the tables, or
that the state calls missing, is so as in an old driver: pynvml answers FUNCTION_NOT_FOUND. What the functions do stands
in `nvml_system.py`, `nvml_device.py`, `nvml_links.py`, `nvml_mig_gpu.py` and `nvml_mig_compute.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml

from simulator.silicon import faults, nvml_device, nvml_links, nvml_mig_compute, nvml_mig_gpu, nvml_system
from simulator.silicon.handles import Session
from simulator.silicon.hardware import Injection, NvmlReturn
from simulator.silicon.rules import Refused
from simulator.silicon.state import State

type Call = Callable[..., None]

_POLL = 0.02  # seconds between two looks whether a call still hangs

FUNCTIONS: dict[str, Call] = {
    **nvml_system.FUNCTIONS,
    **nvml_device.FUNCTIONS,
    **nvml_links.FUNCTIONS,
    **nvml_mig_gpu.FUNCTIONS,
    **nvml_mig_compute.FUNCTIONS,
}


class Function:
    """One entry of the library. `restype` exists because pynvml sets it, as on a ctypes function."""

    restype: Any = None

    def __init__(self, name: str, session: Session) -> None:
        self._name = name
        self._call = FUNCTIONS[name]
        self._session = session

    def __call__(self, *args: Any) -> int:
        try:
            self._guarded(args)
        except Refused as refusal:
            return refusal.code
        return NvmlReturn.SUCCESS

    def _guarded(self, args: tuple[Any, ...]) -> None:
        if self._session.references == 0 and self._name != "nvmlInitWithFlags":
            raise Refused(NvmlReturn.UNINITIALIZED)
        fault = self._take_fault(args)
        if fault is None:
            self._call(self._session, *args)
            return
        time.sleep(fault.before_ms / 1000)
        while fault.hang and self._still_hangs(args):
            time.sleep(_POLL)
        if fault.code:
            raise Refused(fault.code)
        self._call(self._session, *args)
        time.sleep(fault.after_ms / 1000)

    def _take_fault(self, args: tuple[Any, ...]) -> Injection | None:
        """The fault that this call meets, used once."""
        silicon = self._session.state.as_written()
        if not any(row.function == self._name for row in silicon.injections):
            return None
        card = self._session.card_named(self._name, args)
        if not any(faults.meets(row, self._name, card) for row in silicon.injections):
            return None
        return self._session.state.change(lambda now: faults.taken(now, self._name, card))

    def _still_hangs(self, args: tuple[Any, ...]) -> bool:
        card = self._session.card_named(self._name, args)
        rows = self._session.state.as_written().injections
        return any(row.hang and faults.meets(row, self._name, card) for row in rows)


class ErrorString:
    """nvmlErrorString: the one function that answers text, and works without nvmlInit."""

    restype: Any = None

    def __call__(self, code: int) -> bytes:
        return nvml_system.error_string(code).encode()


class Library:
    """What pynvml takes for a loaded `libnvidia-ml.so.1`."""

    def __init__(self, state_path: Path) -> None:
        self._session = Session(State(state_path))
        self._missing = self._session.state.read().missing

    def __getattr__(self, name: str) -> Function | ErrorString:
        if name == "nvmlErrorString":
            return ErrorString()
        if name not in FUNCTIONS or name in self._missing:
            raise AttributeError(name)
        return Function(name, self._session)


def install(state_path: Path) -> None:
    """Let pynvml in this process see the cards of that state file, from its next nvmlInit on.

    pynvml keeps the functions it has found, so those of a library installed earlier are dropped.
    """
    pynvml._nvmlGetFunctionPointer_cache.clear()  # noqa: SLF001 - pynvml has no other way to change libraries
    pynvml.nvmlLib = Library(state_path)
