"""NVLink: which cards reach each other over it, directly or through the same switches. Read once, since wires stay.

A link's far end is named by its PCI address, be it a card's or an NVSwitch's (nvml.h, "NvLink Methods").
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

import pynvml

from nodedriver.facts import PciAddress
from nodedriver.nvml.calls import ABSENT, Card
from nodedriver.nvml.cards import address_of


def far_ends(card: Card) -> frozenset[PciAddress]:
    """What the card's active links lead to; nothing for a card without NVLink."""
    found = set()
    for link in range(pynvml.NVML_NVLINK_MAX_LINKS):
        active = card.ask_unless(ABSENT, pynvml.nvmlDeviceGetNvLinkState, card.handle, link)
        if active is None:
            break  # link numbers have no holes
        if active:
            far = card.ask_unless(ABSENT, pynvml.nvmlDeviceGetNvLinkRemotePciInfo, card.handle, link)
            found |= {address_of(far)} if far is not None else set()
    return frozenset(found)


def cliques(ends: Mapping[PciAddress, AbstractSet[PciAddress]]) -> dict[PciAddress, PciAddress]:
    """By card the lowest address among the cards that it reaches; a card that reaches no other has none."""
    groups: list[set[PciAddress]] = []
    for card, far in ends.items():
        touching = [group for group in groups if group & {card, *far}]
        groups = [group for group in groups if group not in touching]
        groups.append({card, *far}.union(*touching))
    named: dict[PciAddress, PciAddress] = {}
    for group in groups:
        members = sorted(group & ends.keys())
        if len(members) > 1:
            named |= dict.fromkeys(members, members[0])
    return named
