"""Which processes are on a card, and on which GPU instance of it."""

from __future__ import annotations

from collections.abc import Iterator

import pynvml

from nodedriver.facts import GpuProcess
from nodedriver.nvml import mig
from nodedriver.nvml.calls import ABSENT, Card

_WHOLE_CARD = 0xFFFFFFFF
_PLAIN = (pynvml.nvmlDeviceGetComputeRunningProcesses, pynvml.nvmlDeviceGetGraphicsRunningProcesses)
_MPS_CLIENTS = (pynvml.nvmlDeviceGetMPSComputeRunningProcesses,)


def processes(card: Card) -> Iterator[GpuProcess]:
    """Compute and graphics processes, and clients of MPS; a card that has no such list has none of them."""
    for is_client, functions in ((False, _PLAIN), (True, _MPS_CLIENTS)):
        for function in functions:
            for each in card.ask_unless(ABSENT, function, card.handle) or ():
                instance = each.gpuInstanceId
                whole = instance is None or instance == _WHOLE_CARD
                placement = None if whole else mig.placement_of(card, instance)
                yield GpuProcess(each.pid, placement, is_client)
