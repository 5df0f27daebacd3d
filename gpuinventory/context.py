"""How old the shown state is, for the frame of every page."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from gpuinventory import selectors


def freshness(_request: HttpRequest) -> dict[str, Any]:
    """Context of the badge and of the amber bar; read only where a template asks."""
    return {"freshness": SimpleLazyObject(selectors.freshness)}
