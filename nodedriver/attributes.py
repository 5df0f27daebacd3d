"""Where a card sits and what is near it, as attributes of its devices. Pure: values in, values out.

Each is left out where nothing is known, so a claim names them in `matchAttribute` or asks for the key first. Of this
kind Kubernetes itself has only pcieRoot, pciBusID and numaNode (deviceattribute, `pci_linux.go`, and KEP-6072); the
others are the driver's own.
"""

from __future__ import annotations

import re

from dra.objects import DeviceAttribute
from nodedriver.facts import CardFacts, CardSurroundings

_MAX_TEXT = 64  # bytes of a string attribute (ResourceSlice API)
_PCI_BUS_ID = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]")  # some clouds have wider domains


def text(value: str) -> DeviceAttribute:
    """A string attribute, cut where it is too long."""
    return DeviceAttribute(string=value.encode()[:_MAX_TEXT].decode(errors="ignore"))


def where(card: CardFacts) -> dict[str, DeviceAttribute]:
    """Of every device of the card: where it sits, in the words of Kubernetes, so that they mean the same to others."""
    known = {
        "pciBusID": text(card.pci_address) if _PCI_BUS_ID.fullmatch(card.pci_address) else None,
        "pcieRoot": text(card.pcie_root) if card.pcie_root else None,
        "numaNode": DeviceAttribute(int_=card.numa_node) if card.numa_node is not None else None,
    }
    return {f"resource.kubernetes.io/{name}": attribute for name, attribute in known.items() if attribute}


def around(card: CardSurroundings) -> dict[str, DeviceAttribute]:
    """Of every device of the card: the nearest network card and the way there, and the card's DRM nodes."""
    return _texts(
        nearestNIC=card.nearest_nic,
        nearestNICLink=card.nearest_nic_link,
        drmCard=card.drm_card,
        drmRender=card.drm_render,
    )


def nvlink(card: CardSurroundings) -> dict[str, DeviceAttribute]:
    """Of whole cards alone: MIG devices do not reach others over NVLink (MIG User Guide)."""
    return _texts(nvlinkClique=card.nvlink_clique)


def _texts(**known: str | None) -> dict[str, DeviceAttribute]:
    return {name: DeviceAttribute(string=str(text)) for name, text in known.items() if text}
