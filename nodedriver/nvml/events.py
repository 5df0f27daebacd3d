"""What happens to the cards while nobody asks: one NVML event set for all of them, and what a card says of its health.

A GPU-wide error carries 0xFFFFFFFF instead of instance ids (nvml.h, nvmlEventData_t). Waiting blocks one thread and no
other: ctypes gives the interpreter free meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable

import pynvml

from nodedriver.facts import MigPlacement, PciAddress
from nodedriver.health.ailments import CardEvent, CardLook, severity_of_action
from nodedriver.nvml import cards, mig
from nodedriver.nvml.calls import ABSENT, Card, Handle, NvmlError, ask
from nodedriver.nvml.session import SESSION, in_session

_MASK = pynvml.nvmlEventTypeXidCriticalError
_WHOLE_CARD = 0xFFFFFFFF


class EventSet:
    """The critical XIDs of the cards that could be registered."""

    def __init__(self, gpus: Iterable[PciAddress]) -> None:
        """Register each card; `unmonitored` are those that can't be."""
        self._gpus = tuple(gpus)
        self._begin()

    @in_session
    def _begin(self) -> None:
        self._session = SESSION.number
        self._set: Handle = ask("NVML", pynvml.nvmlEventSetCreate)
        self.unmonitored = tuple(gpu for gpu in self._gpus if not self._register(gpu))

    @in_session
    def wait(self, milliseconds: int) -> CardEvent | None:
        """The next one; None when the time is over. NvmlError where NVML can't wait.

        After a reset of any card the set is a new one, and what happened meanwhile is not heard.
        """
        if self._session != SESSION.number:
            self._begin()
        try:
            event = ask("NVML", pynvml.nvmlEventSetWait_v2, self._set, milliseconds)
        except NvmlError as error:
            if error.code == pynvml.NVML_ERROR_TIMEOUT:
                return None
            raise
        card = cards.card_of(event.device)
        return CardEvent(card.address, int(event.eventData), _placement(card, int(event.gpuInstanceId)))

    def _register(self, gpu: PciAddress) -> bool:
        try:
            card = cards.card_by_address(gpu)
            supported = card.ask(pynvml.nvmlDeviceGetSupportedEventTypes, card.handle)
            card.ask(pynvml.nvmlDeviceRegisterEvents, card.handle, supported & _MASK, self._set)
        except NvmlError:
            return False
        return True


@in_session
def look(gpu: PciAddress) -> CardLook:
    """Whether the card answers, what it asks for, and which instances are on it."""
    try:
        card = cards.card_by_address(gpu)
        card.ask(pynvml.nvmlDeviceGetMemoryInfo, card.handle)
        found = mig.placements(card)
        recovery = _recovery_action(card)
    except NvmlError:
        return CardLook(answers=False)
    severity = None if recovery is None else severity_of_action(recovery)
    return CardLook(answers=True, recovery=severity, placements=found)


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
