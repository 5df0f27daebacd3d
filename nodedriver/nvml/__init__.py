"""The door to NVML: facts out, MIG instances and compute modes in. Nothing else imports pynvml.

`door.py` is what the driver holds, `calls.py` asks and words refusals, `cards.py` reads a card, `mig.py` what is on it.
"""

from nodedriver.nvml.calls import NvmlError
from nodedriver.nvml.door import Nvml
from nodedriver.nvml.events import EventSet, look

__all__ = ["EventSet", "Nvml", "NvmlError", "look"]
