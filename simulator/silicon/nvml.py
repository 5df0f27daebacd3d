"""The library that stands under pynvml: C function names in, nvmlReturn_t out, over the shared state.

`install` puts it where pynvml keeps `libnvidia-ml.so.1`, before `nvmlInit`. A function that is not in the tables is
missing as in an old driver: pynvml answers FUNCTION_NOT_FOUND. What the functions do stands in `nvml_system.py`,
`nvml_device.py`, `nvml_mig_gpu.py` and `nvml_mig_compute.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pynvml

from simulator.silicon import nvml_device, nvml_mig_compute, nvml_mig_gpu, nvml_system
from simulator.silicon.handles import Session
from simulator.silicon.hardware import Injection, NvmlReturn, Silicon
from simulator.silicon.rules import Refused
from simulator.silicon.state import State

type Call = Callable[..., None]

_TABLE: dict[str, Call] = {
    **nvml_system.FUNCTIONS,
    **nvml_device.FUNCTIONS,
    **nvml_mig_gpu.FUNCTIONS,
    **nvml_mig_compute.FUNCTIONS,
}


class Function:
    """One entry of the library. `restype` exists because pynvml sets it, as on a ctypes function."""

    restype: Any = None

    def __init__(self, name: str, session: Session) -> None:
        self._name = name
        self._call = _TABLE[name]
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
        injection = self._take_injection()
        time.sleep(injection.before_ms / 1000)
        if injection.code:
            raise Refused(injection.code)
        self._call(self._session, *args)
        time.sleep(injection.after_ms / 1000)

    def _take_injection(self) -> Injection:
        """The fault that waits for this call, used up; a harmless one when there is none."""
        if not any(i.function == self._name for i in self._session.state.read().injections):
            return Injection(function=self._name)
        return self._session.state.change(self._without_first_injection)

    def _without_first_injection(self, silicon: Silicon) -> tuple[Silicon, Injection]:
        mine = next((i for i in silicon.injections if i.function == self._name), Injection(function=self._name))
        return replace(silicon, injections=tuple(i for i in silicon.injections if i is not mine)), mine


class ErrorString:
    """nvmlErrorString: the one function that answers text, and works without nvmlInit."""

    restype: Any = None

    def __call__(self, code: int) -> bytes:
        return nvml_system.error_string(code).encode()


class Library:
    """What pynvml takes for a loaded `libnvidia-ml.so.1`."""

    def __init__(self, state_path: Path) -> None:
        self._session = Session(State(state_path))

    def __getattr__(self, name: str) -> Function | ErrorString:
        if name == "nvmlErrorString":
            return ErrorString()
        if name not in _TABLE:
            raise AttributeError(name)
        return Function(name, self._session)


def install(state_path: Path) -> None:
    """Let pynvml in this process see the cards of that state file, from its next nvmlInit on.

    pynvml keeps the functions it has found, so those of a library installed earlier are dropped.
    """
    pynvml._nvmlGetFunctionPointer_cache.clear()  # noqa: SLF001 - pynvml has no other way to change libraries
    pynvml.nvmlLib = Library(state_path)
