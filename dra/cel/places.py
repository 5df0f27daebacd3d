"""From an offset in a text to its line and column."""

from __future__ import annotations


def place(text: str, offset: int) -> tuple[int, int]:
    """Line and column of an offset, both counted from 1, in code points; lines end at line feeds."""
    line_start = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, offset) + 1, offset - line_start + 1
