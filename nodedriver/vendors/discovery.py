"""Which cards of AMD and Intel there are, by what sysfs shows of PCI devices; and whether NVIDIA has any.

A card counts when the vendor's kernel driver has it. What is left out is logged with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import NAMESPACE_OID, uuid5

import structlog

from dra.semver import lenient_semver
from nodedriver import sysfs
from nodedriver.facts import GpuUUID, PciAddress, PlainCardFacts, Vendor
from nodedriver.surroundings import surroundings
from nodedriver.vendors import amd, intel
from nodedriver.vendors.files import text
from nodedriver.vendors.products import PRODUCTS

_log = structlog.get_logger()
_NVIDIA = "0x10de"
# PCI Code and ID Assignment Specification: display controllers; processing accelerators, as MI300X calls itself.
_CLASSES = re.compile(r"0x(03|12)[0-9a-f]{4}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Maker:
    """A vendor: whose driver must have the card, and how its files are read."""

    vendor: Vendor
    drivers: frozenset[str]
    memory: tuple[Callable[[Path], int | None], ...]  # the first that knows; the table of products comes second
    uuid: Callable[[Path], str | None]
    product_name: Callable[[Path], str | None]
    is_integrated: Callable[[Path], bool]
    why_not_whole: Callable[[Path], str]


_MAKERS = {
    "0x1002": _Maker(
        vendor=Vendor.AMD,
        drivers=amd.DRIVERS,
        memory=(amd.memory,),
        uuid=amd.uuid,
        product_name=amd.product_name,
        is_integrated=amd.is_integrated,
        why_not_whole=amd.why_not_whole,
    ),
    "0x8086": _Maker(
        vendor=Vendor.INTEL,
        drivers=intel.DRIVERS,
        memory=(intel.memory, intel.memory_window),
        uuid=lambda _: None,
        product_name=lambda _: None,
        is_integrated=intel.is_integrated,
        why_not_whole=lambda _: "",
    ),
}


def find_plain_cards(sys_root: Path, proc_root: Path, *, integrated: bool) -> tuple[PlainCardFacts, ...]:
    """The cards of AMD and Intel by PCI address; `integrated`: those inside processors too."""
    kernel = text(proc_root / "sys/kernel/osrelease") or ""
    return tuple(
        _facts(sys_root, device, maker, kernel)
        for device in _display_devices(sys_root)
        if (maker := _MAKERS.get(text(device / "vendor") or "")) and _is_served(device, maker, integrated=integrated)
    )


def has_nvidia_card(sys_root: Path) -> bool:
    """Whether a card of NVIDIA's is in this machine, whoever has it."""
    return any(text(device / "vendor") == _NVIDIA for device in _display_devices(sys_root))


def _display_devices(sys_root: Path) -> Iterator[Path]:
    """Display controllers and accelerators, without the virtual functions of a card (they have a `physfn`)."""
    for device in sorted((sys_root / "bus/pci/devices").glob("*")):
        if _CLASSES.fullmatch(text(device / "class") or "") and not (device / "physfn").exists():
            yield device


def _is_served(device: Path, maker: _Maker, *, integrated: bool) -> bool:
    driver = _driver(device)
    if driver not in maker.drivers:
        reason = f"{driver or 'no driver'} has it, and only {' or '.join(sorted(maker.drivers))} can serve it"
    elif maker.is_integrated(device) and not integrated:
        reason = "it is integrated in a processor (setting --integrated-cards)"
    else:
        reason = maker.why_not_whole(device)
    if reason:
        _log.info("card left out", gpu=device.name, vendor=maker.vendor, reason=reason)
    return not reason


def _facts(sys_root: Path, device: Path, maker: _Maker, kernel: str) -> PlainCardFacts:
    address = PciAddress(device.name)
    vendor_id, device_id = text(device / "vendor") or "", text(device / "device") or ""
    product = PRODUCTS.get((vendor_id, device_id))
    known = (maker.memory[0](device), product and product.memory, *(read(device) for read in maker.memory[1:]))
    # A module of the kernel's own tree has no version beside the kernel's.
    version = text(sys_root / "module" / _driver(device) / "version") or kernel
    name = maker.product_name(device) or (product.name if product else f"{maker.vendor.upper()} {device_id}")
    return PlainCardFacts(
        pci_address=address,
        vendor=maker.vendor,
        uuid=GpuUUID(maker.uuid(device) or f"GPU-{uuid5(NAMESPACE_OID, address)}"),
        product_name=name,
        driver_version=lenient_semver(version),
        memory=next((size for size in known if size), 0),
        numa_node=sysfs.numa_node(sys_root, address),
        pcie_root=sysfs.pcie_root(sys_root, address),
        surroundings=surroundings(sys_root, address),
    )


def _driver(device: Path) -> str:
    """The kernel driver that has the device; "" where none has."""
    return (device / "driver").resolve().name if (device / "driver").exists() else ""
