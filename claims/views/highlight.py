"""YAML with classes for its parts, so that CSS can colour it without an inline style."""

from __future__ import annotations

from django.utils.safestring import SafeString, mark_safe
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import YamlLexer

_LEXER = YamlLexer(stripnl=False, ensurenl=False)
_FORMATTER = HtmlFormatter(nowrap=True, classprefix="y-")


def yaml(text: str) -> SafeString:
    """The text, escaped, in spans. What a browser copies from it is the text, byte for byte."""
    return mark_safe(highlight(text, _LEXER, _FORMATTER))  # noqa: S308 - Pygments escapes the text itself
