"""NVML's functions on NVLink: whether a link is up, and what is at its far end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simulator.silicon import pointers
from simulator.silicon.handles import Session
from simulator.silicon.hardware import NvmlReturn
from simulator.silicon.rules import Refused


def _link_state(session: Session, device: Any, link: Any, active: Any) -> None:
    _far_end(session, device, link)
    pointers.put(active, 1)


def _remote_pci_info(session: Session, device: Any, link: Any, info: Any) -> None:
    address = _far_end(session, device, link)
    pointers.put_fields(info, busIdLegacy=address.upper().encode(), busId=f"0000{address}".upper().encode())


def _far_end(session: Session, device: Any, link: Any) -> str:
    """A card without NVLink answers NOT_SUPPORTED, a number beyond its links INVALID_ARGUMENT (nvml.h)."""
    links = session.gpu(device).nvlink
    if not links:
        raise Refused(NvmlReturn.NOT_SUPPORTED)
    number = pointers.number(link)
    if number >= len(links):
        raise Refused(NvmlReturn.INVALID_ARGUMENT)
    return links[number]


FUNCTIONS: dict[str, Callable[..., None]] = {
    "nvmlDeviceGetNvLinkState": _link_state,
    "nvmlDeviceGetNvLinkRemotePciInfo_v2": _remote_pci_info,
}
