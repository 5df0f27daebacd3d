"""What i915 and xe tell of a card in sysfs, and what its address and its memory windows do."""

from __future__ import annotations

from pathlib import Path

from nodedriver.vendors.files import number, text

DRIVERS = frozenset({"i915", "xe"})
_INTEGRATED = "0000:00:02.0"  # where graphics inside a processor of Intel's always are
_MEMORY_FLAG = 0x200  # IORESOURCE_MEM
_SMALL_BAR = 2**28  # bytes that a card shows of its memory where the firmware gives it no more


def memory(device: Path) -> int | None:
    """Bytes of memory on the card: of all tiles as xe tells, else as Intel's own i915 does (the kernel's does not)."""
    tiles = [*device.glob("tile*/physical_vram_size_bytes"), *device.glob("tile*/memory/physical_vram_size_bytes")]
    found = [number(file) for file in tiles or device.glob("drm/card*/lmem_total_bytes")]
    return sum(size for size in found if size) or None


def memory_window(device: Path) -> int | None:
    """Its largest memory BAR, which is its memory rounded up to a power of two; None where that was cut short."""
    sizes = [_size(*row.split()) for row in (text(device / "resource") or "").splitlines()]
    largest = max(sizes, default=0)
    return largest if largest > _SMALL_BAR else None


def is_integrated(device: Path) -> bool:
    """Whether it is part of a processor and has no memory of its own."""
    return device.name == _INTEGRATED and memory(device) is None


def _size(start: str, end: str, flags: str) -> int:
    """Bytes of one line of `resource`; 0 of what is no memory."""
    return int(end, 16) - int(start, 16) + 1 if int(end, 16) and int(flags, 16) & _MEMORY_FLAG else 0
