"""The door to NVML: facts out, MIG instances and compute modes in. Nothing else imports pynvml.

`door.py` is what the driver holds, `calls.py` asks and words refusals, `patience.py` waits no longer than is good,
`cards.py` reads a card, `mig.py` what is on it, `events.py` hears of errors, `processes.py` says
who uses a card.
"""

from nodedriver.nvml.calls import NvmlError
from nodedriver.nvml.door import Nvml

__all__ = ["Nvml", "NvmlError"]
