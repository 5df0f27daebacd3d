"""Small things that every page shows the same way: bytes, times, numbers in a bar."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from dra.quantity import parse_quantity

register = template.Library()
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_STEP = 1024
NOTHING = "\N{EN DASH}"


@register.filter
def binary(amount: int) -> str:
    """Bytes in the largest unit that keeps at least one whole: 80.0 GiB as 80 GiB; 0 as a dash."""
    if not amount:
        return NOTHING
    value, unit = float(amount), 0
    while abs(value) >= _STEP and unit < len(_UNITS) - 1:
        value, unit = value / _STEP, unit + 1
    return f"{value:.1f}".removesuffix(".0") + f" {_UNITS[unit]}"


@register.filter
def quantity(text: str) -> str:
    """A Kubernetes quantity as people read it: bytes in binary units, counts as they are."""
    amount = parse_quantity(text).value
    return binary(amount) if amount >= _STEP * _STEP else f"{amount:,}"


@register.filter
def at(values: Mapping[str, Any], key: str) -> Any:
    """The value under a key that a template can't write as a path, such as `scale.min`; None where there is none."""
    return values.get(key)


@register.filter
def moment(text: str, ahead: float = 0.0) -> SafeString:
    """An RFC 3339 time as an age, with the absolute time in the element; a dash where there is none.

    `ahead`: how many seconds the clock that wrote it is ahead of ours.
    """
    if not text:
        return SafeString(NOTHING)
    then = datetime.fromisoformat(text)
    absolute = f"{then:%Y-%m-%d %H:%M:%S} UTC"
    seconds = (timezone.now() - then).total_seconds() + ahead
    return format_html('<time datetime="{}" title="{}">{} ago</time>', text, absolute, age(seconds))


@register.filter
def age(seconds: float) -> str:
    """A length of time by its largest unit."""
    whole = max(0, int(seconds))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if whole >= size:
            return f"{whole // size} {unit}"
    return f"{whole} s"
