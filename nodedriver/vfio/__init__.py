"""Handing a card to a virtual machine: which module takes it, binding it to that and back, the nodes that a container
gets. Everything is keyed by PCI address and read from sysfs, since NVML does not see such a card.

`binding.py` is what the driver holds, `iommu.py` reads, `modules.py` chooses (pure), `writing.py` writes to sysfs,
`holders.py` says who is in the way, `cards.py` remembers the cards that NVML does not see.
"""

from nodedriver.vfio.binding import VfioPci
from nodedriver.vfio.cards import all_cards, as_now, as_served
from nodedriver.vfio.iommu import Roots

__all__ = ["Roots", "VfioPci", "all_cards", "as_now", "as_served"]
