"""One call to NVML: the answer, or an error that names the card, the call, the reason and what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pynvml

from nodedriver.facts import PciAddress
from nodedriver.nvml.patience import about_to_call
from nodedriver.nvml.session import SESSION
from nodedriver.ports import GpuError, ModeRefusedError

type Handle = Any  # pynvml's opaque pointers; they never leave this package

# nvmlReturn_t for "this card, or this NVML, has no such thing".
ABSENT = (pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_INVALID_ARGUMENT, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
GONE = (pynvml.NVML_ERROR_NOT_FOUND,)

_NEXT_STEPS = {
    pynvml.NVML_ERROR_UNINITIALIZED: "No card of NVIDIA's was there at the start: start the node driver again.",
    pynvml.NVML_ERROR_NO_PERMISSION: "Run the node driver as root, or give it the capability file mig/config.",
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "Load the NVIDIA kernel module, then start the node driver again.",
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "Install the NVIDIA driver, or set the driver root to where it is.",
    pynvml.NVML_ERROR_GPU_IS_LOST: "The card fell off the bus: reset it or restart the node.",
    pynvml.NVML_ERROR_RESET_REQUIRED: "Reset the card with nvidia-smi --gpu-reset when nothing uses it.",
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "The driver was replaced: start the node driver again.",
    pynvml.NVML_ERROR_IN_USE: "End what uses the card (nvidia-smi lists it), or a monitoring agent that holds it.",
    pynvml.NVML_ERROR_INSUFFICIENT_RESOURCES: "Another GPU instance is in its way: nvidia-smi mig -lgi lists them.",
}
_NEXT_OTHERWISE = "The kernel log (dmesg, lines with NVRM) says more."


class NvmlError(GpuError):
    """NVML answered with an error. `code` is its nvmlReturn_t."""

    def __init__(self, subject: str, call: str, code: int, reason: str) -> None:
        super().__init__(f"{subject}: {call} answered {reason!r} ({code}). {_NEXT_STEPS.get(code, _NEXT_OTHERWISE)}")
        self.code = code


class NvmlModeRefusedError(NvmlError, ModeRefusedError):
    """The same, where a card did not change its MIG mode."""


def ask(subject: str, function: Callable[..., Any], *args: Any) -> Any:
    """Call a function of pynvml about the subject, such as `GPU 0000:65:00.0`; its error becomes an NvmlError."""
    about_to_call(function)
    try:
        with SESSION.used():
            return function(*args)
    except pynvml.NVMLError as error:
        raise NvmlError(subject, function.__name__, error.value, str(error)) from error


@dataclass(slots=True)
class ProfileBook:
    """What NVML said of a card's MIG profiles, which stay as they are: asking for them all takes most of a prepare.

    `filling` is by GPU instance profile: the compute instance profile that takes all of it.
    """

    gpu: tuple[Any, ...] = ()
    filling: dict[int, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Card:
    """A GPU as NVML knows it now. The handle dies with a mode change: keep none for long."""

    address: PciAddress
    handle: Handle
    book: ProfileBook = field(default_factory=ProfileBook)

    def ask(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call NVML about something of this card; NvmlError on a refusal."""
        return ask(f"GPU {self.address}", function, *args)

    def ask_unless(self, codes: tuple[int, ...], function: Callable[..., Any], *args: Any) -> Any:
        """As `ask`, but None where NVML answers with one of these codes."""
        try:
            return self.ask(function, *args)
        except NvmlError as error:
            if error.code in codes:
                return None
            raise
