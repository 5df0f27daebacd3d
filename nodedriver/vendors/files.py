"""The small files of a PCI device in sysfs: one value each, absent where a kernel driver has nothing to say."""

from __future__ import annotations

from pathlib import Path


def text(file: Path) -> str | None:
    """The file's one line; None where it can't be read (a driver may refuse while the card is in a reset)."""
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return None


def number(file: Path) -> int | None:
    """The same as a whole number, decimal or `0x…`; None where it is none."""
    try:
        return int(text(file) or "", 0)
    except ValueError:
        return None
