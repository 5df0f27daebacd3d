"""Small things every page shows the same way: bytes, ages, badges."""

from __future__ import annotations

from django import template

register = template.Library()
