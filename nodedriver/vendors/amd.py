"""What amdgpu tells of a card in sysfs (Documentation/gpu/amdgpu of Linux)."""

from __future__ import annotations

from pathlib import Path

from nodedriver.vendors.files import number, text

DRIVERS = frozenset({"amdgpu"})
_WHOLE = "SPX"  # the compute partition mode in which the card is one device
# gpu_metrics begins with its size (two bytes), then format_revision; 2 and 3 are those of APUs (kgd_pp_interface.h).
_FORMAT_REVISION = 2
_OF_APUS = (2, 3)


def memory(device: Path) -> int | None:
    """Bytes of memory on the card."""
    return number(device / "mem_info_vram_total")


def uuid(device: Path) -> str | None:
    """As ROCm writes it; older cards have no unique id."""
    unique = text(device / "unique_id")
    return f"GPU-{unique.lower()}" if unique else None


def product_name(device: Path) -> str | None:
    """As the board's own record (FRU) has it, which server cards carry."""
    return text(device / "product_name")


def is_integrated(device: Path) -> bool:
    """Whether it is part of a processor (an APU). MI300A, which has memory of its own, reports as a card does."""
    try:
        metrics = (device / "gpu_metrics").read_bytes()
    except OSError:
        return False
    return metrics[_FORMAT_REVISION : _FORMAT_REVISION + 1] in [bytes([revision]) for revision in _OF_APUS]


def why_not_whole(device: Path) -> str:
    """Why it can't be served as one device; "" when it can."""
    mode = text(device / "current_compute_partition")
    if mode in (None, "", _WHOLE):
        return ""
    return f"its compute partition mode is {mode}: write {_WHOLE} to {device / 'current_compute_partition'}"
