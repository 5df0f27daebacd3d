"""What happens to the cards while nobody asks: one NVML event set for all of them, and what a card says of its health.

A GPU-wide error carries 0xFFFFFFFF instead of instance ids (nvml.h, nvmlEventData_t). Waiting blocks one thread and no
other: ctypes gives the interpreter free meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol

import pynvml
import structlog

from nodedriver.facts import MigPlacement, PciAddress
from nodedriver.health.ailments import CardEvent, CardLook, severity_of_action
from nodedriver.nvml import cards, mig
from nodedriver.nvml.calls import ABSENT, Card, Handle, NvmlError, ask
from nodedriver.nvml.session import SESSION, in_session
from nodedriver.ports import GpuError


class OnCard(Protocol):
    """Does something with a card in that card's own thread."""

    def __call__[T](self, gpu: PciAddress, work: Callable[[Card], T], /) -> T: ...


_log = structlog.get_logger()
_DOUBLE_BIT = pynvml.nvmlEventTypeDoubleBitEccError
_MASK = pynvml.nvmlEventTypeXidCriticalError | _DOUBLE_BIT
_XID_OF_DOUBLE_BIT = 48  # "double-bit ECC error" (NVIDIA's XID catalogue); the event itself carries no number
_WHOLE_CARD = 0xFFFFFFFF


class EventSet:
    """The critical XIDs and double-bit ECC errors of the cards that could be registered."""

    def __init__(self, gpus: Iterable[PciAddress], on: OnCard, is_away: Callable[[PciAddress], bool]) -> None:
        """Register each card, in its own thread; `unmonitored` are those that can't be, but for those that are away."""
        self._is_away = is_away
        self._gpus = tuple(gpus)
        self._on = on
        self._begin()

    def wait(self, milliseconds: int) -> CardEvent | None:
        """The next one; None when the time is over, or nothing can be heard. NvmlError where NVML can't wait.

        When the session began anew the set is a new one, and what happened meanwhile is not heard.
        """
        if self._session != SESSION.number:
            self._begin()
        if self._set is None:
            time.sleep(milliseconds / 1000)
            return None
        heard = self._heard(milliseconds)
        if heard is None:
            return None
        gpu, event = heard
        placement = self._on(gpu, partial(_placement, gpu_instance=int(event.gpuInstanceId)))
        return CardEvent(gpu, _xid(event), placement)

    @in_session
    def _heard(self, milliseconds: int) -> tuple[PciAddress, Any] | None:
        if self._session != SESSION.number:  # while it was waited for: the set died with the one before
            return None
        try:
            event = ask("NVML", pynvml.nvmlEventSetWait_v2, self._set, milliseconds)
        except NvmlError as error:
            if error.code == pynvml.NVML_ERROR_TIMEOUT:
                return None
            raise
        return cards.card_of(event.device).address, event

    def _begin(self) -> None:
        """Anew until the session stays the same meanwhile: other threads register, and none may hold it for them."""
        self._session = -1
        while self._session != SESSION.number:
            self._session = SESSION.number
            self._set = _made_set()
            self.unmonitored = tuple(gpu for gpu in self._gpus if not self._is_away(gpu) and not self._register(gpu))

    def _register(self, gpu: PciAddress) -> bool:
        if self._set is None:
            return False
        try:
            self._on(gpu, self._listen)
        except GpuError:
            return False
        return True

    def _listen(self, card: Card) -> None:
        if self._session != SESSION.number:
            raise GpuError("the event set died with its session")
        supported = card.ask(pynvml.nvmlDeviceGetSupportedEventTypes, card.handle)
        card.ask(pynvml.nvmlDeviceRegisterEvents, card.handle, supported & _MASK, self._set)


def _made_set() -> Handle | None:
    """None where NVML can't tell of events: the cards serve all the same."""
    try:
        return ask("NVML", pynvml.nvmlEventSetCreate)
    except NvmlError as error:
        _log.warning("no event set", error=str(error))
        return None


def look(card: Card) -> CardLook:
    """What a card that answers asks for, and which instances are on it."""
    card.ask(pynvml.nvmlDeviceGetMemoryInfo, card.handle)
    found = mig.placements(card)
    recovery = _recovery_action(card)
    return CardLook(answers=True, recovery=None if recovery is None else severity_of_action(recovery), placements=found)


def _xid(event: Any) -> int:
    """The number of the error; that of a double-bit ECC error for NVML's other way to tell of one."""
    return _XID_OF_DOUBLE_BIT if event.eventType & _DOUBLE_BIT else int(event.eventData)


def _recovery_action(card: Card) -> int | None:
    """Field 230, which newer drivers know."""
    field = pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
    values = card.ask_unless(ABSENT, pynvml.nvmlDeviceGetFieldValues, card.handle, [field])
    if values is None or values[0].nvmlReturn != pynvml.NVML_SUCCESS:
        return None
    return int(values[0].value.uiVal)


def _placement(card: Card, gpu_instance: int) -> MigPlacement | None:
    """Where that GPU instance is; None, so that the whole card counts, for none or one that is gone already."""
    return None if gpu_instance == _WHOLE_CARD else mig.placement_of(card, gpu_instance)
