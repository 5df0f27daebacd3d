"""What NVIDIA's Container Toolkit says that containers need of the driver: its files and the hooks that link them.

`program` runs nvidia-ctk, `reading` (pure) takes from its answer what is common to all cards, `choosing` keeps that by
the driver's version and falls back to what the driver finds itself. Device nodes are never taken from it.
"""

from nodedriver.toolkit.choosing import Roots, Toolkit, driver_edits

__all__ = ["Roots", "Toolkit", "driver_edits"]
