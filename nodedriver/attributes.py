"""What is near a card, as attributes of its devices. Pure: values in, values out.

Each is left out where nothing is known, so a claim names them in `matchAttribute` or asks for the key first. They are
the driver's own: of this kind Kubernetes has only pcieRoot, pciBusID and numaNode (deviceattribute, KEP-6072).
"""

from __future__ import annotations

from dra.objects import DeviceAttribute
from nodedriver.facts import CardSurroundings


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
