"""The cards of AMD and Intel: found in sysfs, with what a container needs of them. Reads only, under given roots.

They serve whole, so that no library of their vendors is needed. `discovery` finds them, `amd` and `intel` know the
files of their kernel drivers, `products` the names, `nodes` the device nodes.
"""

from nodedriver.vendors.discovery import find_plain_cards, has_nvidia_card
from nodedriver.vendors.nodes import plain_nodes

__all__ = ["find_plain_cards", "has_nvidia_card", "plain_nodes"]
