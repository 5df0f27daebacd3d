"""Strings that a reader of YAML 1.1 can mistake: for booleans, numbers, times, nulls, structure or nothing at all."""

from __future__ import annotations

_WORDS = ("y", "n", "yes", "no", "on", "off", "true", "false", "null")
NASTY: tuple[str, ...] = (
    *_WORDS, *(word.upper() for word in _WORDS), *(word.title() for word in _WORDS), "nULL", "tRUE",
    "", " ", "~", "=", "<<", "-", "---", "...", "?", ":", "|", ">", "&a", "*a", "!x", "!!str x", "%a", "@a", "`a`",
    "1", "0", "-1", "+1", "1e3", "1E3", "1.5", ".5", "5.", "1e", "0o7", "0O7", "07", "08", "0x1F", "0b11", "1_000",
    "0x_1", "685_230.15", ".inf", "-.INF", ".nan", "12:30:00", "190:20:30.15", "2001-12-14",
    "2001-12-14t21:59:43.10-05:00", "2001-12-14 21:59:43.10 -5", " x", "x ", "x: y", "x:", "x #y", "#x", "- x", "[x]",
    "{x}", "[", "{", "a, b", '"', "'", '"x"', "'x'", "\\", "\\n", "a\nb ", "a\n\nb", "\na", "a\n", "a\r\nb", "\t",
    "a\tb", "\tb", "\x00", "\x07", "\x1b", "\x7f", "\x85", "a\x85b", "\xa0", "\u2028", "\u2029", "\ufeff", "\ufffe",
    "\uffff", "é", "日本語", "🐍", "👩\u200d🚀", "\U0010ffff", "\u202eabc", "e\u0301", "a" * 300 + " b",
)  # fmt: skip
