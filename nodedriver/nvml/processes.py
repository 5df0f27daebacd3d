"""Which processes are on a card, and on which GPU instance of it."""

from __future__ import annotations

from collections.abc import Iterator

import pynvml

from nodedriver.facts import GpuProcess, MigPlacement
from nodedriver.nvml import mig
from nodedriver.nvml.calls import ABSENT, Card

_WHOLE_CARD = 0xFFFFFFFF
_PLAIN = (pynvml.nvmlDeviceGetComputeRunningProcesses, pynvml.nvmlDeviceGetGraphicsRunningProcesses)
_MPS_CLIENTS = (pynvml.nvmlDeviceGetMPSComputeRunningProcesses,)


def processes(card: Card) -> Iterator[GpuProcess]:
    """Compute and graphics processes, and clients of MPS; a card that has no such list has none of them."""
    placements: dict[int, MigPlacement] | None = None  # looked up once, and only for a card that has instances in use
    for is_client, functions in ((False, _PLAIN), (True, _MPS_CLIENTS)):
        for function in functions:
            for each in card.ask_unless(ABSENT, function, card.handle) or ():
                instance = each.gpuInstanceId
                whole = instance is None or instance == _WHOLE_CARD
                if not whole and placements is None:
                    placements = mig.placements_by_id(card)
                yield GpuProcess(each.pid, None if whole else (placements or {}).get(instance), is_client)
